/* A model as data. model/<family>.c reads a config and binds tensors; everything else walks this
 * description and never asks which family it is. */
#ifndef SUMI_MODEL_MODEL_H
#define SUMI_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

/* A matrix [n_out][n_in] in its stored format; value = decode(data) * scale. */
struct weight {
    enum dtype dtype;
    const void *data; /* borrowed from the checkpoint, or from the model's own memory */
    int64_t n_out, n_in;
    size_t row_bytes;
    float scale; /* NVFP4's per-tensor scale, applied to the f32 sum of a product; else 1 */
};

struct attention {
    int32_t window; /* positions a query sees, itself included; 0: all before it */
    bool rope;      /* rotary positions over all channels, NeoX pairing */
    struct weight q, k, v, o;
    const float *q_norm, *k_norm; /* [head_dim] */
    const float *sink;            /* [n_head] logits in the softmax denominator, or NULL */
};

struct mlp { /* (silu(x gate^T) * (x up^T)) down^T */
    struct weight gate, up, down;
};

struct moe {
    struct weight router; /* [n_expert][hidden] */
    struct mlp *expert;   /* [n_expert] */
    struct mlp shared;    /* n_out 0: none */
};

struct layer {
    const float *attn_norm, *ffn_norm; /* [hidden] */
    struct attention attn;
    bool is_moe;
    struct mlp dense;
    struct moe moe;
};

struct model {
    const char *family; /* "flint": for messages only */
    int32_t n_layer, hidden, n_head, n_kv, head_dim;
    int32_t n_expert, top_k, n_moe; /* n_moe: layers with experts */
    int32_t vocab;                  /* rows of embedding and head */
    int32_t max_position;           /* prompt + output */
    float norm_eps;
    double rope_theta;
    struct weight embed, head;
    const float *final_norm; /* [hidden] */
    struct layer *layer;     /* [n_layer] */
    int64_t n_param;         /* logical parameters, scales apart */
    void *memory;            /* owned by the model: see model_close */
};

void model_close(struct model *m);

#endif
