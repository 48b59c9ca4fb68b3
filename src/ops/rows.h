/* Loops over rows that several reference operations share. */
#ifndef SUMI_OPS_ROWS_H
#define SUMI_OPS_ROWS_H

#include <math.h>

#include "ops/op.h"

/* a[r] = rms_norm(x[r]) for every row of the step, on the pool. */
void norm_rows_ref(struct pool *pool, const struct step *s, const float *x, const float *w,
                   int32_t hidden, float eps, float *a);

/* y[r] = the gated MLP of a[r]. Rounded: gate, up, silu(gate) * up, and the result. */
void mlp_rows_ref(struct pool *pool, const struct step *s, const struct mlp *mlp, const float *a,
                  int32_t hidden, float *gate, float *up, float *y);

/* x[r] = rounded(x[r] + y[r]); y is copied to tap[layer] and the sum to hidden_tap[layer + 1] when
 * they are given. */
void add_branch_ref(const struct step *s, const struct op *op, const float *y, float *tap,
                    float *hidden_tap);

static inline float silu_ref(float g) {
    return g / (1.0f + expf(-g));
}

#endif
