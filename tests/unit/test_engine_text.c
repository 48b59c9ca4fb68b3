/* engine/: replay, and what becomes of text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine_client.h"
#include "text/bytelevel.h"

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

/* ---- text ---- */

/* Ids 0 to 255 are bytes, then these. */
enum { NEWLINES = 256, THINK, END, N_ID };

static struct tokenizer *open_tokenizer(void) {
    static char spelling[THINK][8];
    static struct token_text vocab[THINK];
    for (int id = 0; id < THINK; id++) {
        const char byte = (char)id, *raw = id == NEWLINES ? "a\n\nb" : &byte;
        size_t n = id == NEWLINES ? 4 : 1, len = 0;
        for (size_t i = 0; i < n; i++)
            len += (size_t)utf8_encode(byte_to_char((unsigned char)raw[i]), spelling[id] + len);
        vocab[id] = (struct token_text){spelling[id], len};
    }
    static const struct added_token added[] = {
        {.id = THINK, .text = "<think>", .len = 7},
        {.id = END, .text = "<|end|>", .len = 7, .special = true}};
    struct tokenizer_lists lists = {.vocab = vocab, .n_vocab = THINK, .added = added, .n_added = 2};
    struct tokenizer *t;
    if (tokenizer_open_lists(&t, &lists, &err) != SUMI_OK) fail_msg("%s", err.msg);
    return t;
}

/* An engine that replays, without any model. */
struct stage {
    struct tokenizer *tokenizer;
    struct engine *engine;
};

static struct stage stage_open(void) {
    static const int32_t eos[] = {END};
    struct stage s = {.tokenizer = open_tokenizer()};
    struct engine_config config = bench_config();
    config.replay = true;
    config.eos = eos;
    if (engine_open(&s.engine, &config, NULL, s.tokenizer, &err) != SUMI_OK)
        fail_msg("%s", err.msg);
    return s;
}

static void stage_close(struct stage *s) {
    engine_close(s->engine);
    tokenizer_close(s->tokenizer);
}

/* A job whose answer is this text, a byte a token; '#' stands for the token with two line ends, '@'
 * for <think>. */
static struct job *speech(const char *text, int32_t max_tokens) {
    struct job *j = job_new(prompt, 3, max_tokens);
    size_t n = strlen(text);
    int32_t *ids = calloc(n + 1, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = text[i] == '#' ? NEWLINES : text[i] == '@' ? THINK : (unsigned char)text[i];
    j->r.replay = ids;
    j->r.n_replay = n;
    return j;
}

static void set_stops(struct job *j, const char *const *stop, size_t n) {
    static size_t len[4];
    for (size_t i = 0; i < n; i++) len[i] = strlen(stop[i]);
    j->r.sampling.stop = stop;
    j->r.sampling.stop_len = len;
    j->r.sampling.n_stop = n;
}

/* Runs the job and compares; n: tokens delivered. */
static void hear(struct stage *s, struct job *j, const char *text, int32_t n, enum finish finish,
                 int32_t stop_string) {
    job_submit(s->engine, j);
    job_wait(j);
    for (int32_t i = 0; i < j->r.n; i++) {
        struct choice_log *c = &j->choice[i];
        assert_string_equal(buf_text(&c->text), text);
        assert_int_equal(c->n, n);
        assert_int_equal(c->finish, finish);
        assert_int_equal(c->stop_string, stop_string);
    }
    free((void *)(uintptr_t)j->r.replay);
    job_free(j);
}

static struct job *speech_until(const char *text, const char *const *stop, size_t n_stop) {
    struct job *j = speech(text, 500);
    set_stops(j, stop, n_stop);
    return j;
}

static void a_stop_string_may_be_spread_over_tokens(void **state) {
    (void)state;
    static const char *const fox[] = {"own fox"}, *const lines[] = {"\n\n"};
    static const char *const nested[] = {"abc", "ab"}, *const smile[] = {"\xF0\x9F\x98\x80!"};
    struct stage s = stage_open();
    hear(&s, speech_until("The quick brown fox jumps", fox, 1), "The quick br", 19, FINISH_STOP, 0);
    hear(&s, speech_until("xyz#tail", lines, 1), "xyza", 4, FINISH_STOP, 0);
    hear(&s, speech_until("xabcd", nested, 2), "x", 3, FINISH_STOP, 1); /* it ends first */
    hear(&s, speech_until("a\xF0\x9F\x98\x80!b", smile, 1), "a", 6, FINISH_STOP, 0);
    struct job *j = speech_until("The quick brown fox jumps", fox, 1);
    j->r.sampling.include_stop = true;
    hear(&s, j, "The quick brown fox", 19, FINISH_STOP, 0);
    j = speech_until("The quick brown fox jumps", fox, 1);
    j->r.n = 3; /* each choice holds back its own text */
    hear(&s, j, "The quick br", 19, FINISH_STOP, 0);
    j = speech_until("fox. The brown fox", fox, 1);
    j->r.sampling.min_tokens = 18; /* the string would end with the eighteenth */
    hear(&s, j, "fox. The brown fox", 19, FINISH_STOP, -1);
    j = speech_until("fox. The brown fox", fox, 1);
    j->r.sampling.min_tokens = 17;
    hear(&s, j, "fox. The br", 18, FINISH_STOP, 0);
    stage_close(&s);
}

static void held_text_comes_with_every_other_end(void **state) {
    (void)state;
    static const char *const fox[] = {"own fox"};
    struct stage s = stage_open();
    struct job *j = speech_until("The quick brown fox", fox, 1);
    j->r.sampling.max_tokens = 18;
    hear(&s, j, "The quick brown fo", 18, FINISH_LENGTH, -1);
    j = speech_until("The quick brown fox", fox, 1);
    j->r.sampling.max_tokens = 19; /* both at once: the string wins */
    hear(&s, j, "The quick br", 19, FINISH_STOP, 0);
    hear(&s, speech_until("a brown fo", fox, 1), "a brown fo", 11, FINISH_STOP, -1);
    j = speech_until("a brown fo!", fox, 1);
    const int32_t bang = '!';
    j->r.sampling.stop_ids = (struct token_list){&bang, 1};
    hear(&s, j, "a brown fo", 11, FINISH_STOP, -1);
    stage_close(&s);
}

static void characters_are_whole_or_not_there(void **state) {
    (void)state;
    struct stage s = stage_open();
    hear(&s, speech("a\xF0\x9F\x98\x80", 500), "a\xF0\x9F\x98\x80", 6, FINISH_STOP, -1);
    hear(&s, speech("a\xF0\x9F\x98\x80", 4), "a", 4, FINISH_LENGTH, -1);
    hear(&s, speech("a\xF0\x9F", 500), "a", 4, FINISH_STOP, -1);
    stage_close(&s);
}

static void the_stopping_tokens_text_is_hidden_unless_asked_for(void **state) {
    (void)state;
    static const int32_t stop[] = {'d'};
    struct stage s = stage_open();
    struct job *j = speech("abcdef", 500);
    j->r.sampling.stop_ids = (struct token_list){stop, 1};
    hear(&s, j, "abc", 4, FINISH_STOP, -1);
    j = speech("abcdef", 500);
    j->r.sampling.stop_ids = (struct token_list){stop, 1};
    j->r.sampling.include_stop = true;
    hear(&s, j, "abcd", 4, FINISH_STOP, -1);
    j = speech("abc", 500);
    j->r.sampling.skip_special = false;
    hear(&s, j, "abc", 4, FINISH_STOP, -1);
    j = speech("abc", 500);
    j->r.sampling.skip_special = false;
    j->r.sampling.include_stop = true;
    hear(&s, j, "abc<|end|>", 4, FINISH_STOP, -1);
    j = speech("abc", 500);
    j->r.sampling.include_stop = true; /* a special token stays silent */
    hear(&s, j, "abc", 4, FINISH_STOP, -1);
    j = speech("abc", 6); /* ignored, an end token is a token like others */
    j->r.sampling.skip_special = false;
    j->r.sampling.ignore_eos = true;
    hear(&s, j, "abc<|end|><|end|><|end|>", 6, FINISH_LENGTH, -1);
    stage_close(&s);
}

static void added_tokens_are_pieces_of_their_own(void **state) {
    (void)state;
    struct stage s = stage_open();
    struct job *j = speech("a@b@", 500);
    int32_t *ids = (int32_t *)(uintptr_t)j->r.replay;
    job_submit(s.engine, j);
    job_wait(j);
    assert_string_equal(buf_text(&j->choice[0].text), "a<think>b<think>");
    assert_int_equal(j->choice[0].n_piece_id, 2);
    free(ids);
    job_free(j);
    stage_close(&s);
}

/* '(' is made certain and the stop string is longer than the answer, so all of it is held back. */
static void a_cancelled_answer_releases_what_it_held(void **state) {
    (void)state;
    static const char *const stop[] = {"(((((((((((((((((((((((((((((((((((((((("};
    static const struct token_bias bias[] = {{'(', 100}};
    struct fake *f = fake_open(MANY_SLABS, 4096);
    struct engine_config config = bench_config();
    struct tokenizer *t = open_tokenizer();
    struct engine *e;
    assert_int_equal(engine_open(&e, &config, &f->stepper, t, &err), SUMI_OK);
    struct job *j = endless(5, 500);
    j->r.sampling.bias = bias, j->r.sampling.n_bias = 1;
    set_stops(j, stop, 1);
    fake_permit(f, 5);
    job_submit(e, j);
    fake_await(f, 6);
    assert_int_equal(j->choice[0].text.len, 0);
    engine_cancel(e, j->id);
    fake_permit(f, -1);
    job_wait(j);
    assert_int_equal(j->choice[0].finish, FINISH_ABORT);
    assert_string_equal(buf_text(&j->choice[0].text), "((((((");
    job_free(j);
    engine_close(e);
    tokenizer_close(t);
    fake_close(f);
}

static void short_memory_loses_no_order(void **state) {
    (void)state;
    static const char *const stop[] = {"own fox"};
    struct stage s = stage_open();
    int n_refused = 0, n_error = 0;
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct job *j = speech_until("The quick brown fo@", stop, 1);
        int32_t *ids = (int32_t *)(uintptr_t)j->r.replay;
        j->r.sampling.max_tokens = 18;
        j->r.n = 2;
        for (int c = 0; c < 2; c++) { /* the client's own memory is not the matter */
            buf_printf(&j->choice[c].text, "%64d", 0);
            buf_clear(&j->choice[c].text);
        }
        long before = mem_count();
        mem_fail_at(n);
        sumi_status status = engine_submit(s.engine, &j->r, &j->id, &err);
        if (status == SUMI_OK) job_wait(j);
        mem_fail_at(0);
        failed = mem_count() - before >= n;
        if (status != SUMI_OK) {
            assert_int_equal(status, SUMI_ERR_MEMORY);
            n_refused++;
        } else if (j->choice[0].finish == FINISH_ERROR || j->choice[1].finish == FINISH_ERROR) {
            n_error++;
        } else {
            assert_string_equal(buf_text(&j->choice[0].text), "The quick brown fo");
        }
        free(ids);
        job_free(j);
    }
    assert_true(n_refused >= 4);
    assert_true(n_error >= 4);
    stage_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_says_its_list_and_then_the_end_token),
        cmocka_unit_test(replays_take_turns),
        cmocka_unit_test(a_stop_string_may_be_spread_over_tokens),
        cmocka_unit_test(held_text_comes_with_every_other_end),
        cmocka_unit_test(characters_are_whole_or_not_there),
        cmocka_unit_test(the_stopping_tokens_text_is_hidden_unless_asked_for),
        cmocka_unit_test(added_tokens_are_pieces_of_their_own),
        cmocka_unit_test(a_cancelled_answer_releases_what_it_held),
        cmocka_unit_test(short_memory_loses_no_order),
    };
    return cmocka_run_group_tests(tests, client_fill, NULL);
}
