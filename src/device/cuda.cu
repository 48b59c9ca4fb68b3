/* The CUDA device: opening, memory, closing. Its operations are in ops, its weights in
 * cuda_prepare.cu, its steps in cuda_step.cu. */
#include <string.h>

#include "device/cuda.cuh"

extern "C" {
#include "base/mem.h"
#include "base/pool.h"
#include "base/size.h"
}

#ifndef SUMI_CUDA_ARCHS
#define SUMI_CUDA_ARCHS "an unknown architecture"
#endif

sumi_status cu_fail(cudaError_t e, const char *call, sumi_error *err) {
    sumi_status code = e == cudaErrorMemoryAllocation ? SUMI_ERR_MEMORY : SUMI_ERR_DEVICE;
    if (code == SUMI_ERR_MEMORY) cudaGetLastError(); /* not sticky: the next call may work */
    return fail_with(err, code, "CUDA: %s: %s (%s)", call ? call : "launch", cudaGetErrorString(e),
                     cudaGetErrorName(e));
}

static sumi_status cu_alloc(struct device *base, size_t bytes, void **out, sumi_error *err) {
    struct cu_device *d = cu_of(base);
    *out = NULL;
    CUDA_TRY(cudaSetDevice(d->index));
    cudaError_t e = cudaMalloc(out, bytes ? bytes : 1);
    if (e == cudaErrorMemoryAllocation) {
        size_t left = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&left, &total);
        return fail_with(err, SUMI_ERR_MEMORY,
                         "GPU %d has %zu MiB left of %zu, %zu MiB more are needed", d->index,
                         left >> 20, total >> 20, (bytes >> 20) + 1);
    }
    CUDA_TRY(e);
    CUDA_TRY(cudaMemset(*out, 0, bytes ? bytes : 1));
    CUDA_TRY(cudaDeviceSynchronize());
    return SUMI_OK;
}

static void cu_free(struct device *base, void *p) {
    cudaSetDevice(cu_of(base)->index);
    cudaFree(p);
}

static sumi_status cu_copy_in(struct device *base, void *to, const void *from, size_t bytes,
                              sumi_error *err) {
    if (!bytes) return SUMI_OK;
    CUDA_TRY(cudaSetDevice(cu_of(base)->index));
    CUDA_TRY(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    return SUMI_OK;
}

sumi_status cu_weight_alloc(struct cu_device *d, size_t bytes, void **out, sumi_error *err) {
    struct memory_list *w = &d->weights;
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        void *grown = mem_resize(w->item, cap, sizeof *w->item);
        if (!grown) return NO_MEMORY(err, cap * sizeof *w->item);
        w->item = (void **)grown;
        w->cap = cap;
    }
    TRY(cu_alloc(&d->base, bytes, out, err));
    w->item[w->n++] = *out;
    w->bytes += bytes;
    return SUMI_OK;
}

void cu_weights_free(struct cu_device *d) {
    for (size_t i = 0; i < d->weights.n; i++) cudaFree(d->weights.item[i]);
    d->weights.n = d->weights.bytes = 0;
}

static void cu_close(struct device *base) {
    struct cu_device *d = cu_of(base);
    cudaSetDevice(d->index);
    if (d->stream) cudaStreamSynchronize(d->stream);
    cu_drop_graphs(d);
    cu_weights_free(d);
    mem_free(d->weights.item);
    mem_free(d->plan);
    cudaFreeHost(d->small.host);
    cudaFreeHost(d->large.host);
    cudaFreeHost(d->table_host);
    cudaFreeHost(d->logits_host);
    void *dev[] = {d->small.dev, d->large.dev, d->table_dev, d->logits_dev,
                   d->partial,   d->counter,   d->blocks,    d->route};
    for (size_t i = 0; i < sizeof dev / sizeof *dev; i++) cudaFree(dev[i]);
    if (d->begin) cudaEventDestroy(d->begin);
    if (d->end) cudaEventDestroy(d->end);
    if (d->stream) cudaStreamDestroy(d->stream);
    pool_close(base->pool);
    mem_free(d);
}

__global__ void probe(int *p) {
    if (p) *p = 1;
}

/* Driver, device and architecture, each with its own message. */
static sumi_status find_device(int index, sumi_error *err) {
    int n = 0, driver = 0;
    cudaDriverGetVersion(&driver);
    cudaError_t e = cudaGetDeviceCount(&n);
    if (driver == 0)
        return fail_with(err, SUMI_ERR_MISSING,
                         "no NVIDIA driver is installed: install one, or run with --device cpu");
    if (e == cudaErrorInsufficientDriver)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs "
                         "%d.%d; update the driver, or run with --device cpu",
                         driver / 1000, driver % 100 / 10, CUDART_VERSION / 1000,
                         CUDART_VERSION % 100 / 10);
    if (e == cudaErrorNoDevice || (e == cudaSuccess && n == 0))
        return fail_with(err, SUMI_ERR_MISSING,
                         "the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)");
    CUDA_TRY(e);
    if (index < 0 || index >= n)
        return fail_with(err, SUMI_ERR_ARG, "GPU %d was asked for, there are %d (0 to %d)", index,
                         n, n - 1);
    CUDA_TRY(cudaSetDevice(index));
    struct cudaFuncAttributes attributes;
    e = cudaFuncGetAttributes(&attributes, (const void *)probe);
    if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorInvalidDeviceFunction) {
        struct cudaDeviceProp p;
        CUDA_TRY(cudaGetDeviceProperties(&p, index));
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "GPU %d (%s) is sm_%d%d, the CUDA plugin was built for %s: build it with "
                         "`make cuda CUDA_ARCHS=..`, or run with --device cpu",
                         index, p.name, p.major, p.minor, SUMI_CUDA_ARCHS);
    }
    CUDA_TRY(e);
    return SUMI_OK;
}

static sumi_status start(struct cu_device *d, sumi_error *err) {
    size_t partial = (size_t)264 * MAX_GROUP * (128 + 2) * sizeof(float);
    TRY(pool_open(&d->base.pool, 0, err));
    CUDA_TRY(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreate(&d->begin));
    CUDA_TRY(cudaEventCreate(&d->end));
    CUDA_TRY(cudaMalloc((void **)&d->partial, partial));
    CUDA_TRY(cudaMalloc((void **)&d->counter, 264 * sizeof(int32_t)));
    CUDA_TRY(cudaMemset(d->counter, 0, 264 * sizeof(int32_t)));
    CUDA_TRY(cudaDeviceSynchronize());
    return SUMI_OK;
}

static sumi_status open_device(struct device **out, int index, sumi_error *err) {
    *out = NULL;
    TRY(find_device(index, err));
    struct cu_device *d = (struct cu_device *)mem_zero(1, sizeof *d);
    if (!d) return NO_MEMORY(err, sizeof *d);
    d->index = index;
    d->options = {true, true, false};
    d->base.name = "cuda";
    d->base.alloc = cu_alloc;
    d->base.free = cu_free;
    d->base.copy_in = cu_copy_in;
    d->base.prepare = cu_prepare;
    d->base.run_list = cu_run_list;
    d->base.close = cu_close;
    for (int i = 0; i < OP_COUNT; i++) d->base.op[i] = cu_run_op;
    sumi_status status = start(d, err);
    if (status != SUMI_OK) {
        cu_close(&d->base);
        return status;
    }
    *out = &d->base;
    return SUMI_OK;
}

static void set_options(struct device *base, const struct cuda_options *o) {
    struct cu_device *d = cu_of(base);
    cu_drop_graphs(d);
    d->options = *o;
}

static void read_stats(struct device *base, struct cuda_stats *out) {
    struct cu_device *d = cu_of(base);
    *out = d->stats;
    out->weight_bytes = d->weights.bytes;
}

extern "C" __attribute__((visibility("default"))) const struct cuda_plugin *sumi_cuda_plugin(void) {
    static const struct cuda_plugin plugin = {CUDA_PLUGIN_VERSION, SUMI_CUDA_ARCHS, open_device,
                                              set_options, read_stats};
    return &plugin;
}
