/* Reference attention over pages. */
#include <math.h>

#include "ops/attention/attention.h"
#include "ops/cache.h"
#include "ops/linear.h"

struct job {
    const struct op *op;
    const struct step *s;
};

/* A softmax in progress: values seen so far are scaled by exp(-max). */
struct running {
    float max, sum;
    float o[OP_MAX_HEAD_DIM];
};

static void rescale(struct running *a, float max, int32_t d) {
    if (max <= a->max) return;
    float f = expf(a->max - max);
    a->sum *= f;
    for (int32_t i = 0; i < d; i++) a->o[i] *= f;
    a->max = max;
}

/* Positions [from, to] of one page. */
static void one_page(const struct job *j, int32_t seq, int32_t h, const float *q, int32_t from,
                     int32_t to, struct running *a) {
    const struct op_attention *p = &j->op->u.attention;
    const struct op_cache *c = &p->cache;
    int32_t d = c->head_dim;
    float score[PAGE_TOKENS], x[OP_MAX_HEAD_DIM], max = -INFINITY;
    for (int32_t i = from; i <= to; i++) {
        cache_load(c, j->s, cache_at(c, j->s, seq, i, h, 0), x);
        score[i - from] = dot_ref(q, x, d) * p->scale;
        if (score[i - from] > max) max = score[i - from];
    }
    rescale(a, max, d);
    for (int32_t i = from; i <= to; i++) {
        float e = expf(score[i - from] - a->max);
        a->sum += e;
        if (j->s->bf16) e = bf16_round(e);
        cache_load(c, j->s, cache_at(c, j->s, seq, i, h, 1), x);
        for (int32_t k = 0; k < d; k++) a->o[k] += e * x[k];
    }
}

static void one_head(void *ctx, int64_t part) {
    const struct job *j = ctx;
    const struct op_attention *p = &j->op->u.attention;
    int32_t d = p->cache.head_dim;
    int32_t r = (int32_t)(part / p->n_head), head = (int32_t)(part % p->n_head);
    int32_t h = head / (p->n_head / p->cache.n_kv), pos = j->s->pos[r];
    int32_t first = p->window && pos >= p->window ? pos - p->window + 1 : 0;
    struct running a = {.max = -INFINITY};
    for (int32_t from = first, to; from <= pos; from = to + 1) {
        to = from / PAGE_TOKENS * PAGE_TOKENS + PAGE_TOKENS - 1;
        if (to > pos) to = pos;
        one_page(j, j->s->seq_of[r], h, p->q + part * d, from, to, &a);
    }
    if (p->sink) {
        rescale(&a, p->sink[head], d);
        a.sum += expf(p->sink[head] - a.max);
    }
    for (int32_t i = 0; i < d; i++) {
        float v = a.o[i] / a.sum;
        p->o[part * d + i] = j->s->bf16 ? bf16_round(v) : v;
    }
}

sumi_status attention_ref(struct device *d, const struct op *op, const struct step *s,
                          sumi_error *err) {
    (void)err;
    struct job j = {op, s};
    pool_run(d->pool, (int64_t)s->n_row * op->u.attention.n_head, one_head, &j);
    return SUMI_OK;
}
