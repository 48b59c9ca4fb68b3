/* Values and weights flow in, a threshold flows out. Knows nothing of tokens.
 *
 * The bits of a float, with the sign folded in, order as the values do. So the top 11 bits of that
 * key give 2048 bins; the bin in which the running weight passes the target is cut again by the
 * next 11 bits and then by the last 10. */
#include "engine/select.h"

#include <stdint.h>
#include <string.h>

static uint32_t key_of(float x) {
    uint32_t u;
    x += 0.0f; /* -0 becomes 0: equal values must have equal keys */
    memcpy(&u, &x, sizeof u);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

static float value_of(uint32_t key) {
    uint32_t u = key & 0x80000000u ? key & 0x7FFFFFFFu : ~key;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The bin in which the weight, summed from the top, reaches the target. */
static uint32_t find_bin(const double *bin, double target, double *above) {
    double sum = *above;
    uint32_t last = 0;
    for (uint32_t b = SELECT_BINS; b-- > 0;) {
        if (bin[b] <= 0) continue;
        *above = sum;
        sum += bin[b];
        last = b;
        if (sum >= target) break;
    }
    return last;
}

struct cut select_cut(double *bin, const float *x, const float *weight, size_t n, double target) {
    static const struct { int shift, bits; } level[] = {{21, 11}, {10, 11}, {0, 10}};
    struct cut cut = {0, 0};
    uint32_t prefix = 0;
    for (size_t l = 0; l < sizeof level / sizeof *level; l++) {
        int shift = level[l].shift, bits = level[l].bits;
        uint32_t mask = (1u << bits) - 1;
        memset(bin, 0, SELECT_BINS * sizeof *bin);
        for (size_t i = 0; i < n; i++) {
            uint32_t key = key_of(x[i]) >> shift;
            if (l > 0 && key >> bits != prefix) continue;
            bin[key & mask] += weight ? (double)weight[i] : 1;
        }
        prefix = prefix << bits | find_bin(bin, target, &cut.above);
    }
    cut.value = value_of(prefix);
    return cut;
}
