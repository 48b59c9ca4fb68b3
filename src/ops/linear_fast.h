/* Products of several matrices with the same rows, over tiles, on the pool. */
#ifndef SUMI_OPS_LINEAR_FAST_H
#define SUMI_OPS_LINEAR_FAST_H

#include "ops/kernels.h"
#include "ops/op.h"

struct product {
    const struct weight *w;
    float *y;
    int64_t y_stride;
    bool rounded;
};

/* Every product of the list with x [n_row][x_stride]; weights without tiles go through
 * linear_ref. Contract and order: ops/linear.h, one fused chain per row of w. */
void linear_fast(struct device *d, const struct product *list, int n, const float *x, int64_t n_row,
                 int64_t x_stride);

/* One pair of tiles, or what linear_ref would do for their rows: see struct tile_job. w[1] NULL:
 * one. Runs on the caller. */
void linear_pair(const struct cpu_kernels *k, struct tile_job *job);

/* fn(ctx, i) for every i < n: on the caller when it would be over before a worker wakes. */
void run_rows(struct device *d, int64_t n, void (*fn)(void *ctx, int64_t i), void *ctx);

#endif
