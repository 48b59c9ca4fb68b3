/* Binding: from tensor names to weights of a model, with every shape and type checked, and at the
 * end every tensor of the checkpoint accounted for. Works on safetensors names (a matrix is
 * `base.weight`, NVFP4 ones with `.weight_scale` and `.weight_scale_2` beside it) and on GGUF names
 * (`base.weight`, `base.scale`). Without a checkpoint it makes dummy weights of the same shapes. */
#ifndef SUMI_MODEL_BIND_H
#define SUMI_MODEL_BIND_H

#include "file/checkpoint.h"
#include "model/model.h"

struct binder {
    const struct checkpoint *checkpoint; /* NULL: dummy weights */
    struct model *model;                 /* owns what must be converted or made */
    uint8_t *used;                       /* [checkpoint_count] */
    uint64_t dummy_seed;
};

sumi_status binder_open(struct binder *b, const struct checkpoint *c, struct model *m,
                        uint64_t dummy_seed, sumi_error *err);
void binder_reset(struct binder *b);

/* True if a tensor `base`, `base.weight` or `base.weight_packed` exists. */
bool bind_has(const struct binder *b, const char *base);

/* A vector as f32: `base.weight`, or `base` itself. */
sumi_status bind_vector(struct binder *b, const char *base, int64_t n, const float **out,
                        sumi_error *err);

/* A matrix in its stored format. */
sumi_status bind_matrix(struct binder *b, const char *base, int64_t n_out, int64_t n_in,
                        struct weight *out, sumi_error *err);

/* n matrices stored as one tensor [n][n_out][n_in]; matrix i goes to *(out + i * stride bytes). */
sumi_status bind_stack(struct binder *b, const char *base, int64_t n, int64_t n_out, int64_t n_in,
                       struct weight *out, size_t stride, sumi_error *err);

/* Rows [first, first + n) of a matrix. */
struct weight weight_rows(const struct weight *w, int64_t first, int64_t n);

/* A tensor that may be there and is not needed. */
void bind_ignore(struct binder *b, const char *name);

/* SUMI_ERR_SHAPE listing the tensors nothing asked for. */
sumi_status bind_finish(const struct binder *b, sumi_error *err);

#endif
