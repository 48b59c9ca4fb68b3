/* A few lines instead of a test library, so that the op tests also build for other processors. Each
 * program prints "name: ok" or what failed, and returns the number of failures. */
#ifndef SUMI_TESTS_OPS_CHECK_H
#define SUMI_TESTS_OPS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_failed;

/* Worst element of got against want: |got - want| <= abs + rel * |want|. */
static inline void check_close(const char *name, const float *got, const double *want, size_t n,
                               double abs_tol, double rel_tol) {
    size_t worst = 0;
    double most = -1;
    for (size_t i = 0; i < n; i++) {
        double over = fabs((double)got[i] - want[i]) / (abs_tol + rel_tol * fabs(want[i]));
        if (isnan((double)got[i]) || isnan(want[i]) || over > most) {
            most = isnan(over) ? INFINITY : over;
            worst = i;
        }
    }
    bool ok = most <= 1 && n > 0;
    printf("%s: %s (worst at %zu: got %.9g, want %.9g, %.2f of the tolerance)\n", name,
           ok ? "ok" : "FAILED", worst, n ? (double)got[worst] : 0, n ? want[worst] : 0, most);
    n_failed += !ok;
}

static inline void check_true(const char *name, bool ok) {
    printf("%s: %s\n", name, ok ? "ok" : "FAILED");
    n_failed += !ok;
}

/* Uniform in [-1, 1), the same on every machine. */
static inline float uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 40) / 8388608.0 - 1.0);
}

static inline float *random_floats(size_t n, uint64_t seed) {
    float *p = malloc((n ? n : 1) * sizeof *p);
    uint64_t s = seed;
    for (size_t i = 0; p && i < n; i++) p[i] = uniform(&s);
    return p;
}

#endif
