/* NumPy's .npy format, version 1: little-endian f32 and i32 arrays in C order. */
#ifndef SUMI_BASE_NPY_H
#define SUMI_BASE_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { NPY_MAX_DIM = 4 };

struct npy {
    bool is_int; /* i32, else f32 */
    int n_dim;
    int64_t dim[NPY_MAX_DIM];
    void *data; /* owned by whoever made it: mem_free */
};

/* Elements, or -1 when the product overflows or a dimension is negative. */
int64_t npy_count(const struct npy *a);

sumi_status npy_write(const char *path, const struct npy *a, sumi_error *err);
sumi_status npy_read(const char *path, struct npy *out, sumi_error *err);

#endif
