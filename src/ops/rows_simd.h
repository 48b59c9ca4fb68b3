/* Loops over the elements of one row, compiled once per instruction set. */
#include <math.h>

#include "ops/kernels.h"
#include "ops/simd.h"

INLINE vf rounded_if(bool rounded, vf x) {
    return rounded ? vf_bf16_round(x) : x;
}

/* Four partial sums over whole registers; the tail joins the first. */
static float square_sum(const float *x, int64_t n) {
    vf s[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int j = 0; j < 4; j++) {
            vf v = vf_load(x + i + j * LANES);
            s[j] = vf_fma(v, v, s[j]);
        }
    for (; i < n; i += LANES) {
        vf v = n - i < LANES ? vf_load_n(x + i, n - i) : vf_load(x + i);
        s[0] = vf_fma(v, v, s[0]);
    }
    return vf_sum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
}

static void norm_row(const float *x, const float *w, int64_t n, float eps, bool rounded, float *y) {
    vf inv = vf_set1(1.0f / sqrtf(square_sum(x, n) / (float)n + eps));
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(y + i, rounded_if(rounded, vf_mul(vf_mul(vf_load(x + i), inv), vf_load(w + i))));
    if (i < n)
        vf_store_n(y + i,
                   rounded_if(rounded, vf_mul(vf_mul(vf_load_n(x + i, n - i), inv),
                                              vf_load_n(w + i, n - i))),
                   n - i);
}

static void rotate_row(float *x, const float *cosine, const float *sine, int64_t n, bool rounded) {
    int64_t half = n / 2;
    for (int64_t i = 0; i < half; i += LANES) {
        int64_t m = half - i < LANES ? half - i : LANES;
        vf c = vf_load_n(cosine + i, m), s = vf_load_n(sine + i, m);
        vf a = vf_load_n(x + i, m), b = vf_load_n(x + half + i, m);
        vf_store_n(x + i, rounded_if(rounded, vf_sub(vf_mul(a, c), vf_mul(b, s))), m);
        vf_store_n(x + half + i, rounded_if(rounded, vf_add(vf_mul(b, c), vf_mul(a, s))), m);
    }
}

static void gate_row(float *gate, const float *up, int64_t n, bool rounded) {
    vf one = vf_set1(1.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t m = n - i < LANES ? n - i : LANES;
        vf g = vf_load_n(gate + i, m);
        vf v = vf_div(g, vf_add(one, vf_exp(vf_sub(vf_zero(), g))));
        vf_store_n(gate + i, rounded_if(rounded, vf_mul(v, vf_load_n(up + i, m))), m);
    }
}

static void add_row(float *x, const float *y, int64_t n, bool rounded) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t m = n - i < LANES ? n - i : LANES;
        vf v = vf_add(vf_load_n(x + i, m), vf_load_n(y + i, m));
        vf_store_n(x + i, rounded_if(rounded, v), m);
    }
}

static void combine_row(const float *weight, const float *const *from, int32_t n_from, int64_t n,
                        bool rounded, float *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t m = n - i < LANES ? n - i : LANES;
        vf sum = vf_zero();
        for (int32_t k = 0; k < n_from; k++)
            sum = vf_add(sum, vf_mul(vf_set1(weight[k]), vf_load_n(from[k] + i, m)));
        vf v = vf_add(rounded_if(rounded, sum), vf_load_n(y + i, m));
        vf_store_n(y + i, rounded_if(rounded, v), m);
    }
}
