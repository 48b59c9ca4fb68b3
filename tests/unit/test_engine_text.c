/* engine/: replay, and what becomes of text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine_client.h"

/* ---- replay ---- */

static void replay_says_its_list_and_then_the_end_token(void **state) {
    (void)state;
    static const int32_t script[] = {5, 6, 7, 8, 9}, stop[] = {7};
    struct engine_config config = bench_config();
    config.replay = true;
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int kind = 0; kind < 6; kind++) {
        struct job *j = job_new(prompt, 300, 50);
        struct sampling *s = &j->r.sampling;
        j->r.replay = script, j->r.n_replay = 5;
        int32_t n = 6;
        enum finish finish = FINISH_STOP;
        if (kind == 1) s->max_tokens = n = 3, finish = FINISH_LENGTH;
        if (kind == 2) s->stop_ids = (struct token_list){stop, 1}, n = 3;
        if (kind == 3) s->min_tokens = 3, s->stop_ids = (struct token_list){stop, 1}, n = 6;
        if (kind == 4) s->ignore_eos = true, s->max_tokens = n = 8, finish = FINISH_LENGTH;
        if (kind == 5) j->r.replay = NULL, j->r.n_replay = 0, n = 1;
        j->r.n = kind == 0 ? 4 : 1;
        s->n_logprobs = 2, s->n_prompt_logprobs = 0;
        job_submit(b.engine, j);
        job_wait(j);
        for (int c = 0; c < j->r.n; c++) {
            struct choice_log *log = &j->choice[c];
            assert_int_equal(log->n, n);
            assert_int_equal(log->finish, finish);
            for (int i = 0; i < n; i++) {
                assert_int_equal(log->id[i], i < 5 && kind != 5 ? script[i] : FAKE_EOS);
                assert_int_equal(log->n_top[i], 1);
                const struct token_logprob *top = log->top + (size_t)i * j->width;
                assert_int_equal(top->id, log->id[i]);
                assert_true(top->logprob == 0 && top->rank == 1);
            }
            assert_int_equal(log->n_prompt_top[0], 0);
            assert_int_equal(log->n_prompt_top[299], 1);
        }
        job_free(j);
    }
    assert_int_equal(b.fake->n_begun, 0); /* nothing was computed */
    bench_check_idle(&b);
    struct job *j = job_new(prompt, 3, 50);
    const int32_t beyond[] = {FAKE_VOCAB};
    j->r.replay = beyond, j->r.n_replay = 1;
    assert_refused(b.engine, j, SUMI_ERR_ARG, "replay", "id 50");
    bench_close(&b);
}

static void replays_take_turns(void **state) {
    (void)state;
    static int32_t script[400];
    struct engine_config config = bench_config();
    config.replay = true;
    struct bench b = bench_open(&config, MANY_SLABS);
    for (int i = 0; i < 400; i++) script[i] = 1 + i % 40;
    struct job *job[4];
    for (int i = 0; i < 4; i++) {
        job[i] = job_new(prompt, 4, 500);
        job[i]->r.replay = script;
        job[i]->r.n_replay = (size_t)(400 - 100 * i);
        job_submit(b.engine, job[i]);
    }
    for (int i = 0; i < 4; i++) {
        job_wait(job[i]);
        assert_int_equal(job[i]->choice[0].n, 401 - 100 * i);
    }
    for (int i = 0; i < 4; i++) job_free(job[i]);
    bench_check_idle(&b);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_says_its_list_and_then_the_end_token),
        cmocka_unit_test(replays_take_turns),
    };
    return cmocka_run_group_tests(tests, client_fill, NULL);
}
