/* Values and weights flow in, a threshold flows out. Knows nothing of tokens.
 *
 * The bits of a float, with the sign folded in, order as the values do. So the top 11 bits of that
 * key give 2048 bins; the bin in which the running weight passes the target is cut again by the
 * next 11 bits and then by the last 10. */
#include "engine/select.h"

#include <stdbool.h>
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

struct cut select_cut(struct select_space *space, const float *x, const float *weight, size_t n,
                      double target) {
    double *bin = space->bin;
    static const struct { int shift, bits; } level[] = {{21, 11}, {10, 11}, {0, 10}};
    struct cut cut = {0, 0};
    uint32_t prefix = 0;
    for (size_t l = 0; l < sizeof level / sizeof *level; l++) {
        int shift = level[l].shift, bits = level[l].bits;
        uint32_t mask = (1u << bits) - 1;
        memset(bin, 0, sizeof space->bin);
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

/* Keeps the k largest of few[0..n) and returns the least of them. */
static float keep_best(struct select_space *space, size_t n, size_t k) {
    struct cut cut = select_cut(space, space->few, NULL, n, (double)k);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (space->few[i] > cut.value) space->few[kept++] = space->few[i];
    while (kept < k) space->few[kept++] = cut.value;
    return cut.value;
}

enum { BLOCK = 64 };

static bool any_above(const float *x, float bar) {
    int any = 0;
    for (int j = 0; j < BLOCK; j++) any |= x[j] > bar;
    return any;
}

float select_kth(struct select_space *space, const float *x, size_t n, size_t k) {
    if (k > SELECT_FEW / 4 || n <= SELECT_FEW)
        return select_cut(space, x, NULL, n, (double)k).value;
    /* The first ones set a bar; later only what passes it is collected, and the bar rises. */
    size_t n_few = SELECT_FEW / 2, i = n_few;
    memcpy(space->few, x, n_few * sizeof *x);
    float bar = keep_best(space, n_few, k);
    n_few = k;
    for (; i < n; i += BLOCK) {
        size_t end = i + BLOCK < n ? i + BLOCK : n;
        if (end == i + BLOCK && !any_above(x + i, bar)) continue;
        for (size_t j = i; j < end; j++)
            if (x[j] > bar) space->few[n_few++] = x[j];
        if (n_few + BLOCK <= SELECT_FEW) continue;
        bar = keep_best(space, n_few, k);
        n_few = k;
    }
    return keep_best(space, n_few, k);
}
