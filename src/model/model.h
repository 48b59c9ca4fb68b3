/* A model as data. model/<family>.c reads a config and binds tensors; everything else walks this
 * description and never asks which family it is. */
#ifndef SUMI_MODEL_MODEL_H
#define SUMI_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/weight.h"

struct attention {
    int32_t window; /* positions a query sees, itself included; 0: all before it */
    bool rope;      /* rotary positions over all channels, NeoX pairing */
    struct weight q, k, v, o;
    const float *q_norm, *k_norm; /* [head_dim] */
    const float *sink;            /* [n_head] logits in the softmax denominator, or NULL */
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
    int32_t dense_width, expert_width, shared_width;
    int32_t vocab;        /* rows of embedding and head */
    int32_t max_position; /* prompt + output */
    float norm_eps;
    double rope_theta;
    struct weight embed, head;
    const float *final_norm; /* [hidden] */
    struct layer *layer;     /* [n_layer] */
    int64_t n_param;         /* logical parameters, scales apart */
    struct block *memory;    /* what the description owns: model_alloc */
};

/* Zeroed, 64-byte aligned memory that lives as long as the model; NULL when memory is short. */
void *model_alloc(struct model *m, size_t count, size_t size);
void model_close(struct model *m); /* NULL is fine */

#endif
