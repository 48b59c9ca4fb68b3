/* Loops over rows that several fast operations share; contracts: ops/rows.h. */
#ifndef SUMI_OPS_ROWS_FAST_H
#define SUMI_OPS_ROWS_FAST_H

#include "ops/linear_fast.h"

void norm_rows_fast(struct device *d, const struct step *s, const float *x, const float *w,
                    int32_t hidden, float eps, float *a);
void mlp_rows_fast(struct device *d, const struct step *s, const struct mlp *mlp, const float *a,
                   int32_t hidden, float *gate, float *up, float *y);
void add_branch_fast(struct device *d, const struct step *s, const struct op *op, const float *y,
                     float *tap, float *hidden_tap);

#endif
