/* engine/: many requests in one batch. What runs beside a request, how its prompt is cut, when it
 * is preempted and which pages it shares must not change its tokens; every slab comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_client.h"

/* Eight requests that differ in prompt, length and sampling. */
static struct job *varied(int i) {
    static const int32_t length[] = {1, 63, 64, 65, 200, 130, 2, 300};
    struct job *j = job_new(prompt + 7 * i, (size_t)length[i % 8], 20 + 9 * (i % 8));
    struct sampling *s = &j->r.sampling;
    s->seed = (uint64_t)(1000 + i);
    s->ignore_eos = i % 2;
    if (i % 8 == 1) s->temperature = 0;
    if (i % 8 == 2) s->top_k = 5, s->top_p = 0.9f;
    if (i % 8 == 3) s->repetition_penalty = 1.5f, s->frequency_penalty = 0.3f;
    if (i % 8 == 4) s->temperature = 0.3f;
    if (i % 8 == 5) s->min_p = 0.2f, s->n_logprobs = 3;
    return j;
}

static void run_together(struct bench *b, int n) {
    struct job *job[16];
    for (int i = 0; i < n; i++) job_submit(b->engine, job[i] = varied(i));
    for (int i = 0; i < n; i++) {
        job_check(job[i]);
        job_free(job[i]);
    }
    bench_check_idle(b);
}

static void a_request_alone_says_what_the_model_says(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int i = 0; i < 8; i++) {
        struct job *j = varied(i);
        job_submit(b.engine, j);
        job_check(j);
        job_free(j);
        bench_check_idle(&b);
    }
    assert_int_equal(b.fake->max_seq, 1);
    bench_close(&b);
}

static void neighbours_change_nothing(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    fake_permit(b.fake, 1);
    struct job *first = job_new(prompt, 5, 3);
    job_submit(b.engine, first); /* its second step waits until all others are there */
    fake_await(b.fake, 2);
    struct job *job[15];
    for (int i = 0; i < 15; i++) job_submit(b.engine, job[i] = varied(i));
    fake_permit(b.fake, -1);
    for (int i = 0; i < 15; i++) {
        job_check(job[i]);
        job_free(job[i]);
    }
    job_check(first);
    job_free(first);
    assert_int_equal(b.fake->max_seq, 8);
    bench_check_idle(&b);
    bench_close(&b);
}

static void chunks_change_nothing(void **state) {
    (void)state;
    static const struct {
        int32_t rows, chunk;
    } cut[] = {{8, 0}, {8, 1}, {17, 0}, {64, 64}, {100, 7}, {4096, 0}, {512, 65}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        struct engine_config config = bench_config();
        config.max_num_batched_tokens = cut[i].rows;
        config.prefill_chunk = cut[i].chunk;
        struct bench b = bench_open(&config, MANY_SLABS);
        run_together(&b, 8);
        bench_close(&b);
    }
}

/* Pools in which one sequence of 500 positions fits, and not much more. */
static void preemption_changes_nothing(void **state) {
    (void)state;
    for (int32_t n_slab = 18; n_slab <= 34; n_slab += 4) {
        struct engine_config config = bench_config();
        config.max_model_len = 500;
        config.max_num_batched_tokens = 64;
        struct bench b = bench_open(&config, n_slab);
        struct job *job[8];
        fake_permit(b.fake, 0); /* until all are there */
        for (int i = 0; i < 8; i++) {
            job[i] = varied(i);
            job[i]->r.sampling.max_tokens += 100;
            job[i]->r.sampling.ignore_eos = true;
            job_submit(b.engine, job[i]);
        }
        fake_permit(b.fake, -1);
        for (int i = 0; i < 8; i++) job_check(job[i]);
        for (int i = 0; i < 8; i++) job_free(job[i]);
        assert_true(engine_stats(b.engine).n_preemption > 0);
        bench_check_idle(&b);
        bench_close(&b);
    }
}

static void long_answers_are_preempted_while_they_grow(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_model_len = 512;
    config.max_num_batched_tokens = 32;
    struct bench b = bench_open(&config, 20);
    struct job *job[4];
    fake_permit(b.fake, 0);
    for (int i = 0; i < 4; i++) {
        job[i] = job_new(prompt + i, 40, 300);
        job[i]->r.sampling.ignore_eos = true;
        job_submit(b.engine, job[i]);
    }
    fake_permit(b.fake, -1);
    for (int i = 0; i < 4; i++) {
        job_check(job[i]);
        assert_int_equal(job[i]->choice[0].n, 300);
    }
    for (int i = 1; i < 4; i++) /* the older one goes on */
        assert_true(job[i - 1]->order < job[i]->order);
    for (int i = 0; i < 4; i++) job_free(job[i]);
    assert_true(engine_stats(b.engine).n_preemption >= 3);
    bench_check_idle(&b);
    bench_close(&b);
}

/* ---- choices ---- */

static struct job *choices(int32_t n, size_t n_prompt, int32_t max_tokens) {
    struct job *j = job_new(prompt + 3, n_prompt, max_tokens);
    j->r.n = n;
    j->r.sampling.seed = 77;
    j->r.sampling.ignore_eos = true;
    return j;
}

static void choice_i_is_a_request_with_seed_plus_i(void **state) {
    (void)state;
    static const size_t n_prompt[] = {1, 64, 65, 200, 257};
    for (size_t i = 0; i < sizeof n_prompt / sizeof *n_prompt; i++) {
        struct engine_config config = bench_config();
        config.max_num_batched_tokens = 48; /* windows move on while the prompt is read */
        config.max_num_seqs = i % 2 ? 8 : 3;
        struct bench b = bench_open(&config, MANY_SLABS);
        struct job *j = choices(8, n_prompt[i], 40);
        job_submit(b.engine, j);
        job_check(j); /* compares with seeds 77 to 84 */
        job_free(j);
        bench_check_idle(&b);
        bench_close(&b);
    }
}

static void choices_share_the_prompts_pages(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = choices(4, 200, 1);
    job_submit(b.engine, j);
    job_check(j);
    /* 200 rows once, and 8 behind the last page boundary (192) for each of the other three. */
    assert_int_equal(b.fake->n_row, 200 + 3 * 8);
    assert_int_equal(engine_stats(b.engine).prompt_tokens, 200);
    job_free(j);
    bench_check_idle(&b);
    bench_close(&b);
}

static void choices_survive_a_small_pool(void **state) {
    (void)state;
    for (int32_t n_slab = 14; n_slab <= 38; n_slab += 4) {
        struct engine_config config = bench_config();
        config.max_model_len = 300;
        config.max_num_batched_tokens = 40;
        struct bench b = bench_open(&config, n_slab);
        struct job *many = choices(6, 140, 150), *other = varied(4), *third = choices(3, 129, 90);
        fake_permit(b.fake, 0);
        job_submit(b.engine, many);
        job_submit(b.engine, other);
        job_submit(b.engine, third);
        fake_permit(b.fake, -1);
        job_check(many);
        job_check(other);
        job_check(third);
        assert_true(engine_stats(b.engine).n_preemption > 0);
        job_free(many);
        job_free(other);
        job_free(third);
        bench_check_idle(&b);
        bench_close(&b);
    }
}

/* A lease of another request must not keep out the one whose turn it is. */
static void a_waiting_requests_pages_yield(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_seqs = 1;
    config.max_num_batched_tokens = 32;
    config.max_model_len = 512;
    config.priority_policy = true;
    struct bench b = bench_open(&config, 15); /* 8 + 4 + 2 for 512 positions */
    struct job *pair = choices(2, 200, 3), *urgent = choices(1, 500, 3);
    urgent->r.priority = -1;
    fake_permit(b.fake, 0);
    job_submit(b.engine, pair);
    fake_await(b.fake, 1);
    job_submit(b.engine, urgent); /* comes before the second choice, which has pages to wait on */
    fake_permit(b.fake, -1);
    job_check(pair);
    job_check(urgent);
    assert_true(urgent->order < pair->order);
    job_free(pair);
    job_free(urgent);
    bench_check_idle(&b);
    bench_close(&b);
}

static void a_prompt_starts_only_where_it_fits_beside_others(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_batched_tokens = 32;
    config.prefill_chunk = 8;
    config.max_model_len = 512;
    struct bench b = bench_open(&config, 20); /* 7 + 3 + 2 for 400 positions */
    struct job *job[3];
    fake_permit(b.fake, 0);
    for (int i = 0; i < 3; i++) job_submit(b.engine, job[i] = choices(1, 400, 2));
    fake_permit(b.fake, -1);
    for (int i = 0; i < 3; i++) job_check(job[i]);
    for (int i = 0; i < 3; i++) job_free(job[i]);
    assert_int_equal(engine_stats(b.engine).n_preemption, 0); /* no prompt is read twice */
    assert_int_equal(b.fake->n_row, 3 * 401);
    bench_check_idle(&b);
    bench_close(&b);
}

/* ---- cancelling ---- */

static void a_cancelled_request_stops_before_the_next_step(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *j = choices(1, 10, 500), *other = choices(1, 10, 30);
    fake_permit(b.fake, 5);
    job_submit(b.engine, j);
    fake_await(b.fake, 6); /* inside the sixth step */
    job_submit(b.engine, other);
    engine_cancel(b.engine, j->id);
    engine_cancel(b.engine, j->id); /* again, and others that do not exist */
    engine_cancel(b.engine, 999);
    engine_cancel(b.engine, 0);
    fake_permit(b.fake, -1);
    job_wait(j);
    assert_int_equal(j->choice[0].finish, FINISH_ABORT);
    assert_int_equal(j->choice[0].n, 6);
    job_check(other);
    engine_cancel(b.engine, other->id); /* it has ended */
    assert_int_equal(b.fake->max_seq, 1);
    job_free(j);
    job_free(other);
    bench_check_idle(&b);
    bench_close(&b);
}

static void every_choice_of_a_cancelled_request_ends(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_seqs = 3;
    config.max_num_batched_tokens = 16;
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int32_t at = 1; at < 20; at += 2) { /* in the prompt, when choices wait, when they run */
        struct job *j = choices(6, 130, 500);
        b.fake->n_begun = 0;
        fake_permit(b.fake, at - 1);
        job_submit(b.engine, j);
        fake_await(b.fake, at);
        engine_cancel(b.engine, j->id);
        fake_permit(b.fake, -1);
        job_wait(j);
        for (int i = 0; i < 6; i++) assert_int_equal(j->choice[i].finish, FINISH_ABORT);
        job_free(j);
        bench_check_idle(&b);
    }
    bench_close(&b);
}

/* Lets steps through one by one, `pause_us` apart, until told to end: what a test does meanwhile
 * comes before hundreds of further steps, however busy the machine is. */
struct usher {
    struct fake *fake;
    useconds_t pause_us;
    atomic_bool stop;
    pthread_t thread;
};

static void *permit_slowly(void *arg) {
    struct usher *u = arg;
    while (!atomic_load(&u->stop)) {
        fake_permit(u->fake, 1);
        usleep(u->pause_us);
    }
    fake_permit(u->fake, -1);
    return NULL;
}

static void usher_start(struct usher *u) {
    assert_int_equal(pthread_create(&u->thread, NULL, permit_slowly, u), 0);
}

static void usher_end(struct usher *u) {
    atomic_store(&u->stop, true);
    pthread_join(u->thread, NULL);
}

/* What came before the cancel is right; true when it was in time. */
static bool check_beginning(struct job *j, int32_t i) {
    struct expected x = job_expect(j, i, MAX_ANSWER);
    const struct choice_log *c = &j->choice[i];
    assert_true(c->n <= x.n);
    assert_memory_equal(c->id, x.id, (size_t)c->n * sizeof *x.id);
    if (c->finish == FINISH_ABORT) return true;
    assert_int_equal(c->finish, x.finish);
    assert_int_equal(c->n, x.n);
    return false;
}

static void a_storm_of_cancels_leaves_nothing_behind(void **state) {
    (void)state;
    enum { N = 500, AT_ONCE = 8 };
    struct engine_config config = bench_config();
    config.max_model_len = 512;
    config.max_num_batched_tokens = 64;
    struct bench b = bench_open(&config, 60);
    struct job *job[AT_ONCE] = {0};
    struct usher usher = {.fake = b.fake, .pause_us = 100};
    int n_abort = 0;
    usher_start(&usher);
    for (int i = 0; i < N; i++) {
        uint64_t luck = fake_mix((uint64_t)i);
        int at = i % AT_ONCE;
        if (job[at]) {
            engine_cancel(b.engine, job[at]->id);
            job_wait(job[at]);
            for (int c = 0; c < job[at]->r.n; c++) n_abort += check_beginning(job[at], c);
            job_free(job[at]);
        }
        job[at] = varied((int)(luck % 8));
        job[at]->r.sampling.max_tokens = luck % 7 ? 150 : 5;
        if (luck % 5 == 0) job[at]->r.n = 3, job[at]->r.sampling.temperature = 1;
        job_submit(b.engine, job[at]);
        if (luck % 3) job_await(job[at], (int32_t)(luck / 64 % 30));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        engine_cancel(b.engine, job[i]->id);
        job_wait(job[i]);
        job_free(job[i]);
    }
    usher_end(&usher);
    assert_true(n_abort > 0);
    bench_check_idle(&b);
    run_together(&b, 8); /* and all still works, eight at once */
    bench_close(&b);
}

static void closing_aborts_what_is_open(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_seqs = 1;
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *running = choices(2, 70, 500), *waiting = choices(1, 10, 500);
    fake_permit(b.fake, 3);
    job_submit(b.engine, running);
    job_submit(b.engine, waiting);
    fake_await(b.fake, 4);
    struct usher usher = {.fake = b.fake, .pause_us = 5000};
    usher_start(&usher);
    engine_close(b.engine);
    usher_end(&usher);
    assert_true(running->ended && waiting->ended);
    assert_int_equal(running->broken + waiting->broken, 0);
    assert_int_equal(running->choice[0].finish, FINISH_ABORT);
    assert_int_equal(running->choice[1].finish, FINISH_ABORT);
    assert_int_equal(waiting->choice[0].finish, FINISH_ABORT);
    job_free(running);
    job_free(waiting);
    fake_close(b.fake);
    engine_close(NULL);
}

/* ---- seeds ---- */

static void a_seeded_request_ignores_unseeded_neighbours(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int round = 0; round < 5; round++) {
        struct job *seeded = choices(1, 16, 16), *twin = choices(1, 16, 16);
        seeded->r.sampling.temperature = twin->r.sampling.temperature = 0.8f;
        seeded->r.sampling.seed = 42;
        twin->r.sampling.has_seed = false;
        if (round % 2) job_submit(b.engine, twin);
        job_submit(b.engine, seeded);
        if (round % 2 == 0) job_submit(b.engine, twin);
        job_check(seeded);
        job_wait(twin);
        assert_memory_not_equal(seeded->choice[0].id, twin->choice[0].id, 16 * sizeof(int32_t));
        job_free(seeded);
        job_free(twin);
    }
    bench_close(&b);
}

static void unseeded_requests_differ_and_repeat_with_the_engines_seed(void **state) {
    (void)state;
    static int32_t said[3][2][16];
    for (int run = 0; run < 3; run++) {
        struct engine_config config = bench_config();
        config.seed = run < 2 ? 5 : 6;
        struct bench b = bench_open(&config, MANY_SLABS);
        for (int i = 0; i < 2; i++) {
            struct job *j = choices(1, 16, 16);
            j->r.sampling.has_seed = false;
            job_submit(b.engine, j);
            job_wait(j);
            memcpy(said[run][i], j->choice[0].id, sizeof said[run][i]);
            job_free(j);
        }
        bench_close(&b);
    }
    assert_memory_equal(said[0], said[1], sizeof said[0]);
    assert_memory_not_equal(said[0], said[2], sizeof said[0]);
    assert_memory_not_equal(said[0][0], said[0][1], sizeof said[0][0]);
}

/* ---- order ---- */

static void the_queue_is_first_come_first_served_or_by_priority(void **state) {
    (void)state;
    static const int64_t priority[] = {5, 3, 9, 3, -1};
    static const int32_t order[2][5] = {{1, 2, 3, 4, 5}, {1, 3, 5, 4, 2}};
    for (int policy = 0; policy < 2; policy++) {
        struct engine_config config = bench_config();
        config.max_num_seqs = 1;
        config.priority_policy = policy;
        struct bench b = bench_open(&config, MANY_SLABS);
        struct job *job[5];
        fake_permit(b.fake, 0);
        for (int i = 0; i < 5; i++) {
            job[i] = choices(1, 5, 4);
            job[i]->r.priority = priority[i];
            job_submit(b.engine, job[i]);
            if (i == 0) fake_await(b.fake, 1); /* runs already: nobody overtakes it */
        }
        fake_permit(b.fake, -1);
        for (int i = 0; i < 5; i++) job_check(job[i]);
        for (int i = 0; i < 5; i++)
            assert_int_equal(job[i]->order - (client_n_ended - 5), order[policy][i]);
        for (int i = 0; i < 5; i++) job_free(job[i]);
        bench_close(&b);
    }
}

static void a_long_prompt_does_not_hold_up_answers(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_batched_tokens = 20;
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *quick = choices(1, 4, 30), *slow = choices(1, 900, 2);
    fake_permit(b.fake, 0);
    job_submit(b.engine, quick);
    fake_await(b.fake, 1);
    job_submit(b.engine, slow);
    fake_permit(b.fake, -1);
    job_check(quick);
    job_check(slow);
    assert_true(quick->order < slow->order); /* 30 steps against 900 / 19 */
    job_free(quick);
    job_free(slow);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_alone_says_what_the_model_says),
        cmocka_unit_test(neighbours_change_nothing),
        cmocka_unit_test(chunks_change_nothing),
        cmocka_unit_test(preemption_changes_nothing),
        cmocka_unit_test(long_answers_are_preempted_while_they_grow),
        cmocka_unit_test(choice_i_is_a_request_with_seed_plus_i),
        cmocka_unit_test(choices_share_the_prompts_pages),
        cmocka_unit_test(choices_survive_a_small_pool),
        cmocka_unit_test(a_waiting_requests_pages_yield),
        cmocka_unit_test(a_prompt_starts_only_where_it_fits_beside_others),
        cmocka_unit_test(a_cancelled_request_stops_before_the_next_step),
        cmocka_unit_test(every_choice_of_a_cancelled_request_ends),
        cmocka_unit_test(a_storm_of_cancels_leaves_nothing_behind),
        cmocka_unit_test(closing_aborts_what_is_open),
        cmocka_unit_test(a_seeded_request_ignores_unseeded_neighbours),
        cmocka_unit_test(unseeded_requests_differ_and_repeat_with_the_engines_seed),
        cmocka_unit_test(the_queue_is_first_come_first_served_or_by_priority),
        cmocka_unit_test(a_long_prompt_does_not_hold_up_answers),
    };
    return cmocka_run_group_tests(tests, client_fill, NULL);
}
