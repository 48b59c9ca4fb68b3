/* A caller's request flows in, a copy that outlives the call flows out: all lists in one block of
 * memory, one sequence per choice. Knows neither the queue nor the model. */
#include "engine/task.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"

/* A block that is first measured (base NULL), then filled by the same calls. */
struct block {
    char *base;
    size_t used;
    bool overflow;
};

static void *put(struct block *b, const void *p, size_t count, size_t size) {
    size_t bytes, room, end;
    if (!size_mul(count, size, &bytes) || !size_align(bytes, sizeof(void *), &room) ||
        !size_add(b->used, room, &end)) {
        b->overflow = true;
        return NULL;
    }
    char *to = b->base ? b->base + b->used : NULL;
    if (to && bytes) memcpy(to, p, bytes);
    b->used = end;
    return to;
}

static void put_ids(struct block *b, struct token_list *list) {
    list->id = put(b, list->id, list->n, sizeof *list->id);
}

static void put_lists(struct block *b, struct request *r, const struct request *from) {
    struct sampling *s = &r->sampling;
    *r = *from;
    r->prompt = put(b, from->prompt, from->n_prompt, sizeof *from->prompt);
    r->replay = put(b, from->replay, from->n_replay, sizeof *from->replay);
    put_ids(b, &s->stop_ids);
    put_ids(b, &s->allowed);
    put_ids(b, &s->logprob_ids);
    s->bias = put(b, s->bias, s->n_bias, sizeof *s->bias);
    struct token_list *bad = put(b, s->bad_words, s->n_bad, sizeof *bad);
    for (size_t i = 0; i < s->n_bad; i++) {
        struct token_list one = from->sampling.bad_words[i];
        put_ids(b, &one);
        if (bad) bad[i] = one;
    }
    s->bad_words = bad;
    s->stop_len = put(b, s->stop_len, s->n_stop, sizeof *s->stop_len);
    const char **stop = put(b, s->stop, s->n_stop, sizeof *stop);
    for (size_t i = 0; i < s->n_stop; i++) {
        const char *text = put(b, from->sampling.stop[i], from->sampling.stop_len[i], sizeof(char));
        if (stop) stop[i] = text;
    }
    s->stop = stop;
}

static sumi_status copy_request(struct task *t, const struct request *r, sumi_error *err) {
    struct block b = {0};
    put_lists(&b, &t->r, r);
    if (b.overflow) return NO_MEMORY(err, SIZE_MAX);
    t->memory = mem_alloc(b.used);
    if (!t->memory) return NO_MEMORY(err, b.used);
    b = (struct block){.base = t->memory};
    put_lists(&b, &t->r, r);
    return SUMI_OK;
}

static sumi_status open_choices(struct task *t, const struct tokenizer *tokenizer,
                                sumi_error *err) {
    const struct sampling *s = &t->r.sampling;
    const struct stream_options options = {
        .stop = s->stop,
        .stop_len = s->stop_len,
        .n_stop = s->n_stop,
        .include_stop = s->include_stop,
        .skip_special = s->skip_special,
        .min_tokens = (size_t)s->min_tokens,
    };
    size_t n = (size_t)t->r.n;
    t->choice = mem_zero(n, sizeof *t->choice);
    if (!t->choice) return NO_MEMORY(err, n * sizeof *t->choice);
    for (size_t i = 0; i < n; i++) {
        struct choice *c = &t->choice[i];
        c->task = t;
        c->index = (int32_t)i;
        if (!tokenizer) continue;
        TRY(stream_open(&c->stream, tokenizer, &options, err));
        stream_prime(c->stream, t->r.prompt, t->r.n_prompt);
    }
    t->n_open = t->n_unstarted = t->r.n;
    return SUMI_OK;
}

static sumi_status open_prompt_scores(struct task *t, sumi_error *err) {
    if (t->r.sampling.n_prompt_logprobs < 0) return SUMI_OK;
    size_t n = t->r.n_prompt, width = (size_t)t->r.sampling.n_prompt_logprobs + 1, n_top;
    t->prompt_token = mem_zero(n, sizeof *t->prompt_token);
    if (!t->prompt_token) return NO_MEMORY(err, n * sizeof *t->prompt_token);
    if (size_mul(n, width, &n_top)) t->prompt_top = mem_zero(n_top, sizeof *t->prompt_top);
    if (!t->prompt_top)
        return fail_param(err, SUMI_ERR_MEMORY, "prompt_logprobs",
                          "out of memory: %zu log probabilities for each of %zu prompt tokens",
                          width, n);
    for (size_t i = 0; i < n; i++) t->prompt_token[i].id = t->r.prompt[i];
    t->n_scored = 1; /* nothing precedes the first token */
    return SUMI_OK;
}

sumi_status task_open(struct task **out, const struct request *r, const struct tokenizer *t,
                      sumi_error *err) {
    *out = NULL;
    struct task *task = mem_zero(1, sizeof *task);
    if (!task) return NO_MEMORY(err, sizeof *task);
    sumi_status status;
    TRY_OUT(copy_request(task, r, err));
    TRY_OUT(open_prompt_scores(task, err));
    TRY_OUT(open_choices(task, t, err));
    *out = task;
    return SUMI_OK;
out:
    task_close(task);
    return status;
}

void task_close(struct task *t) {
    if (!t) return;
    for (int32_t i = 0; t->choice && i < t->r.n; i++) {
        if (t->choice[i].stream) stream_close(t->choice[i].stream);
        mem_free(t->choice[i].output);
    }
    mem_free(t->choice);
    mem_free(t->prompt_token);
    mem_free(t->prompt_top);
    mem_free(t->memory);
    mem_free(t);
}

void task_seed(struct task *t, uint64_t seed) {
    for (int32_t i = 0; i < t->r.n; i++) t->choice[i].seed = seed + (uint64_t)i;
}

sumi_status choice_append(struct choice *c, int32_t id, sumi_error *err) {
    enum { FIRST_ROOM = 64 };
    if (c->n_output == c->cap_output) {
        int64_t most = c->task->r.sampling.max_tokens;
        int64_t cap = min_i64(most, max_i64(FIRST_ROOM, 2 * (int64_t)c->cap_output));
        int32_t *grown = mem_resize(c->output, (size_t)cap, sizeof *grown);
        if (!grown) return NO_MEMORY(err, (size_t)cap * sizeof *grown);
        c->output = grown;
        c->cap_output = (int32_t)cap;
    }
    c->output[c->n_output++] = id;
    return SUMI_OK;
}
