/* Where to cut a list of values so that the best of them carry a given weight, without sorting. */
#ifndef SUMI_ENGINE_SELECT_H
#define SUMI_ENGINE_SELECT_H

#include <stddef.h>

enum { SELECT_BINS = 2048, SELECT_FEW = 4096 };

struct select_space { /* scratch */
    double bin[SELECT_BINS];
    float few[SELECT_FEW];
};

struct cut {
    float value;  /* the largest x such that all entries >= x together weigh at least the target */
    double above; /* weight of the entries > value */
};

/* x [n], n > 0, no NaN; weight [n] >= 0, or NULL: each weighs 1, so that `target` k finds the k-th
 * largest. When all entries together weigh less than the target, the cut is below the last one that
 * weighs anything. Reads the list three times, whatever the values are. */
struct cut select_cut(struct select_space *space, const float *x, const float *weight, size_t n,
                      double target);

/* The k-th largest of x [n], 0 < k <= n, no NaN. Reads a long list once when k is small. */
float select_kth(struct select_space *space, const float *x, size_t n, size_t k);

#endif
