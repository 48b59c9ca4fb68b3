/* What a CPU operation needs of an instruction set: one table each, chosen once at open. The
 * operations themselves (ops/<op>/<op>_fast.c) are plain C over this table.
 *
 * Every kernel sums in an order that depends only on the lengths within one row, so a row's bits
 * depend on neither its neighbours, nor n_row, nor threads; and AVX2 gives the bits of AVX-512. */
#ifndef SUMI_OPS_KERNELS_H
#define SUMI_OPS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/tiles.h"

/* One or two tiles times some rows of x:
 *   y[i][l] = scale * sum_k x[row(i)][k] * w[tile][l][k],  i < n_row, l < 16 (cut at n_out) */
struct tile_job {
    const struct tiles *w[2]; /* same format and n_in; w[1] NULL: one tile */
    int64_t tile[2];
    float *y[2];    /* column 0 of the tile in row 0 */
    int64_t stride; /* floats from row to row of y */
    bool rounded;
    const float *x;
    int64_t x_stride;
    const int32_t *slot; /* NULL: row(i) = i; else row(i) = slot[i] / per_row */
    int32_t per_row;
    int64_t n_row;
};

/* Softmax state of one query: values scaled by exp(-max). */
struct attend_state {
    float max, sum;
};

/* Some queries over positions of one page of one key/value head. */
struct attend_job {
    const uint8_t *keys, *values; /* the page's [PAGE_TOKENS][head_dim] */
    bool bf16;
    int32_t head_dim, page; /* the page holds positions page .. page + PAGE_TOKENS - 1 */
    int32_t n_query;
    const float *const *q;       /* [n_query] -> [head_dim] */
    const int32_t *first, *last; /* [n_query] visible positions, inclusive */
    float scale;
    struct attend_state *state; /* [n_query] */
    float *o;                   /* [n_query][stride]: head_dim padded to 16 */
    float *scratch;             /* [PAGE_TOKENS * (stride + n_query)] */
};

enum { ATTEND_QUERIES = 64 }; /* most queries of a job */

struct cpu_kernels {
    void (*linear)(const struct tile_job *job);
    /* y = w * x / sqrt(mean(x^2) + eps); y may be x */
    void (*norm)(const float *x, const float *w, int64_t n, float eps, bool rounded, float *y);
    /* rotates pairs (i, i + n/2) by angles given as cosines and sines [n/2] */
    void (*rotate)(float *x, const float *cosine, const float *sine, int64_t n, bool rounded);
    /* gate = silu(gate) * up */
    void (*gate)(float *gate, const float *up, int64_t n, bool rounded);
    /* x += y */
    void (*add)(float *x, const float *y, int64_t n, bool rounded);
    /* y = round(round(sum_k weight[k] * from[k]) + y), sum in the order of k */
    void (*combine)(const float *weight, const float *const *from, int32_t n_from, int64_t n,
                    bool rounded, float *y);
    void (*attend)(const struct attend_job *job);
    /* Joins `part` to `total`, both with o [d]; max -INFINITY and sum 0 is the empty state. */
    void (*attend_merge)(struct attend_state *total, float *o, const struct attend_state *part,
                         const float *part_o, int32_t d);
};

extern const struct cpu_kernels kernels_avx2, kernels_avx512;

#endif
