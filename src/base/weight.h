/* A matrix in its stored format, as operations and model descriptions pass it around. */
#ifndef SUMI_BASE_WEIGHT_H
#define SUMI_BASE_WEIGHT_H

#include "base/dtype.h"

/* [n_out][n_in]; value = decode(data) * scale. n_out 0: there is no such matrix. */
struct weight {
    enum dtype dtype;
    const void *data; /* borrowed; row o begins at data + o * row_bytes, maybe misaligned */
    int64_t n_out, n_in;
    size_t row_bytes;
    float scale; /* NVFP4's per-tensor scale, applied to the f32 sum of a product; else 1 */
};

/* A gated MLP: (silu(x gate^T) * (x up^T)) down^T */
struct mlp {
    struct weight gate, up, down;
};

#endif
