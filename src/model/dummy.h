/* Weights without a checkpoint. */
#ifndef SUMI_MODEL_DUMMY_H
#define SUMI_MODEL_DUMMY_H

#include "base/dtype.h"

/* n values with mean 0 and standard deviation 0.02 (the usual initialiser_range), from a seed. */
void dummy_fill(bf16 *data, size_t n, uint64_t seed);

#endif
