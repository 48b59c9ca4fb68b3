/* The engine's door: configuration and requests flow in from any thread, checked before the
 * engine's own thread sees them. Knows neither JSON nor HTTP, and not which model runs. */
#include "engine/engine.h"

#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "engine/state.h"

/* Logit rows a step may spend on prompt log probabilities: bounds the memory for logits, which a
 * whole chunk's rows would multiply. */
enum { MAX_SCORES = 64, MAX_CHOICES = 16384 };

/* ---- open ---- */

static sumi_status check_config(const struct engine_config *c, sumi_error *err) {
    const struct {
        const char *name;
        int64_t value, least;
    } number[] = {
        {"max_num_seqs", c->max_num_seqs, 1},
        {"max_num_batched_tokens", c->max_num_batched_tokens, 1},
        {"max_model_len", c->max_model_len, 2},
        {"prefill_chunk", c->prefill_chunk, 0},
        {"max_num_queued_reqs", c->max_num_queued_reqs, 0},
        {"max_num_queued_tokens", c->max_num_queued_tokens, 0},
        {"max_logprobs", c->max_logprobs, -1},
        {"n_slab_override", c->n_slab_override, 0},
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (number[i].value < number[i].least)
            return fail_param(err, SUMI_ERR_ARG, number[i].name,
                              "%s must be at least %lld, found %lld", number[i].name,
                              (long long)number[i].least, (long long)number[i].value);
    if (c->replay && c->n_eos == 0)
        return fail_with(err, SUMI_ERR_ARG,
                         "replay needs an end token, and the model names none; set eos_token_id in "
                         "its generation config");
    return SUMI_OK;
}

/* Vocabulary and end tokens. */
static sumi_status set_tokens(struct engine *e, const struct engine_config *config,
                              const struct stepper *stepper, sumi_error *err) {
    if (stepper) e->vocab = stepper->vocab;
    else if (e->tokenizer) e->vocab = tokenizer_size(e->tokenizer);
    e->logit_stride = config->replay ? 0 : (size_t)e->vocab;
    e->eos = mem_alloc(config->n_eos * sizeof *e->eos);
    if (!e->eos) return NO_MEMORY(err, config->n_eos * sizeof *e->eos);
    for (size_t i = 0; i < config->n_eos; i++) {
        e->eos[i] = config->eos[i];
        if (e->eos[i] < 0 || e->eos[i] >= e->vocab)
            return fail_with(err, SUMI_ERR_ARG,
                             "end token %d is not in the vocabulary of %d tokens; correct "
                             "eos_token_id in the generation config",
                             (int)e->eos[i], (int)e->vocab);
    }
    e->config.eos = e->answer.eos = e->eos;
    e->answer.n_eos = config->n_eos;
    return SUMI_OK;
}

static sumi_status set_limits(struct engine *e, sumi_error *err) {
    const struct engine_config *c = &e->config;
    struct scheduler *s = &e->sched;
    s->max_seqs = c->max_num_seqs;
    s->max_rows = c->max_num_batched_tokens;
    s->max_scores = MAX_SCORES;
    if (!c->replay && s->max_rows > e->stepper.max_rows) s->max_rows = e->stepper.max_rows;
    if (s->max_rows < s->max_seqs)
        return fail_param(err, SUMI_ERR_ARG, "max_num_batched_tokens",
                          "a step of %d tokens is too small for max_num_seqs %d: each running "
                          "sequence needs one; raise max_num_batched_tokens or lower max_num_seqs",
                          (int)s->max_rows, (int)s->max_seqs);
    s->max_chunk = c->prefill_chunk ? (int32_t)min_i64(c->prefill_chunk, s->max_rows) : s->max_rows;
    return SUMI_OK;
}

static sumi_status open_pages(struct engine *e, sumi_error *err) {
    const struct engine_config *c = &e->config;
    struct cache_shape shape = e->stepper.cache;
    int32_t n = c->n_slab_override ? c->n_slab_override : e->stepper.n_slab;
    if (n > e->stepper.n_slab)
        return fail_with(err, SUMI_ERR_ARG, "%d slabs are asked for, the cache has %d", (int)n,
                         (int)e->stepper.n_slab);
    if (c->replay && n == 0) shape.n_layer = 0; /* nothing is computed, nothing need be kept */
    TRY(pages_open(&e->pages, &shape, n, err));
    e->sched.pages = e->pages;
    e->stats.slab_total = n;
    e->max_len = pages_fit(e->pages, e->sched.max_chunk, c->max_model_len);
    if (e->max_len < c->max_model_len && !c->n_slab_override)
        return fail_param(err, SUMI_ERR_LIMIT, "max_model_len",
                          "the cache of %d slabs cannot hold one sequence of max_model_len %d; the "
                          "largest length that fits is %d: lower --max-model-len or give the cache "
                          "more memory",
                          (int)n, (int)c->max_model_len, (int)e->max_len);
    return SUMI_OK;
}

static sumi_status open_parts(struct engine *e, const struct engine_config *config,
                              const struct stepper *stepper, sumi_error *err) {
    TRY(set_tokens(e, config, stepper, err));
    TRY(set_limits(e, err));
    TRY(open_pages(e, err));
    TRY(sched_open(&e->sched, err));
    TRY(sampler_open(&e->sampler, e->vocab, err));
    return step_open(&e->step, e->sched.max_rows, e->sched.max_seqs, e->sched.max_seqs + MAX_SCORES,
                     (int32_t)e->logit_stride, err);
}

static void free_parts(struct engine *e) {
    step_close(&e->step);
    sampler_close(e->sampler);
    sched_close(&e->sched);
    pages_close(e->pages);
    answer_reset(&e->answer);
    mem_free(e->top);
    mem_free(e->eos);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

/* Signals are the main thread's affair. */
static int start_thread(struct engine *e) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&e->thread, NULL, engine_main, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed;
}

sumi_status engine_open(struct engine **out, const struct engine_config *config,
                        const struct stepper *stepper, const struct tokenizer *tokenizer,
                        sumi_error *err) {
    *out = NULL;
    TRY(check_config(config, err));
    if (!config->replay && (!stepper || !stepper->step))
        return fail_with(err, SUMI_ERR_ARG, "an engine without replay needs a model to run");
    if (!stepper && !tokenizer)
        return fail_with(err, SUMI_ERR_ARG, "replay needs a tokenizer: it defines the vocabulary");
    struct engine *e = mem_zero(1, sizeof *e);
    if (!e) return NO_MEMORY(err, sizeof *e);
    e->config = *config;
    e->tokenizer = tokenizer;
    if (stepper) e->stepper = *stepper;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->wake, NULL);
    sumi_status status = open_parts(e, config, stepper, err);
    if (status == SUMI_OK && start_thread(e) != 0)
        status = fail_with(err, SUMI_ERR_MEMORY, "the engine's thread could not be started");
    if (status != SUMI_OK) {
        free_parts(e);
        return status;
    }
    *out = e;
    return SUMI_OK;
}

void engine_close(struct engine *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    free_parts(e);
}

/* ---- submit ---- */

static sumi_status check_ids(const struct engine *e, const char *name, const int32_t *ids, size_t n,
                             sumi_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= e->vocab)
            return fail_param(err, SUMI_ERR_ARG, name,
                              "%s token %zu is id %d, which is not in the vocabulary of %d tokens",
                              name, i, (int)ids[i], (int)e->vocab);
    return SUMI_OK;
}

/* The prompt and at least one more token must fit, alone. The texts are those that agents look for
 * when they decide to shorten a conversation. */
static sumi_status check_length(const struct engine *e, size_t n, sumi_error *err) {
    if (n == 0)
        return fail_param(err, SUMI_ERR_ARG, "prompt",
                          "the prompt is empty; at least one token is "
                          "needed to go on from");
    if (n >= (size_t)e->config.max_model_len)
        return fail_param(err, SUMI_ERR_LIMIT, "input_tokens",
                          "this model's maximum context length is %d tokens, and the prompt has "
                          "%zu, which leaves no room for an answer; reduce the length of the input "
                          "prompt",
                          (int)e->config.max_model_len, n);
    if (n >= (size_t)e->max_len)
        return fail_param(err, SUMI_ERR_LIMIT, "input_tokens",
                          "the cache holds sequences of at most %d tokens, and the prompt has %zu, "
                          "which leaves no room for an answer; reduce the length of the input "
                          "prompt, or give the cache more memory",
                          (int)e->max_len, n);
    return SUMI_OK;
}

/* Checks the caller's values and settles them against the engine's limits. */
static sumi_status check_request(const struct engine *e, struct request *r, sumi_error *err) {
    struct sampling *s = &r->sampling;
    if (!r->on_event || !r->on_end)
        return fail_with(err, SUMI_ERR_ARG, "a request needs on_event and on_end");
    if (r->n < 1 || r->n > MAX_CHOICES)
        return fail_param(err, SUMI_ERR_ARG, "n", "n must be between 1 and %d, found %d",
                          MAX_CHOICES, (int)r->n);
    TRY(check_length(e, r->n_prompt, err));
    TRY(check_ids(e, "prompt", r->prompt, r->n_prompt, err));
    TRY(sampling_check(s, e->vocab, e->config.max_logprobs, err));
    if (s->temperature == 0 && r->n > 1)
        return fail_param(err, SUMI_ERR_ARG, "n",
                          "n must be 1 with temperature 0, which gives the same answer each time; "
                          "found %d",
                          (int)r->n);
    if (s->n_stop > 0 && !e->tokenizer)
        return fail_param(err, SUMI_ERR_ARG, "stop", "stop strings need a tokenizer");
    if (r->n_replay > 0 && !e->config.replay)
        return fail_param(err, SUMI_ERR_ARG, "replay",
                          "replay is only possible with --load-format replay");
    TRY(check_ids(e, "replay", r->replay, r->n_replay, err));
    s->max_tokens = (int32_t)min_i64(s->max_tokens, e->max_len - (int64_t)r->n_prompt);
    return SUMI_OK;
}

/* Under the lock. */
static sumi_status check_admission(const struct engine *e, int32_t n, sumi_error *err) {
    const struct engine_config *c = &e->config;
    if (e->stats.dead) return fail_with(err, SUMI_ERR_STATE, "the engine has failed");
    if (e->closing || e->draining)
        return fail_with(err, SUMI_ERR_STATE, "the engine takes no more requests: it shuts down");
    if (c->max_num_queued_reqs > 0 && e->n_open + n > c->max_num_queued_reqs)
        return fail_with(err, SUMI_ERR_BUSY,
                         "%lld requests are waiting or running, and at most %d may be; try later",
                         (long long)e->n_open, (int)c->max_num_queued_reqs);
    if (c->max_num_queued_tokens > 0 && e->unread_tokens >= c->max_num_queued_tokens)
        return fail_with(err, SUMI_ERR_BUSY,
                         "%lld prompt tokens are waiting to be read, and the limit is %lld; try "
                         "later",
                         (long long)e->unread_tokens, (long long)c->max_num_queued_tokens);
    return SUMI_OK;
}

/* Under the lock. */
static void enter(struct engine *e, struct task *t) {
    const struct sampling *s = &t->r.sampling;
    struct task **bucket;
    t->id = t->arrival = ++e->n_arrival;
    t->priority = e->config.priority_policy ? t->r.priority : 0;
    task_seed(t, s->has_seed ? s->seed : random_bits(e->config.seed, t->arrival, STREAM_SEED));
    bucket = &e->bucket[t->id % ID_BUCKETS];
    t->id_next = *bucket;
    *bucket = t;
    *(e->inbox ? &e->inbox_last->next : &e->inbox) = t;
    e->inbox_last = t;
    e->n_open += t->r.n;
    e->unread_tokens += task_prompt(t);
    pthread_cond_signal(&e->wake);
}

sumi_status engine_submit(struct engine *e, const struct request *r, uint64_t *id,
                          sumi_error *err) {
    struct request checked = *r;
    struct task *t;
    TRY(check_request(e, &checked, err));
    TRY(task_open(&t, &checked, e->tokenizer, err));
    pthread_mutex_lock(&e->lock);
    sumi_status status = check_admission(e, r->n, err);
    if (status == SUMI_OK) {
        enter(e, t);
        *id = t->id;
    }
    pthread_mutex_unlock(&e->lock);
    if (status != SUMI_OK) task_close(t);
    return status;
}

/* ---- the rest ---- */

void engine_cancel(struct engine *e, uint64_t id) {
    pthread_mutex_lock(&e->lock);
    struct task *t = e->bucket[id % ID_BUCKETS];
    while (t && t->id != id) t = t->id_next;
    if (t) {
        t->cancelled = e->any_cancelled = true;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
}

void engine_drain(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    pthread_mutex_unlock(&e->lock);
}

struct engine_stats engine_stats(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    struct engine_stats s = e->stats;
    s.n_waiting = (int32_t)(e->n_open - s.n_running);
    pthread_mutex_unlock(&e->lock);
    return s;
}
