/* Where to cut a list of values so that the best of them carry a given weight, without sorting: a
 * radix selection that reads the list three times, whatever the values are. */
#ifndef SUMI_ENGINE_SELECT_H
#define SUMI_ENGINE_SELECT_H

#include <stddef.h>

enum { SELECT_BINS = 2048 };

struct cut {
    float value;  /* the largest x such that all entries >= x together weigh at least the target */
    double above; /* weight of the entries > value */
};

/* x [n], n > 0, no NaN; weight [n] >= 0, or NULL: each weighs 1, so that `target` k finds the k-th
 * largest. When all entries together weigh less than the target, the cut is below the last one that
 * weighs anything. bin [SELECT_BINS] is scratch. */
struct cut select_cut(double *bin, const float *x, const float *weight, size_t n, double target);

#endif
