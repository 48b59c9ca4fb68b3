/* The forward pass as a list of block operations: read forward.c top to bottom for what the models
 * compute. */
#ifndef SUMI_MODEL_FORWARD_H
#define SUMI_MODEL_FORWARD_H

#include "model/model.h"
#include "ops/op.h"

/* Device memory that the operations of a list share; each is reused by every layer. */
struct forward_buffers {
    float *x;         /* [max_rows][hidden] residual */
    float *a, *y;     /* [max_rows][hidden] */
    float *q, *o;     /* [max_rows][n_head * head_dim] */
    float *kv;        /* [max_rows][2 * n_kv * head_dim] */
    float *gate, *up; /* [max_rows][widest MLP that is not an expert] */
    float *router;    /* [max_rows][n_expert] */
    int32_t *ids;     /* [max_rows][top_k] */
    float *weights;   /* [max_rows][top_k] */
    float *act;       /* [max_rows * top_k][2 * expert_width] */
    float *each;      /* [max_rows * top_k][hidden] */
    int32_t *order;   /* [2 * max_rows * top_k + n_expert + 1] */
    float *inv_freq;  /* [head_dim / 2] */
    uint8_t *pool;    /* [n_slab][slab_bytes] */
    size_t slab_bytes;
};

static inline int32_t forward_count(const struct model *m) {
    return 2 + 4 * m->n_layer;
}

/* Writes forward_count(m) entries. The list stays valid as long as model and buffers do; what
 * changes from step to step is in struct step. */
void forward_list(const struct model *m, const struct forward_buffers *b, struct op *list);

/* inv_freq[i] = f32(1 / f32(theta^(2i/d))): two roundings, as the reference does. */
void rope_frequencies(double theta, int32_t head_dim, float *inv_freq);

#endif
