/* The operations of a step as data: forward.c lists them once, a device executes the list. Every
 * operation works on the whole residual stream x [n_row][hidden].
 *
 * Numbers. Activations are held as f32. With step.bf16 they are rounded to bf16 wherever the
 * contract of an operation says "rounded"; without it nothing is rounded (float32 mode). Sums are
 * f32 in a fixed order that depends on neither n_row nor the other rows. Rounding points: spec
 * "Rounding points", column B, except that norms read the rounded residual and that router logits,
 * routing weights and logits stay f32. */
#ifndef SUMI_OPS_OP_H
#define SUMI_OPS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu_isa.h"
#include "base/pages.h"
#include "base/weight.h"
#include "device/device.h"

enum { OP_MAX_WIDTH = 65536, OP_MAX_HEAD_DIM = 512, OP_MAX_TOP_K = 64 };

/* The rows of a step. Host memory for the CPU. */
struct step {
    int32_t n_row;
    const int32_t *token, *pos, *seq_of; /* [n_row] */
    const struct seq_pages *pages;       /* [n_seq] */
    int32_t n_logit;
    const int32_t *logit_row; /* [n_logit] */
    float *logits;            /* [n_logit][vocab] */
    bool bf16;
    const float *layer_input; /* NULL, or [n_layer][n_row][hidden]: replaces x before a layer */
    const int32_t *route;     /* NULL, or [n_moe][n_row][top_k] */
    /* Copies for checks; NULL for none. */
    float *tap_hidden, *tap_attn, *tap_mlp, *tap_norm, *tap_weights;
    int32_t *tap_ids;
};

/* Keys and values in slabs of slab_bytes: [n_kv][2: keys, values][PAGE_TOKENS][head_dim], bf16,
 * or f32 in float32 mode. */
struct op_cache {
    uint8_t *pool;
    size_t slab_bytes;
    int32_t layer; /* row of the page table */
    int32_t n_kv, head_dim;
};

/* One entry of the list. Buffers are device memory, borrowed; each operation's own fields are
 * documented in its header. */
struct op {
    enum op_kind kind;
    int32_t layer; /* -1 for embed and head */
    int32_t hidden;
    float eps;
    float *x; /* [n_row][hidden] residual */
    union {
        struct op_embed {
            struct weight table;
        } embed;
        struct op_norm_qkv {
            const float *norm;     /* [hidden] */
            struct weight q, k, v; /* [n_head * head_dim][hidden], [n_kv * head_dim][hidden] */
            const float *q_norm, *k_norm; /* [head_dim] */
            const float *inv_freq;        /* [head_dim / 2], or NULL: no positions */
            int32_t n_head;
            struct op_cache cache;
            float *a;     /* [n_row][hidden] scratch */
            float *q_out; /* [n_row][n_head * head_dim] */
            float *kv;    /* [n_row][2 * n_kv * head_dim] scratch */
        } norm_qkv;
        struct op_attention {
            const float *sink; /* [n_head] or NULL */
            int32_t n_head, window;
            float scale;
            struct op_cache cache;
            const float *q; /* [n_row][n_head * head_dim] */
            float *o;       /* [n_row][n_head * head_dim] */
        } attention;
        struct op_attn_out {
            struct weight o;
            const float *a; /* [n_row][o.n_in] */
            float *y;       /* [n_row][hidden] scratch */
        } attn_out;
        struct op_dense_ffn {
            const float *norm;
            struct mlp mlp;
            float *a, *y;     /* [n_row][hidden] scratch */
            float *gate, *up; /* [n_row][width] scratch */
        } dense_ffn;
        struct op_moe {
            const float *norm;
            struct weight router;     /* [n_expert][hidden] */
            const struct mlp *expert; /* [n_expert] */
            struct mlp shared;        /* gate.n_out 0: none */
            int32_t n_expert, top_k, moe_index;
            float *a, *y;     /* [n_row][hidden] scratch */
            float *logits;    /* [n_row][n_expert] scratch */
            int32_t *ids;     /* [n_row][top_k] */
            float *weights;   /* [n_row][top_k] */
            float *act;       /* [n_row * top_k][2 * expert width] scratch */
            float *each;      /* [n_row * top_k][hidden] scratch */
            float *gate, *up; /* [n_row][shared width] scratch */
            int32_t *order;   /* [2 * n_row * top_k + n_expert + 1] scratch */
        } moe;
        struct op_head {
            const float *norm;
            struct weight head;
            float *a; /* [n_row][hidden] scratch */
        } head;
    } u;
};

/* Fills the table of a CPU device, for the best instructions that the processor has, or for a
 * stated level; one that the processor lacks is SUMI_ERR_UNSUPPORTED. Above CPU_ISA_REF the device
 * also gets `prepare`: weights are copied into tiles (ops/tiles.h) that the device owns. */
void ops_bind_cpu(struct device *d);
sumi_status ops_bind_cpu_isa(struct device *d, enum cpu_isa isa, sumi_error *err);

#endif
