/* What the parts of the CUDA device share: matrices in device memory, the rows of a step, and how a
 * kernel is launched. Activations on the device are bf16 (the buffers of struct op are large enough
 * for f32); router logits, routing weights and logits are f32. */
#ifndef SUMI_OPS_CUDA_CU_CUH
#define SUMI_OPS_CUDA_CU_CUH

#include <cuda_runtime.h>

extern "C" {
#include "base/status.h"
#include "ops/op.h"
}

#include "ops/cuda/mma.cuh"

/* A matrix, or several under one another, as tiles (layout.cuh). Tile i begins at
 * data + i * tile_bytes and its sums are multiplied by scale[i]. */
struct cu_mat {
    const uint8_t *data;
    const float *scale; /* [n_tile] */
    int format;         /* enum mat_format */
    int n_tile, n_chunk;
    int n_in, n_out; /* n_out: rows that exist; the last tile may be padded */
    uint32_t tile_bytes;
};

/* Lengths of a step, read by kernels: no launch parameter depends on them. */
struct cu_meta {
    int32_t n_row, n_logit, n_dec, n_pre, stride;
};

/* The rows of a step in device memory. */
struct cu_step {
    const struct cu_meta *meta;
    const int32_t *token, *pos, *seq_of, *logit_row;
    const int32_t *dec_row;         /* [n_dec] rows whose attention is split over the context */
    const int32_t *pre_row, *pre_n; /* [n_pre] blocks of neighbouring rows of one sequence */
    const int32_t *table;           /* [n_seq][n_layer][stride] slabs */
    int n_layer;
};

/* Weights of one operation. Which fields are used: the operation's .cu file. */
struct cu_op {
    struct cu_mat m[5];
    const float *norm, *v0, *v1;
    const bf *table;
    float table_scale;
    bool shared;
};

/* Kernels of one step, on their way to a stream (or into a graph). */
struct cu_launch {
    cudaStream_t stream;
    struct cu_step step;
    int rows;                  /* grids are made for this many rows; meta->n_row of them exist */
    int n_dec, n_pre, n_logit; /* likewise */
    bool pdl;                  /* let kernels start before their predecessor has ended */
    bool taps;                 /* keep branches (attn_out, mlp_out) in their scratch buffers */
    const int32_t *route;      /* NULL, or [n_moe][n_route][top_k] choices to take, device memory */
    int n_route;
    float *logits;    /* [n_logit][vocab] */
    float *partial;   /* split attention: [n_dec * n_kv * n_split][n_head / n_kv][2 + d] */
    int32_t *counter; /* [n_dec * n_kv] zero between launches */
    int32_t *blocks;  /* grouped experts: struct group_args */
    int n_kernel;
    cudaError_t error; /* the first one */
    const char *failed;
};

enum { SMALL_ROWS = 64, STAGED_ROWS = 8, MAX_SPLIT = 128, MAX_GROUP = 16 };

/* Splits of the context for n rows; depends on counts only. */
static inline int attention_splits(int n_dec, int n_kv) {
    int n = 264 / (n_dec * n_kv > 0 ? n_dec * n_kv : 1);
    return n < 1 ? 1 : n > MAX_SPLIT ? MAX_SPLIT : n;
}

static inline int div_up(int64_t a, int64_t b) {
    return (int)((a + b - 1) / b);
}

#define LAUNCH(l, kernel, grid, block, smem, ...) \
    launch_kernel(l, #kernel, kernel, grid, block, smem, __VA_ARGS__)

template <typename... Want, typename... Got>
static void launch_kernel(struct cu_launch *l, const char *name, void (*kernel)(Want...), dim3 grid,
                          int block, size_t smem, Got... args) {
    if (l->error != cudaSuccess) return;
    if (smem > 48 << 10)
        l->error = cudaFuncSetAttribute((const void *)kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)block);
    config.dynamicSmemBytes = smem;
    config.stream = l->stream;
    config.attrs = &attribute;
    config.numAttrs = l->pdl ? 1 : 0;
    if (l->error == cudaSuccess) l->error = cudaLaunchKernelEx(&config, kernel, Want(args)...);
    if (l->error != cudaSuccess) l->failed = name;
    l->n_kernel++;
}

/* What becomes of a product: y rounded; x = rounded(x + rounded y); f32; silu(gate) * up. */
enum epilogue { EPI_STORE, EPI_ADD, EPI_F32, EPI_GATE };

/* y[r] = norm(x[row_map[r]]) m^T, for the rows (or logit rows) of a step. */
struct linear_args {
    struct cu_mat m;
    const bf *x; /* [..][x_stride] */
    int64_t x_stride;
    const float *norm; /* NULL: x as it is */
    float eps;
    const int32_t *row_map; /* NULL: row r */
    const int32_t *n_row;   /* how many rows exist */
    int rows;               /* launch for this many */
    bf *y;                  /* rows of outputs below split */
    int64_t y_stride;
    bf *y2; /* outputs from split on */
    int64_t y2_stride;
    int split;
    bf *add;  /* EPI_ADD: the residual, [..][y_stride]; y, if given, receives the branch */
    float *f; /* EPI_F32 */
    int64_t f_stride;
    bf *scratch; /* [rows][n_in] normed rows when they do not fit in shared memory */
};

void cu_linear(struct cu_launch *l, enum epilogue e, const struct linear_args *a);

/* a[r] = rms_norm(x[row_map[r]]) */
void cu_norm(struct cu_launch *l, const bf *x, const int32_t *row_map, const float *w, int n,
             float eps, const int32_t *n_row, int rows, bf *a);

typedef void cu_op_fn(struct cu_launch *l, const struct op *op, const struct cu_op *w);
cu_op_fn cu_embed, cu_norm_qkv, cu_attention, cu_attn_out, cu_dense_ffn, cu_moe, cu_head;

static inline bf *as_bf(const float *p) {
    return (bf *)(uintptr_t)p;
}

#endif
