/* The CUDA device from inside. */
#ifndef SUMI_DEVICE_CUDA_CUH
#define SUMI_DEVICE_CUDA_CUH

extern "C" {
#include "device/cuda.h"
}

#include "ops/cuda/cu.cuh"

/* Row counts for which graphs are kept: 1, 2, 4, .. 64. */
enum { N_BUCKET = 7, STEP_ARRAYS = 7 };

/* The arrays of a step, in pinned memory and on the device, for up to `cap` rows. */
struct step_block {
    int cap;
    int32_t *host, *dev;
    struct cu_step step;
};

struct memory_list {
    void **item;
    size_t n, cap, bytes;
};

struct cu_device {
    struct device base; /* first */
    int index;
    struct cuda_options options;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    bool broken; /* a sticky error: nothing works any more */

    struct op *list; /* as prepare left it */
    int n;
    struct cu_op *plan; /* [n] */
    struct memory_list weights;
    int n_layer, vocab, n_expert, top_k, n_moe;
    int group; /* query heads of a key head */

    struct step_block small, large;
    int32_t *table_host, *table_dev; /* page tables; host: what the device has */
    size_t table_cap;                /* ints */
    int stride;
    float *logits_dev, *logits_host;
    size_t logits_cap;
    float *partial;
    int32_t *counter, *blocks, *route;
    size_t blocks_cap, route_cap;
    cudaGraphExec_t graph[N_BUCKET][N_BUCKET + 1]; /* [rows][logit rows; 0: none] */
    uint8_t warm[N_BUCKET][N_BUCKET + 1];
    int kernels[N_BUCKET][N_BUCKET + 1];
    struct cuda_stats stats;
};

static inline struct cu_device *cu_of(struct device *d) {
    return (struct cu_device *)d;
}

/* SUMI_ERR_DEVICE (or SUMI_ERR_MEMORY) with the call's name and CUDA's text. */
sumi_status cu_fail(cudaError_t e, const char *call, sumi_error *err);

#define CUDA_TRY(call)                                                           \
    do {                                                                         \
        cudaError_t cuda_error_ = (call);                                        \
        if (cuda_error_ != cudaSuccess) return cu_fail(cuda_error_, #call, err); \
    } while (0)

/* Device memory that lives until cu_weights_free. */
sumi_status cu_weight_alloc(struct cu_device *d, size_t bytes, void **out, sumi_error *err);
void cu_weights_free(struct cu_device *d);

sumi_status cu_prepare(struct device *base, struct op *list, int n, sumi_error *err);
void cu_drop_graphs(struct cu_device *d);
sumi_status cu_run_list(struct device *base, const struct op *list, int n, const struct step *s,
                        sumi_error *err);
sumi_status cu_run_op(struct device *base, const struct op *op, const struct step *s,
                      sumi_error *err);

#endif
