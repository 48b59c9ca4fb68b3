/* Root-mean-square norm, used inside several operations. */
#ifndef SUMI_OPS_NORM_H
#define SUMI_OPS_NORM_H

#include <stdbool.h>
#include <stdint.h>

/* y_i = w_i * x_i / sqrt(mean_j(x_j^2) + eps), f32 inside, one rounding at the end if `rounded`.
 * y may be x. */
void rms_norm_ref(const float *x, const float *w, int64_t n, float eps, bool rounded, float *y);

#endif
