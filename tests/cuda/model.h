/* Models for the CUDA tests, without a checkpoint: sizes come from a table, every matrix is a
 * window into a blob of random values, so that even the largest takes little host memory. */
#ifndef SUMI_TESTS_CUDA_MODEL_H
#define SUMI_TESTS_CUDA_MODEL_H

#include "model/model.h"

struct dims {
    const char *name;
    int n_layer, hidden, n_head, n_kv, head_dim, dense, n_expert, top_k, expert, shared, vocab,
        window;
};

enum weights { ALL_BF16, ALL_NVFP4, MIXED /* experts NVFP4, the rest bf16, q and k apart */ };

struct blob {
    uint8_t *bf16, *nvfp4;
    size_t bytes; /* of each */
    uint64_t state;
};

void blob_open(struct blob *b, size_t bytes);
void blob_close(struct blob *b);

/* Full attention in layers 0 and 1 (if `flint`, as in the real pattern; else 0 and the last), dense
 * MLPs in the first two. Borrowed: blob. */
struct model *make_model(const struct dims *d, enum weights w, bool flint, struct blob *b);

#endif
