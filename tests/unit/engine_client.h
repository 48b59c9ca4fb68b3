/* A client of the engine for tests: submits a request, records its events, waits for its end, and
 * works out independently what the answer must be. Needs cmocka and fake_stepper.h. */
#ifndef SUMI_TEST_ENGINE_CLIENT_H
#define SUMI_TEST_ENGINE_CLIENT_H

#include "base/buf.h"
#include "engine/engine.h"
#include "fake_stepper.h"

enum { MAX_ANSWER = 600, MAX_CHOICE = 8 };

struct choice_log {
    int32_t id[MAX_ANSWER];
    int32_t n, n_event;
    enum finish finish;
    int32_t stop_token, stop_string;
    sumi_error error;
    struct buf text;
    int32_t n_piece_id;        /* pieces that are added tokens */
    struct token_logprob *top; /* [n][width] */
    size_t n_top[MAX_ANSWER];
    struct token_logprob *prompt_top; /* [n_prompt][width] */
    size_t *n_prompt_top;             /* [n_prompt] */
};

struct job {
    struct request r;
    uint64_t id;
    size_t width; /* most log probabilities per token */
    struct choice_log choice[MAX_CHOICE];
    int32_t broken; /* events against the contract */
    int32_t order;  /* the how-manieth to end, from 1 */
    bool ended;
};

static pthread_mutex_t client_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t client_moved = PTHREAD_COND_INITIALIZER;
static int32_t client_n_ended;

static inline void log_prompt(struct job *j, struct choice_log *c, const struct event *e) {
    size_t n = (size_t)e->n_prompt;
    c->prompt_top = calloc(n * j->width, sizeof *c->prompt_top);
    c->n_prompt_top = calloc(n, sizeof *c->n_prompt_top);
    for (size_t i = 0; i < n; i++) {
        const struct token_event *t = &e->prompt_token[i];
        if (t->id != j->r.prompt[i] || t->n_top > j->width) j->broken++;
        c->n_prompt_top[i] = t->n_top;
        if (t->n_top) memcpy(c->prompt_top + i * j->width, t->top, t->n_top * sizeof *t->top);
    }
}

static inline void log_token(struct job *j, struct choice_log *c, const struct token_event *t) {
    if (c->n == MAX_ANSWER || t->n_top > j->width) {
        j->broken++;
        return;
    }
    if (!c->top) c->top = calloc(MAX_ANSWER * j->width, sizeof *c->top);
    if (t->n_top) memcpy(c->top + (size_t)c->n * j->width, t->top, t->n_top * sizeof *t->top);
    c->n_top[c->n] = t->n_top;
    c->id[c->n++] = t->id;
}

static inline void client_event(void *user, const struct event *e) {
    struct job *j = user;
    pthread_mutex_lock(&client_lock);
    struct choice_log *c = &j->choice[e->choice];
    if (j->ended || c->finish != FINISH_NONE || e->choice < 0 || e->choice >= j->r.n) j->broken++;
    if (e->prompt_token) {
        if (c->n_event > 0) j->broken++;
        log_prompt(j, c, e);
    }
    for (size_t i = 0; i < e->n_token; i++) log_token(j, c, &e->token[i]);
    for (size_t i = 0; i < e->n_piece; i++) {
        buf_put(&c->text, e->piece[i].text, e->piece[i].n);
        c->n_piece_id += e->piece[i].id >= 0;
    }
    if (e->n_output != c->n || e->n_prompt != (int32_t)j->r.n_prompt) j->broken++;
    if (e->finish == FINISH_NONE && (e->n_token == 0 || e->stop_token != -1)) j->broken++;
    if ((e->finish == FINISH_ERROR) != (e->error != NULL)) j->broken++;
    c->n_event++;
    c->finish = e->finish;
    c->stop_token = e->stop_token;
    c->stop_string = e->stop_string;
    if (e->error) c->error = *e->error;
    pthread_cond_broadcast(&client_moved);
    pthread_mutex_unlock(&client_lock);
}

static inline void client_end(void *user) {
    struct job *j = user;
    pthread_mutex_lock(&client_lock);
    for (int32_t i = 0; i < j->r.n; i++)
        if (j->choice[i].finish == FINISH_NONE) j->broken++;
    if (j->ended) j->broken++;
    j->ended = true;
    j->order = ++client_n_ended;
    pthread_cond_broadcast(&client_moved);
    pthread_mutex_unlock(&client_lock);
}

/* A job with default sampling, seed 1 and at most max_tokens; the prompt is borrowed. */
static inline struct job *job_new(const int32_t *prompt, size_t n_prompt, int32_t max_tokens) {
    struct job *j = calloc(1, sizeof *j);
    j->width = FAKE_VOCAB + 1;
    j->r = (struct request){.prompt = prompt,
                            .n_prompt = n_prompt,
                            .sampling = sampling_default(),
                            .n = 1,
                            .on_event = client_event,
                            .on_end = client_end,
                            .user = j};
    j->r.sampling.max_tokens = max_tokens;
    j->r.sampling.has_seed = true;
    j->r.sampling.seed = 1;
    return j;
}

static inline void job_free(struct job *j) {
    for (int32_t i = 0; i < MAX_CHOICE; i++) {
        free(j->choice[i].top);
        free(j->choice[i].prompt_top);
        free(j->choice[i].n_prompt_top);
        buf_reset(&j->choice[i].text);
    }
    free(j);
}

static inline void job_submit(struct engine *e, struct job *j) {
    sumi_error err = {0};
    sumi_status status = engine_submit(e, &j->r, &j->id, &err);
    if (status != SUMI_OK) fail_msg("submit: %s", err.msg);
}

static inline void job_wait(struct job *j) {
    pthread_mutex_lock(&client_lock);
    while (!j->ended) pthread_cond_wait(&client_moved, &client_lock);
    pthread_mutex_unlock(&client_lock);
    assert_int_equal(j->broken, 0);
}

/* Waits until choice 0 has n tokens. */
static inline void job_await(struct job *j, int32_t n) {
    pthread_mutex_lock(&client_lock);
    while (j->choice[0].n < n && !j->ended) pthread_cond_wait(&client_moved, &client_lock);
    pthread_mutex_unlock(&client_lock);
}

/* ---- what the answer must be ---- */

struct expected {
    int32_t id[MAX_ANSWER];
    int32_t n;
    enum finish finish;
};

static inline bool client_holds(const struct token_list *list, int32_t id) {
    for (size_t i = 0; i < list->n; i++)
        if (list->id[i] == id) return true;
    return false;
}

/* The answer of choice i, from the tokens alone. `limit`: most output tokens. */
static inline struct expected job_expect(const struct job *j, int32_t choice, int32_t limit) {
    struct expected x = {.finish = FINISH_NONE};
    struct fake_history *h = calloc(1, sizeof *h);
    const struct sampling *s = &j->r.sampling;
    const int32_t eos[] = {FAKE_EOS};
    float logits[FAKE_VOCAB];
    struct token_logprob top[FAKE_VOCAB + 1];
    struct sampler *w;
    if (s->max_tokens < limit) limit = s->max_tokens;
    assert_int_equal(sampler_open(&w, FAKE_VOCAB, NULL), SUMI_OK);
    for (size_t i = 0; i < j->r.n_prompt; i++) fake_say(h, j->r.prompt[i], logits);
    while (x.finish == FINISH_NONE) {
        const struct sample_context c = {.prompt = j->r.prompt,
                                         .n_prompt = j->r.n_prompt,
                                         .output = x.id,
                                         .n_output = (size_t)x.n,
                                         .eos = eos,
                                         .n_eos = 1,
                                         .position = (int64_t)j->r.n_prompt + x.n,
                                         .seed = s->seed + (uint64_t)choice};
        int32_t id;
        size_t n_top;
        assert_int_equal(sample_token(w, s, &c, logits, &id, top, &n_top, NULL), SUMI_OK);
        x.id[x.n++] = id;
        bool end = (id == FAKE_EOS && !s->ignore_eos) || client_holds(&s->stop_ids, id);
        if (end) x.finish = FINISH_STOP;
        else if (x.n == limit) x.finish = FINISH_LENGTH;
        else fake_say(h, id, logits);
    }
    sampler_close(w);
    free(h);
    return x;
}

static inline void job_check_within(struct job *j, int32_t limit) {
    job_wait(j);
    for (int32_t i = 0; i < j->r.n; i++) {
        struct expected x = job_expect(j, i, limit);
        assert_int_equal(j->choice[i].n, x.n);
        assert_memory_equal(j->choice[i].id, x.id, (size_t)x.n * sizeof *x.id);
        assert_int_equal(j->choice[i].finish, x.finish);
    }
}

/* Waits, and compares every choice with what it must be. */
static inline void job_check(struct job *j) {
    job_check_within(j, MAX_ANSWER);
}

/* ---- an engine over a fake model ---- */

struct bench {
    struct fake *fake;
    struct engine *engine;
};

static inline struct engine_config bench_config(void) {
    static const int32_t eos[] = {FAKE_EOS};
    return (struct engine_config){.max_num_seqs = 8,
                                  .max_num_batched_tokens = 256,
                                  .max_model_len = FAKE_MAX_LEN,
                                  .max_logprobs = -1,
                                  .eos = eos,
                                  .n_eos = 1};
}

static inline struct bench bench_open(const struct engine_config *config, int32_t n_slab) {
    struct bench b = {.fake = fake_open(n_slab, 4096)};
    sumi_error err = {0};
    if (engine_open(&b.engine, config, &b.fake->stepper, NULL, &err) != SUMI_OK)
        fail_msg("open: %s", err.msg);
    return b;
}

/* Everything is given back and nothing went wrong unseen. */
static inline void bench_check_idle(struct bench *b) {
    struct engine_stats s = engine_stats(b->engine);
    assert_int_equal(s.slab_used, 0);
    assert_int_equal(s.n_running, 0);
    assert_int_equal(s.n_waiting, 0);
    assert_false(s.dead);
    assert_int_equal(b->fake->n_fault, 0);
}

static inline void bench_close(struct bench *b) {
    engine_close(b->engine);
    fake_close(b->fake);
}

/* ---- shorthand ---- */

enum { MANY_SLABS = 600 };

static int32_t prompt[FAKE_MAX_LEN * 10]; /* requests' prompts are pieces of this list */
static sumi_error err;

static inline int client_fill(void **state) {
    (void)state;
    for (int32_t i = 0; i < FAKE_MAX_LEN * 10; i++)
        prompt[i] = (int32_t)(fake_mix((uint64_t)i + 999) % (FAKE_VOCAB - 1));
    return 0;
}

static inline struct job *endless(size_t n_prompt, int32_t max_tokens) {
    struct job *j = job_new(prompt, n_prompt, max_tokens);
    j->r.sampling.ignore_eos = true;
    return j;
}

static inline void assert_refused(struct engine *e, struct job *j, sumi_status status,
                                  const char *param, const char *text) {
    memset(&err, 0, sizeof err);
    assert_int_equal(engine_submit(e, &j->r, &j->id, &err), status);
    assert_string_equal(err.param, param);
    if (!strstr(err.msg, text)) fail_msg("\"%s\" lacks \"%s\"", err.msg, text);
    assert_false(j->ended);
    job_free(j);
}

static inline void assert_works(struct bench *b) {
    struct job *j = job_new(prompt, 5, 5);
    job_submit(b->engine, j);
    job_check(j);
    job_free(j);
    bench_check_idle(b);
}

#endif
