/* Reference norm. */
#include <math.h>

#include "base/dtype.h"
#include "ops/linear.h"
#include "ops/norm.h"

void rms_norm_ref(const float *x, const float *w, int64_t n, float eps, bool rounded, float *y) {
    float inv = 1.0f / sqrtf(dot_ref(x, x, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * inv * w[i];
        y[i] = rounded ? bf16_round(v) : v;
    }
}
