/* Projections over tiles, then head norms, rotation and cache write row by row. The angles of a
 * row are formed once for all its heads. */
#include <math.h>
#include <string.h>

#include "device/cpu.h"
#include "ops/cache.h"
#include "ops/norm_qkv/norm_qkv.h"
#include "ops/rows_fast.h"

struct job {
    const struct cpu_kernels *kernels;
    const struct op *op;
    const struct step *s;
};

struct angles {
    float cosine[OP_MAX_HEAD_DIM / 2], sine[OP_MAX_HEAD_DIM / 2];
};

static void finish_head(const struct job *j, const float *w, const struct angles *a, float *x) {
    const struct op_norm_qkv *p = &j->op->u.norm_qkv;
    int32_t d = p->cache.head_dim;
    j->kernels->norm(x, w, d, j->op->eps, j->s->bf16, x);
    if (p->inv_freq) j->kernels->rotate(x, a->cosine, a->sine, d, j->s->bf16);
}

static void one_row(void *ctx, int64_t r) {
    const struct job *j = ctx;
    const struct op_norm_qkv *p = &j->op->u.norm_qkv;
    const struct op_cache *c = &p->cache;
    int32_t d = c->head_dim;
    float *q = p->q_out + r * p->n_head * d;
    float *k = p->kv + r * 2 * c->n_kv * d, *v = k + c->n_kv * d;
    struct angles a;
    for (int32_t i = 0; p->inv_freq && i < d / 2; i++) {
        float angle = (float)j->s->pos[r] * p->inv_freq[i];
        a.cosine[i] = cosf(angle);
        a.sine[i] = sinf(angle);
    }
    for (int32_t h = 0; h < p->n_head; h++) finish_head(j, p->q_norm, &a, q + h * d);
    for (int32_t h = 0; h < c->n_kv; h++) {
        finish_head(j, p->k_norm, &a, k + h * d);
        cache_store(c, j->s, (int32_t)r, h, 0, k + h * d);
        cache_store(c, j->s, (int32_t)r, h, 1, v + h * d);
    }
}

sumi_status norm_qkv_fast(struct device *d, const struct op *op, const struct step *s,
                          sumi_error *err) {
    (void)err;
    const struct op_norm_qkv *p = &op->u.norm_qkv;
    int64_t width = (int64_t)p->cache.n_kv * p->cache.head_dim;
    size_t n = (size_t)s->n_row * (size_t)op->hidden;
    if (s->layer_input) memcpy(op->x, s->layer_input + (size_t)op->layer * n, n * sizeof *op->x);
    norm_rows_fast(d, s, op->x, p->norm, op->hidden, op->eps, p->a);
    const struct product in[] = {{&p->q, p->q_out, p->q.n_out, s->bf16},
                                 {&p->k, p->kv, 2 * width, s->bf16},
                                 {&p->v, p->kv + width, 2 * width, s->bf16}};
    linear_fast(d, in, 3, p->a, s->n_row, op->hidden);
    struct job j = {cpu_device(d)->kernels, op, s};
    run_rows(d, s->n_row, one_row, &j);
    return SUMI_OK;
}
