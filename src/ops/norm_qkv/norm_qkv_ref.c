/* Reference projections, head norms, rotation and cache write. */
#include <math.h>
#include <string.h>

#include "ops/cache.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/norm_qkv/norm_qkv.h"
#include "ops/rows.h"

/* Norm and rotation of one head's vector, in place. */
static void finish_head(float *x, const float *w, const struct op *op, const struct step *s,
                        int32_t pos) {
    const float *freq = op->u.norm_qkv.inv_freq;
    int32_t d = op->u.norm_qkv.cache.head_dim, half = d / 2;
    rms_norm_ref(x, w, d, op->eps, s->bf16, x);
    if (!freq) return;
    for (int32_t i = 0; i < half; i++) {
        float angle = (float)pos * freq[i];
        float c = cosf(angle), n = sinf(angle), a = x[i], b = x[i + half];
        x[i] = a * c - b * n;
        x[i + half] = b * c + a * n;
        if (!s->bf16) continue;
        x[i] = bf16_round(x[i]);
        x[i + half] = bf16_round(x[i + half]);
    }
}

struct job {
    const struct op *op;
    const struct step *s;
};

static void one_row(void *ctx, int64_t r) {
    const struct job *j = ctx;
    const struct op_norm_qkv *p = &j->op->u.norm_qkv;
    const struct op_cache *c = &p->cache;
    int32_t d = c->head_dim, pos = j->s->pos[r];
    float *q = p->q_out + r * p->n_head * d;
    float *k = p->kv + r * 2 * c->n_kv * d, *v = k + c->n_kv * d;
    for (int32_t h = 0; h < p->n_head; h++) finish_head(q + h * d, p->q_norm, j->op, j->s, pos);
    for (int32_t h = 0; h < c->n_kv; h++) {
        finish_head(k + h * d, p->k_norm, j->op, j->s, pos);
        cache_store(c, j->s, (int32_t)r, h, 0, k + h * d);
        cache_store(c, j->s, (int32_t)r, h, 1, v + h * d);
    }
}

sumi_status norm_qkv_ref(struct device *d, const struct op *op, const struct step *s,
                         sumi_error *err) {
    (void)err;
    const struct op_norm_qkv *p = &op->u.norm_qkv;
    int64_t width = (int64_t)p->cache.n_kv * p->cache.head_dim;
    size_t n = (size_t)s->n_row * (size_t)op->hidden;
    if (s->layer_input) memcpy(op->x, s->layer_input + (size_t)op->layer * n, n * sizeof *op->x);
    norm_rows_ref(d->pool, s, op->x, p->norm, op->hidden, op->eps, p->a);
    linear_ref(d->pool, &p->q, p->a, s->n_row, op->hidden, p->q_out, p->q.n_out, s->bf16);
    linear_ref(d->pool, &p->k, p->a, s->n_row, op->hidden, p->kv, 2 * width, s->bf16);
    linear_ref(d->pool, &p->v, p->a, s->n_row, op->hidden, p->kv + width, 2 * width, s->bf16);
    struct job j = {op, s};
    pool_run(d->pool, s->n_row, one_row, &j);
    return SUMI_OK;
}
