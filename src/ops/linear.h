/* The product every operation is made of. */
#ifndef SUMI_OPS_LINEAR_H
#define SUMI_OPS_LINEAR_H

#include "base/pool.h"
#include "base/weight.h"

/* y[r][o] = scale * sum_i x[r][i] * w[o][i]            linear layer, no bias
 *   x  f32 [n_row][x_stride], the first w.n_in of each row are read
 *   y  f32 [n_row][y_stride], the first w.n_out of each row are written; no overlap with x
 *   rounded: y is rounded to bf16 after the scale
 * Needs  w.n_in <= OP_MAX_WIDTH.
 * Order  16 interleaved partial sums over i, then pairwise: the same bits for every n_row, thread
 *        count and processor. pool NULL: on the caller. */
void linear_ref(struct pool *pool, const struct weight *w, const float *x, int64_t n_row,
                int64_t x_stride, float *y, int64_t y_stride, bool rounded);

/* sum_i a[i] * b[i] in that same order. */
float dot_ref(const float *a, const float *b, int64_t n);

#endif
