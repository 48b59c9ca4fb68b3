/* One step of a batch: what the engine hands to a model and what it gets back. The engine fills a
 * batch from its page tables; model/forward.c (through a runner) or a stand-in executes it. */
#ifndef SUMI_MODEL_BATCH_H
#define SUMI_MODEL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"
#include "base/status.h"

/* What the page manager must know of a model: one slab holds PAGE_TOKENS positions of one layer. */
struct cache_shape {
    int n_layer;
    const int32_t *window; /* [n_layer] positions a query sees, itself included; 0: all */
    size_t slab_bytes;
};

/* Optional copies of what passes through a step, for checks. Any pointer may be NULL. */
struct taps {
    float *hidden;       /* [n_layer + 1][n_row][hidden] residual: [0] embedding, [i + 1] after i */
    float *attn_out;     /* [n_layer][n_row][hidden] branch before the residual add */
    float *mlp_out;      /* [n_layer][n_row][hidden] branch before the residual add */
    float *final_norm;   /* [n_row][hidden] input of the head */
    int32_t *router_ids; /* [n_moe][n_row][top_k] best first */
    float *router_weights; /* [n_moe][n_row][top_k] same order */
};

struct batch {
    int32_t n_row;         /* tokens of this step; those of one sequence are adjacent */
    const int32_t *token;  /* [n_row] */
    const int32_t *pos;    /* [n_row] absolute positions, consecutive within a sequence */
    const int32_t *seq_of; /* [n_row] index into seq */
    int32_t n_seq;
    const struct seq_pages *seq; /* [n_seq] slabs for every position up to the last row's */
    int32_t n_logit;
    const int32_t *logit_row; /* [n_logit] rows whose logits are wanted, ascending */

    const int32_t *route;     /* NULL, or [n_moe][n_row][top_k]: expert choices to take */
    const float *layer_input; /* NULL, or [n_layer][n_row][hidden]: residual to give each layer */
    const struct taps *taps;  /* NULL, or where to copy intermediate results */
};

/* Whoever executes steps. `logits` is f32 [n_logit][vocab]; ids without token text are -inf. A
 * failed step leaves nothing behind that the next step could see. */
struct stepper {
    void *ctx;
    sumi_status (*step)(void *ctx, const struct batch *batch, float *logits, sumi_error *err);
    int32_t vocab;
    struct cache_shape cache;
    int32_t n_slab;   /* slabs in the pool */
    int32_t max_rows; /* largest batch */
};

#endif
