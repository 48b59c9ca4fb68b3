/* engine/: what is refused, where answers end, log probabilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine_client.h"

/* ---- lengths ---- */

static void the_context_is_filled_and_not_passed(void **state) {
    (void)state;
    enum { CONTEXT = 100 };
    static const size_t over[] = {CONTEXT, CONTEXT + 1, 10 * CONTEXT};
    struct engine_config config = bench_config();
    config.max_model_len = CONTEXT;
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int32_t room = 1; room <= 2; room++) {
        struct job *j = endless(CONTEXT - (size_t)room, 16);
        job_submit(b.engine, j);
        job_check_within(j, room);
        assert_int_equal(j->choice[0].n, room);
        assert_int_equal(j->choice[0].finish, FINISH_LENGTH);
        job_free(j);
        assert_works(&b);
    }
    for (size_t i = 0; i < 3; i++) {
        char count[32];
        snprintf(count, sizeof count, "has %zu", over[i]);
        assert_refused(b.engine, endless(over[i], 16), SUMI_ERR_LIMIT, "input_tokens",
                       "maximum context length is 100 tokens");
        assert_non_null(strstr(err.msg, count));
        assert_non_null(strstr(err.msg, "reduce the length of the input prompt"));
        assert_works(&b);
    }
    assert_refused(b.engine, endless(0, 16), SUMI_ERR_ARG, "prompt", "empty");
    bench_close(&b);
}

/* 19 slabs: with steps of at most 32 rows the windows need at most 4 (100 + 31 positions) and 2
 * (17 + 31), so 13 are left for the layer that sees everything: 832 positions of 1024. */
static void a_prompt_that_can_never_fit_is_refused_at_once(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_num_batched_tokens = 32;
    config.n_slab_override = 19;
    struct bench b = bench_open(&config, MANY_SLABS);
    assert_int_equal(engine_stats(b.engine).slab_total, 19);
    int32_t room = (19 - 4 - 2) * PAGE_TOKENS;
    assert_refused(b.engine, endless(900, 16), SUMI_ERR_LIMIT, "input_tokens",
                   "at most 832 tokens");
    assert_non_null(strstr(err.msg, "has 900"));
    assert_refused(b.engine, endless((size_t)room, 16), SUMI_ERR_LIMIT, "input_tokens", "832");
    for (int i = 0; i < 3; i++) assert_works(&b);
    /* Four whose budgets do not fit together, nor alone: all end, as long as the pool is. */
    struct job *job[4];
    fake_permit(b.fake, 0);
    for (int i = 0; i < 4; i++) job_submit(b.engine, job[i] = endless(300, 600));
    fake_permit(b.fake, -1);
    for (int i = 0; i < 4; i++) {
        job_check_within(job[i], room - 300);
        assert_int_equal(job[i]->choice[0].n, room - 300);
        job_free(job[i]);
    }
    assert_true(engine_stats(b.engine).n_preemption > 0);
    bench_check_idle(&b);
    bench_close(&b);
}

static void a_pool_too_small_for_the_context_is_refused(void **state) {
    (void)state;
    struct fake *f = fake_open(19, 4096);
    struct engine_config config = bench_config();
    struct engine *e;
    config.max_num_batched_tokens = 32;
    assert_int_equal(engine_open(&e, &config, &f->stepper, NULL, &err), SUMI_ERR_LIMIT);
    assert_null(e);
    assert_string_equal(err.param, "max_model_len");
    assert_non_null(strstr(err.msg, "1024"));
    assert_non_null(strstr(err.msg, "largest length that fits is 832"));
    config.max_model_len = 832;
    assert_int_equal(engine_open(&e, &config, &f->stepper, NULL, &err), SUMI_OK);
    engine_close(e);
    fake_close(f);
}

static void bad_configurations_name_their_field(void **state) {
    (void)state;
    struct fake *f = fake_open(MANY_SLABS, 100);
    const int32_t beyond[] = {FAKE_VOCAB};
    struct engine *e;
#define BAD(param_, ...)                                                              \
    do {                                                                              \
        struct engine_config c = bench_config();                                      \
        c.max_num_batched_tokens = 64;                                                \
        __VA_ARGS__;                                                                  \
        memset(&err, 0, sizeof err);                                                  \
        assert_int_equal(engine_open(&e, &c, &f->stepper, NULL, &err), SUMI_ERR_ARG); \
        assert_null(e);                                                               \
        assert_string_equal(err.param, param_);                                       \
        assert_true(err.msg[0] != 0);                                                 \
    } while (0)
    BAD("max_num_seqs", c.max_num_seqs = 0);
    BAD("max_num_batched_tokens", c.max_num_batched_tokens = 0);
    BAD("max_num_batched_tokens", c.max_num_batched_tokens = 7);
    BAD("max_num_batched_tokens", c.max_num_seqs = 101, c.max_num_batched_tokens = 200);
    BAD("max_model_len", c.max_model_len = 1);
    BAD("prefill_chunk", c.prefill_chunk = -1);
    BAD("max_num_queued_reqs", c.max_num_queued_reqs = -1);
    BAD("max_num_queued_tokens", c.max_num_queued_tokens = -1);
    BAD("max_logprobs", c.max_logprobs = -2);
    BAD("n_slab_override", c.n_slab_override = -1);
    BAD("", c.n_slab_override = MANY_SLABS + 1);
    BAD("", c.eos = beyond);
    BAD("", c.replay = true, c.n_eos = 0);
#undef BAD
    struct engine_config config = bench_config();
    assert_int_equal(engine_open(&e, &config, NULL, NULL, &err), SUMI_ERR_ARG);
    config.replay = true;
    assert_int_equal(engine_open(&e, &config, NULL, NULL, &err), SUMI_ERR_ARG);
    fake_close(f);
}

static void bad_requests_name_their_field(void **state) {
    (void)state;
    static const int32_t beyond[] = {1, FAKE_VOCAB}, below[] = {-1};
    static const char *const stop[] = {"x"};
    static const size_t stop_len[] = {1};
    struct engine_config config = bench_config();
    config.max_logprobs = 20;
    struct bench b = bench_open(&config, MANY_SLABS);
#define BAD(param_, text_, ...)                                   \
    do {                                                          \
        struct job *j = endless(5, 5);                            \
        struct request *r = &j->r;                                \
        __VA_ARGS__;                                              \
        assert_refused(b.engine, j, SUMI_ERR_ARG, param_, text_); \
    } while (0)
    BAD("n", "found 0", r->n = 0);
    BAD("n", "16384", r->n = 16385);
    BAD("n", "temperature 0", r->n = 2, r->sampling.temperature = 0);
    BAD("prompt", "id 50", r->prompt = beyond, r->n_prompt = 2);
    BAD("prompt", "id -1", r->prompt = below, r->n_prompt = 1);
    BAD("temperature", "found 3", r->sampling.temperature = 3);
    BAD("logprobs", "at most 20", r->sampling.n_logprobs = 21);
    BAD("replay", "replay", r->replay = beyond, r->n_replay = 1);
    BAD("stop", "tokenizer", r->sampling.stop = stop, r->sampling.stop_len = stop_len,
        r->sampling.n_stop = 1);
    BAD("", "on_event", r->on_event = NULL);
    BAD("", "on_end", r->on_end = NULL);
#undef BAD
    assert_works(&b);
    bench_close(&b);
}

/* ---- ends ---- */

/* An answer long enough to pick tokens from, and the job to have it again. */
static void say(struct bench *b, struct job *j, int32_t *id, int32_t n) {
    job_submit(b->engine, j);
    job_check(j);
    assert_true(j->choice[0].n >= n);
    memcpy(id, j->choice[0].id, (size_t)n * sizeof *id);
    job_free(j);
}

static int32_t first_at(const int32_t *ids, int32_t id) {
    int32_t i = 0;
    while (ids[i] != id) i++;
    return i;
}

static void a_stop_id_ends_the_answer_and_is_named(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    int32_t id[40];
    say(&b, endless(20, 40), id, 40);
    int32_t stop = id[12], at = first_at(id, stop);
    struct job *j = endless(20, 40);
    j->r.sampling.stop_ids = (struct token_list){&stop, 1};
    job_submit(b.engine, j);
    job_check(j);
    assert_int_equal(j->choice[0].n, at + 1); /* the stop token is delivered and counted */
    assert_int_equal(j->choice[0].id[at], stop);
    assert_int_equal(j->choice[0].finish, FINISH_STOP);
    assert_int_equal(j->choice[0].stop_token, stop);
    assert_int_equal(j->choice[0].stop_string, -1);
    job_free(j);
    bench_check_idle(&b);
    bench_close(&b);
}

static void an_end_token_is_not_named_and_can_be_ignored(void **state) {
    (void)state;
    static const struct token_bias bias[] = {{FAKE_EOS, 1.5f}};
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    int32_t id[60];
    for (int ignore = 1; ignore >= 0; ignore--) {
        for (int named = 0; named < 2; named++) {
            const int32_t eos = FAKE_EOS;
            struct job *j = job_new(prompt, 20, 60);
            struct sampling *s = &j->r.sampling;
            s->bias = bias, s->n_bias = 1;
            s->ignore_eos = ignore;
            if (named) s->stop_ids = (struct token_list){&eos, 1};
            job_submit(b.engine, j);
            job_check(j);
            struct choice_log *c = &j->choice[0];
            if (ignore && !named) {
                assert_int_equal(c->n, 60);
                memcpy(id, c->id, sizeof id);
            } else {
                assert_int_equal(c->n, first_at(id, FAKE_EOS) + 1);
                assert_int_equal(c->finish, FINISH_STOP);
                /* As a stop id of the request it counts even when the model's is ignored. */
                assert_int_equal(c->stop_token, ignore ? FAKE_EOS : -1);
            }
            job_free(j);
        }
    }
    bench_close(&b);
}

static void min_tokens_holds_off_every_end(void **state) {
    (void)state;
    static const struct token_bias bias[] = {{FAKE_EOS, 50}, {7, 49}};
    static const int32_t stop[] = {7};
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int32_t least = 0; least <= 10; least += 5) {
        struct job *j = job_new(prompt, 20, 30);
        struct sampling *s = &j->r.sampling;
        s->bias = bias, s->n_bias = 2;
        s->stop_ids = (struct token_list){stop, 1};
        s->min_tokens = least;
        job_submit(b.engine, j);
        job_check(j);
        assert_int_equal(j->choice[0].n, least + 1); /* the end token follows at once */
        assert_int_equal(j->choice[0].finish, FINISH_STOP);
        job_free(j);
    }
    bench_close(&b);
}

/* ---- log probabilities ---- */

/* Compares with the same functions on logits that come from the tokens alone. */
static void check_prompt_scores(struct job *j, int32_t choice) {
    struct choice_log *c = &j->choice[choice];
    struct fake_history *h = calloc(1, sizeof *h);
    struct token_logprob top[FAKE_VOCAB + 1];
    float logits[FAKE_VOCAB];
    struct sampler *w;
    assert_int_equal(sampler_open(&w, FAKE_VOCAB, NULL), SUMI_OK);
    assert_non_null(c->prompt_top);
    assert_int_equal(c->n_prompt_top[0], 0);
    for (size_t i = 1; i < j->r.n_prompt; i++) {
        size_t n;
        fake_say(h, j->r.prompt[i - 1], logits);
        assert_int_equal(
            row_logprobs(w, logits, j->r.prompt[i], j->r.sampling.n_prompt_logprobs, top, &n, NULL),
            SUMI_OK);
        assert_int_equal(c->n_prompt_top[i], n);
        assert_memory_equal(c->prompt_top + i * j->width, top, n * sizeof *top);
    }
    sampler_close(w);
    free(h);
}

static void prompts_are_scored_in_any_chunks(void **state) {
    (void)state;
    static const int32_t rows[] = {8, 50, 256};
    for (int i = 0; i < 3; i++) {
        struct engine_config config = bench_config();
        config.max_num_batched_tokens = rows[i];
        struct bench b = bench_open(&config, MANY_SLABS);
        struct job *job[4];
        static const size_t length[] = {1, 2, 150, 333};
        for (int k = 0; k < 4; k++) {
            job[k] = endless(length[k], 4);
            job[k]->r.sampling.n_prompt_logprobs = k;
            job[k]->r.n = 3;
            job_submit(b.engine, job[k]);
        }
        for (int k = 0; k < 4; k++) {
            job_check(job[k]);
            for (int c = 0; c < 3; c++) check_prompt_scores(job[k], c);
            job_free(job[k]);
        }
        bench_check_idle(&b);
        bench_close(&b);
    }
}

static void prompt_scores_survive_preemption(void **state) {
    (void)state;
    struct engine_config config = bench_config();
    config.max_model_len = 500;
    config.max_num_seqs = 2;
    config.max_num_batched_tokens = 4; /* the old one grows by 100 while the prompt is read */
    struct bench b = bench_open(&config, 16);
    struct job *old = endless(60, 400), *scored = endless(400, 4);
    scored->r.sampling.n_prompt_logprobs = 2;
    fake_permit(b.fake, 0);
    job_submit(b.engine, old);
    job_submit(b.engine, scored);
    fake_permit(b.fake, -1);
    job_check(old);
    job_check(scored);
    check_prompt_scores(scored, 0);
    assert_true(engine_stats(b.engine).n_preemption > 0);
    job_free(old);
    job_free(scored);
    bench_check_idle(&b);
    bench_close(&b);
}

static void tokens_carry_the_log_probabilities_asked_for(void **state) {
    (void)state;
    static const int32_t list[] = {3, 4};
    struct engine_config config = bench_config();
    struct bench b = bench_open(&config, MANY_SLABS);
    struct job *none = endless(10, 5), *some = endless(10, 5), *listed = endless(10, 5);
    some->r.sampling.n_logprobs = 4;
    listed->r.sampling.logprob_ids = (struct token_list){list, 2};
    job_submit(b.engine, none);
    job_submit(b.engine, some);
    job_submit(b.engine, listed);
    job_check(none);
    job_check(some);
    job_check(listed);
    struct fake_history *h = calloc(1, sizeof *h);
    float logits[FAKE_VOCAB];
    for (int i = 0; i < 10; i++) fake_say(h, prompt[i], logits);
    for (int i = 0; i < 5; i++) {
        int32_t id = some->choice[0].id[i], better = 0;
        double sum = 0;
        for (int t = 0; t < FAKE_VOCAB; t++) {
            sum += exp((double)logits[t]);
            better += logits[t] > logits[id];
        }
        const struct token_logprob *top = some->choice[0].top + (size_t)i * some->width;
        assert_int_equal(top[0].id, id);
        assert_int_equal(top[0].rank, better + 1);
        assert_true(fabs((double)top[0].logprob - ((double)logits[id] - log(sum))) < 1e-5);
        assert_int_equal(some->choice[0].n_top[i], better < 4 ? 4 : 5);
        assert_int_equal(none->choice[0].n_top[i], 0);
        top = listed->choice[0].top + (size_t)i * listed->width;
        assert_int_equal(top[0].id, id);
        assert_int_equal(listed->choice[0].n_top[i], id == 3 || id == 4 ? 2 : 3);
        fake_say(h, id, logits);
    }
    free(h);
    job_free(none);
    job_free(some);
    job_free(listed);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_context_is_filled_and_not_passed),
        cmocka_unit_test(a_prompt_that_can_never_fit_is_refused_at_once),
        cmocka_unit_test(a_pool_too_small_for_the_context_is_refused),
        cmocka_unit_test(bad_configurations_name_their_field),
        cmocka_unit_test(bad_requests_name_their_field),
        cmocka_unit_test(a_stop_id_ends_the_answer_and_is_named),
        cmocka_unit_test(an_end_token_is_not_named_and_can_be_ignored),
        cmocka_unit_test(min_tokens_holds_off_every_end),
        cmocka_unit_test(prompts_are_scored_in_any_chunks),
        cmocka_unit_test(prompt_scores_survive_preemption),
        cmocka_unit_test(tokens_carry_the_log_probabilities_asked_for),
    };
    return cmocka_run_group_tests(tests, client_fill, NULL);
}
