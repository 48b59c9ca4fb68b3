/* engine/: faults of the model, admission limits, counts, short memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine_client.h"

/* ---- faults ---- */

static void a_nan_ends_its_request_and_no_other(void **state) {
    (void)state;
    static const struct token_bias never[] = {{11, -100}};
    static const int32_t poisoned[] = {1, 2, 11};
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    b.fake->nan_token = 11;
    struct job *sick = job_new(poisoned, 3, 20), *well = endless(1, 20);
    sick->r.n = 3;
    well->r.prompt = poisoned;
    well->r.sampling.bias = never, well->r.sampling.n_bias = 1;
    fake_permit(b.fake, 0);
    job_submit(b.engine, well);
    job_submit(b.engine, sick);
    fake_permit(b.fake, -1);
    job_check(well);
    job_wait(sick);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sick->choice[i].finish, FINISH_ERROR);
        assert_int_equal(sick->choice[i].error.status, SUMI_ERR_NUMERIC);
        assert_non_null(strstr(sick->choice[i].error.msg, "token 7"));
    }
    job_free(sick);
    job_free(well);
    bench_check_idle(&b);
    bench_close(&b);
}

/* The first of several running choices fails: the others of the same step end with it. */
static void a_nan_in_one_choice_ends_its_siblings(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = endless(4, 60), *other = endless(2, 60);
    j->r.n = 4;
    job_submit(b.engine, j);
    job_check(j);
    int32_t poison = -1, at = 3; /* a token that choice 0 says alone, while all four run */
    while (poison < 0) {
        poison = j->choice[0].id[++at];
        assert_true(at < 50);
        for (int32_t c = 0; c < 4; c++)
            for (int32_t i = 0; i < (c ? at + 3 : at); i++)
                if (j->choice[c].id[i] == poison) poison = -1;
        for (int32_t i = 0; i < 4; i++)
            if (prompt[i] == poison) poison = -1;
    }
    struct job *again = endless(4, 60);
    const struct token_bias never[] = {{poison, -100}};
    again->r.n = 4;
    other->r.sampling.bias = never, other->r.sampling.n_bias = 1;
    b.fake->nan_token = poison;
    fake_permit(b.fake, 0);
    job_submit(b.engine, again);
    job_submit(b.engine, other);
    fake_permit(b.fake, -1);
    job_wait(again);
    job_check(other);
    assert_int_equal(again->choice[0].n, at + 1);
    for (int c = 0; c < 4; c++) {
        assert_int_equal(again->choice[c].finish, FINISH_ERROR);
        assert_int_equal(again->choice[c].error.status, SUMI_ERR_NUMERIC);
    }
    job_free(j);
    job_free(again);
    job_free(other);
    bench_check_idle(&b);
    bench_close(&b);
}

static void a_nan_in_a_scored_prompt_ends_the_request(void **state) {
    (void)state;
    static const int32_t poisoned[] = {1, 11, 2};
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    b.fake->nan_token = 11;
    struct job *sick = job_new(poisoned, 3, 20);
    sick->r.n = 2;
    sick->r.sampling.n_prompt_logprobs = 1;
    job_submit(b.engine, sick);
    job_wait(sick);
    assert_int_equal(sick->choice[0].finish, FINISH_ERROR);
    assert_int_equal(sick->choice[1].finish, FINISH_ERROR);
    assert_int_equal(sick->choice[0].n, 0);
    job_free(sick);
    bench_check_idle(&b);
    bench_close(&b);
}

static void a_failed_step_ends_the_requests_in_it(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_seqs = 2;
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *job[3];
    b.fake->fail_at = 3;
    b.fake->fail_status = SUMI_ERR_NUMERIC;
    fake_permit(b.fake, 0);
    for (int i = 0; i < 3; i++) job_submit(b.engine, job[i] = endless(10 + (size_t)i, 20));
    fake_permit(b.fake, -1);
    for (int i = 0; i < 2; i++) {
        job_wait(job[i]);
        assert_int_equal(job[i]->choice[0].finish, FINISH_ERROR);
        assert_int_equal(job[i]->choice[0].error.status, SUMI_ERR_NUMERIC);
        assert_non_null(strstr(job[i]->choice[0].error.msg, "told to fail"));
    }
    job_check(job[2]); /* was waiting */
    for (int i = 0; i < 3; i++) job_free(job[i]);
    assert_works(&b);
    bench_close(&b);
}

static void a_device_fault_ends_the_engine(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_seqs = 1;
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *running = endless(100, 20), *waiting = endless(10, 20);
    running->r.n = 2;
    b.fake->fail_at = 2;
    b.fake->fail_status = SUMI_ERR_DEVICE;
    fake_permit(b.fake, 0);
    job_submit(b.engine, running);
    job_submit(b.engine, waiting);
    fake_permit(b.fake, -1);
    job_wait(running);
    job_wait(waiting);
    for (int i = 0; i < 2; i++) assert_int_equal(running->choice[i].finish, FINISH_ERROR);
    assert_int_equal(waiting->choice[0].finish, FINISH_ERROR);
    assert_int_equal(waiting->choice[0].error.status, SUMI_ERR_DEVICE);
    struct engine_stats s = engine_stats(b.engine);
    assert_true(s.dead);
    assert_int_equal(s.slab_used, 0);
    assert_int_equal(s.n_running + s.n_waiting, 0);
    assert_refused(b.engine, endless(5, 5), SUMI_ERR_STATE, "", "failed");
    job_free(running);
    job_free(waiting);
    bench_close(&b);
}

/* ---- limits ---- */

static void admission_counts_choices_and_unread_prompts(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_queued_reqs = 4;
    config.max_num_queued_tokens = 50;
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *a = endless(30, 20), *c = endless(60, 20);
    a->r.n = 2;
    fake_permit(b.fake, 0);
    job_submit(b.engine, a);
    struct job *many = endless(1, 1);
    many->r.n = 3;
    assert_refused(b.engine, many, SUMI_ERR_BUSY, "", "at most 4");
    job_submit(b.engine, c); /* 30 tokens are below the limit; its own do not count */
    assert_refused(b.engine, endless(1, 1), SUMI_ERR_BUSY, "", "90 prompt tokens");
    assert_int_equal(engine_stats(b.engine).n_waiting + engine_stats(b.engine).n_running, 3);
    engine_cancel(b.engine, c->id); /* its prompt is not waited for any more */
    fake_permit(b.fake, -1);
    job_check(a);
    job_wait(c);
    for (int i = 0; i < 6; i++) { /* ended ones are not counted */
        struct job *j = endless(49, 1);
        job_submit(b.engine, j);
        job_check(j);
        job_free(j);
        bench_check_idle(&b);
    }
    job_free(a);
    job_free(c);
    bench_close(&b);
}

static void a_draining_engine_finishes_what_it_has(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = endless(30, 20);
    fake_permit(b.fake, 0);
    job_submit(b.engine, j);
    engine_drain(b.engine);
    assert_refused(b.engine, endless(1, 1), SUMI_ERR_STATE, "", "shuts down");
    fake_permit(b.fake, -1);
    job_check(j);
    job_free(j);
    bench_check_idle(&b);
    bench_close(&b);
}

static void statistics_count_tokens_and_slabs(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = endless(100, 20);
    fake_permit(b.fake, 2);
    job_submit(b.engine, j);
    fake_await(b.fake, 3);
    struct engine_stats s = engine_stats(b.engine);
    assert_int_equal(s.n_running, 1);
    assert_int_equal(s.n_waiting, 0);
    assert_int_equal(s.slab_total, MANY_SLABS);
    /* After two steps a query at 101 follows: 2 blocks, 2 in the window of 100 (from 2 on), and
     * 1 in the window of 17 (from 85 on). */
    assert_int_equal(s.slab_used, 2 + 2 + 1);
    assert_int_equal(s.prompt_tokens, 100);
    assert_int_equal(s.generation_tokens, 2);
    fake_permit(b.fake, -1);
    job_check(j);
    s = engine_stats(b.engine);
    assert_int_equal(s.generation_tokens, 20);
    assert_int_equal(s.n_step, 20);
    assert_int_equal(s.step_rows, 100 + 19);
    assert_int_equal(s.steps_by_log2[7], 1); /* 64 < 100 <= 128 */
    assert_int_equal(s.steps_by_log2[0], 19);
    job_free(j);
    bench_check_idle(&b);
    bench_close(&b);
}

/* ---- memory ---- */

static void opening_gives_everything_back_when_memory_is_short(void **state) {
    (void)state;
    struct fake *f = fake_open(MANY_SLABS, 4096);
    struct engine_config config = bench_config();
    struct engine *e = NULL;
    sumi_status status = SUMI_ERR_MEMORY;
    long n = 0;
    while (status == SUMI_ERR_MEMORY) {
        mem_fail_at(++n);
        status = engine_open(&e, &config, &f->stepper, NULL, &err);
        mem_fail_at(0);
        assert_true((status == SUMI_OK) == (e != NULL));
    }
    assert_int_equal(status, SUMI_OK);
    assert_true(n > 10);
    engine_close(e);
    fake_close(f);
}

/* Wherever memory runs out, in submit or in any turn, the request ends once, in order or with an
 * error, and the engine works on. */
static void short_memory_ends_at_most_the_request(void **state) {
    (void)state;
    static const int32_t list[] = {5, 6};
    static const struct token_list bad = {list, 2};
    static const struct token_bias bias[] = {{1, 0.5f}};
    struct engine_config config = bench_config();
    config.max_num_batched_tokens = 50;
    int n_error = 0, n_refused = 0;
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct bench b = bench_open(&config, MANY_SLABS);
        struct job *j = endless(130, 200);
        struct sampling *s = &j->r.sampling;
        j->r.n = 3;
        s->n_logprobs = 5, s->n_prompt_logprobs = 1;
        s->bad_words = &bad, s->n_bad = 1;
        s->bias = bias, s->n_bias = 1;
        long before = mem_count();
        mem_fail_at(n);
        sumi_status status = engine_submit(b.engine, &j->r, &j->id, &err);
        if (status == SUMI_OK) job_wait(j);
        mem_fail_at(0);
        failed = mem_count() - before >= n;
        if (status != SUMI_OK) {
            assert_int_equal(status, SUMI_ERR_MEMORY);
            n_refused++;
        } else if (j->choice[0].finish == FINISH_ERROR) {
            assert_int_equal(j->choice[0].error.status, SUMI_ERR_MEMORY);
            n_error++;
        } else {
            job_check(j);
        }
        job_free(j);
        assert_works(&b);
        bench_close(&b);
    }
    assert_true(n_refused >= 4);
    assert_true(n_error >= 4);
}

/* Between two page boundaries and two doublings a turn allocates nothing. */
static long count_at[MAX_ANSWER];

static void counting_event(void *user, const struct event *e) {
    client_event(user, e);
    count_at[e->n_output] = mem_count();
}

static void a_turn_allocates_nothing_in_the_steady_state(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = endless(10, 200);
    j->r.on_event = counting_event;
    j->r.sampling.n_logprobs = 3;
    job_submit(b.engine, j);
    job_check(j);
    assert_int_equal(count_at[180], count_at[140]);
    assert_true(count_at[140] > count_at[20]); /* doublings */
    job_free(j);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nan_ends_its_request_and_no_other),
        cmocka_unit_test(a_nan_in_one_choice_ends_its_siblings),
        cmocka_unit_test(a_nan_in_a_scored_prompt_ends_the_request),
        cmocka_unit_test(a_failed_step_ends_the_requests_in_it),
        cmocka_unit_test(a_device_fault_ends_the_engine),
        cmocka_unit_test(admission_counts_choices_and_unread_prompts),
        cmocka_unit_test(a_draining_engine_finishes_what_it_has),
        cmocka_unit_test(statistics_count_tokens_and_slabs),
        cmocka_unit_test(opening_gives_everything_back_when_memory_is_short),
        cmocka_unit_test(short_memory_ends_at_most_the_request),
        cmocka_unit_test(a_turn_allocates_nothing_in_the_steady_state),
    };
    return cmocka_run_group_tests(tests, client_fill, NULL);
}
