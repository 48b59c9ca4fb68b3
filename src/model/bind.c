/* Binding of tensors by name. Knows storage conventions, not architectures. */
#include "model/bind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/size.h"
#include "file/block.h"
#include "model/dummy.h"
#include "ops/op.h"

enum { MAX_NAME = 256 };

sumi_status binder_open(struct binder *b, const struct checkpoint *c, struct model *m,
                        uint64_t dummy_seed, sumi_error *err) {
    *b = (struct binder){.checkpoint = c, .model = m, .dummy_seed = dummy_seed};
    if (!c) return SUMI_OK;
    b->used = mem_zero(checkpoint_count(c), 1);
    return b->used ? SUMI_OK : NO_MEMORY(err, checkpoint_count(c));
}

void binder_reset(struct binder *b) {
    mem_free(b->used);
    *b = (struct binder){0};
}

static const struct tensor *look(const struct binder *b, const char *base, const char *suffix) {
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s%s", base, suffix);
    return b->checkpoint ? checkpoint_find(b->checkpoint, name) : NULL;
}

static void use(struct binder *b, const struct tensor *t) {
    if (t) b->used[t - checkpoint_at(b->checkpoint, 0)] = 1;
}

static const struct tensor *take(struct binder *b, const char *base, const char *suffix) {
    const struct tensor *t = look(b, base, suffix);
    use(b, t);
    return t;
}

bool bind_has(const struct binder *b, const char *base) {
    return look(b, base, ".weight") || look(b, base, "") || look(b, base, ".weight_packed");
}

void bind_ignore(struct binder *b, const char *name) {
    use(b, look(b, name, ""));
}

static sumi_status missing(const char *name, const char *shape, sumi_error *err) {
    return fail_with(err, SUMI_ERR_MISSING,
                     "tensor \"%s\" is missing, expected shape %s; is the checkpoint complete and "
                     "of this architecture?",
                     name, shape);
}

static sumi_status misshapen(const struct tensor *t, const char *want, sumi_error *err) {
    char found[128];
    return fail_with(err, SUMI_ERR_SHAPE, "%s: tensor \"%s\" is %s, expected %s", t->file, t->name,
                     tensor_describe(t, found, sizeof found), want);
}

static bool is_float(enum dtype t) {
    return t == DT_F32 || t == DT_F16 || t == DT_BF16;
}

sumi_status bind_vector(struct binder *b, const char *base, int64_t n, const float **out,
                        sumi_error *err) {
    char want[64];
    float *v = model_alloc(b->model, (size_t)n, sizeof *v);
    if (!v) return NO_MEMORY(err, (size_t)n * sizeof *v);
    *out = v;
    b->model->n_param += n;
    if (!b->checkpoint) {
        for (int64_t i = 0; i < n; i++) v[i] = 1.0f;
        return SUMI_OK;
    }
    snprintf(want, sizeof want, "F32, F16 or BF16 [%" PRId64 "]", n);
    const struct tensor *t = take(b, base, ".weight");
    if (!t) t = take(b, base, "");
    if (!t) return missing(base, want, err);
    if (!is_float(t->dtype) || t->n_dim != 1 || t->dim[0] != n) return misshapen(t, want, err);
    block_decode(t->dtype, t->data, (size_t)n, v);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return fail_with(err, SUMI_ERR_NUMERIC, "%s: tensor \"%s\" holds %f at index %" PRId64,
                             t->file, t->name, (double)v[i], i);
    return SUMI_OK;
}

/* The formats an operation can read; a row must be a whole number of blocks. */
static bool can_read(enum dtype t, int64_t n_in, size_t *row_bytes) {
    return (is_float(t) || (t >= DT_Q4_0 && t <= DT_NVFP4)) &&
           dtype_row_bytes(t, (size_t)n_in, row_bytes);
}

static sumi_status one_scale(const struct tensor *t, size_t i, size_t n, float *out,
                             sumi_error *err) {
    if (t->dtype != DT_F32 || t->bytes != n * sizeof(float)) {
        char want[64];
        snprintf(want, sizeof want, "F32 with %zu values", n);
        return misshapen(t, want, err);
    }
    memcpy(out, (const char *)t->data + i * sizeof(float), sizeof(float));
    if (!isfinite(*out) || *out <= 0)
        return fail_with(err, SUMI_ERR_NUMERIC,
                         "%s: scale \"%s\" is %g at index %zu, expected a finite value over 0",
                         t->file, t->name, (double)*out, i);
    return SUMI_OK;
}

/* ModelOpt's layout becomes GGUF blocks in memory of the model. */
static sumi_status convert_nvfp4(struct binder *b, const char *base, const struct tensor *t,
                                 struct weight *w, sumi_error *err) {
    char want[96];
    int64_t n_out = w->n_out, n_in = w->n_in;
    snprintf(want, sizeof want, "U8 [%" PRId64 ", %" PRId64 "] (two values a byte)", n_out,
             n_in / 2);
    if (n_in % 64 || t->n_dim != 2 || t->dim[0] != n_out || t->dim[1] != n_in / 2)
        return misshapen(t, want, err);
    const struct tensor *s = take(b, base, ".weight_scale");
    snprintf(want, sizeof want, "F8_E4M3 [%" PRId64 ", %" PRId64 "]", n_out, n_in / 16);
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s.weight_scale", base);
    if (!s) return missing(name, want, err);
    if (s->dtype != DT_E4M3 || s->n_dim != 2 || s->dim[0] != n_out || s->dim[1] != n_in / 16)
        return misshapen(s, want, err);
    for (size_t i = 0; i < s->bytes; i++)
        if (((const uint8_t *)s->data)[i] >= 0x7F)
            return fail_with(err, SUMI_ERR_NUMERIC,
                             "%s: block scale %zu of \"%s\" is negative or not a number", s->file,
                             i, s->name);
    const struct tensor *g = take(b, base, ".weight_scale_2");
    const struct tensor *inverse = g ? NULL : take(b, base, ".weight_global_scale");
    snprintf(name, sizeof name, "%s.weight_scale_2", base);
    if (!g && !inverse) return missing(name, "F32 scalar", err);
    TRY(one_scale(g ? g : inverse, 0, 1, &w->scale, err));
    if (inverse) w->scale = 1.0f / w->scale;
    take(b, base, ".input_scale");
    take(b, base, ".input_global_scale");
    uint8_t *data = model_alloc(b->model, (size_t)n_out, w->row_bytes);
    if (!data) return NO_MEMORY(err, (size_t)n_out * w->row_bytes);
    nvfp4_from_modelopt(t->data, s->data, (size_t)n_out, (size_t)n_in, data);
    w->data = data;
    return SUMI_OK;
}

/* A block scale of 0xFF would be 480 or NaN, depending on the reader. */
static sumi_status check_nvfp4(const struct tensor *t, sumi_error *err) {
    const uint8_t *p = t->data;
    for (size_t i = 0; i < t->bytes; i += 36)
        for (size_t j = 0; j < 4; j++)
            if (p[i + j] == 0xFF)
                return fail_with(err, SUMI_ERR_NUMERIC,
                                 "%s: tensor \"%s\" has block scale 0xFF in block %zu, which no "
                                 "writer of this format makes",
                                 t->file, t->name, i / 36);
    return SUMI_OK;
}

sumi_status bind_matrix(struct binder *b, const char *base, int64_t n_out, int64_t n_in,
                        struct weight *out, sumi_error *err) {
    return bind_stack(b, base, 1, n_out, n_in, out, sizeof *out, err);
}

static struct weight *nth(struct weight *w, size_t stride, int64_t i) {
    return (struct weight *)(void *)((char *)w + (size_t)i * stride);
}

static sumi_status bind_dummy(struct binder *b, int64_t n, int64_t n_out, int64_t n_in,
                              struct weight *out, size_t stride, sumi_error *err) {
    size_t count;
    if (!size_mul((size_t)n_out, (size_t)n_in, &count)) return NO_MEMORY(err, SIZE_MAX);
    for (int64_t i = 0; i < n; i++) {
        bf16 *data = model_alloc(b->model, count, sizeof *data);
        if (!data) return NO_MEMORY(err, count * sizeof *data);
        dummy_fill(data, count, b->dummy_seed++);
        *nth(out, stride, i) = (struct weight){DT_BF16, data, n_out, n_in, (size_t)n_in * 2, 1.0f};
    }
    return SUMI_OK;
}

sumi_status bind_stack(struct binder *b, const char *base, int64_t n, int64_t n_out, int64_t n_in,
                       struct weight *out, size_t stride, sumi_error *err) {
    b->model->n_param += n * n_out * n_in;
    if (!b->checkpoint) return bind_dummy(b, n, n_out, n_in, out, stride, err);
    char want[96];
    if (n == 1) snprintf(want, sizeof want, "[%" PRId64 ", %" PRId64 "]", n_out, n_in);
    else snprintf(want, sizeof want, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", n, n_out, n_in);
    const struct tensor *t = take(b, base, ".weight");
    if (!t) t = take(b, base, ".weight_packed");
    if (!t) t = take(b, base, "");
    if (!t) {
        char name[MAX_NAME];
        snprintf(name, sizeof name, "%s.weight", base);
        return missing(name, want, err);
    }
    struct weight w = {t->dtype, t->data, n_out, n_in, 0, 1.0f};
    if (t->dtype == DT_U8 && n == 1 && dtype_row_bytes(DT_NVFP4, (size_t)n_in, &w.row_bytes)) {
        w.dtype = DT_NVFP4;
        *out = w;
        return convert_nvfp4(b, base, t, out, err);
    }
    bool shaped =
        n == 1 ? (t->n_dim == 2 && t->dim[0] == n_out && t->dim[1] == n_in)
               : (t->n_dim == 3 && t->dim[0] == n && t->dim[1] == n_out && t->dim[2] == n_in);
    if (!shaped) return misshapen(t, want, err);
    if (!can_read(t->dtype, n_in, &w.row_bytes))
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "%s: tensor \"%s\" is stored as %s, which cannot be read as a matrix of "
                         "rows of %" PRId64 " values",
                         t->file, t->name, dtype_info(t->dtype)->name, n_in);
    const struct tensor *s = take(b, base, ".scale");
    take(b, base, ".input_scale");
    if (t->dtype == DT_NVFP4) TRY(check_nvfp4(t, err));
    for (int64_t i = 0; i < n; i++) {
        w.data = (const uint8_t *)t->data + (size_t)(i * n_out) * w.row_bytes;
        if (s) TRY(one_scale(s, (size_t)i, (size_t)n, &w.scale, err));
        *nth(out, stride, i) = w;
    }
    return SUMI_OK;
}

struct weight weight_rows(const struct weight *w, int64_t first, int64_t n) {
    struct weight r = *w;
    r.data = (const uint8_t *)w->data + (size_t)first * w->row_bytes;
    r.n_out = n;
    return r;
}

sumi_status bind_finish(const struct binder *b, sumi_error *err) {
    if (!b->checkpoint) return SUMI_OK;
    size_t n = 0;
    struct buf names = {.max = 600};
    for (size_t i = 0; i < checkpoint_count(b->checkpoint); i++) {
        if (b->used[i]) continue;
        if (++n <= 5)
            buf_printf(&names, "%s\"%s\"", n > 1 ? ", " : "",
                       checkpoint_at(b->checkpoint, i)->name);
    }
    sumi_status status = SUMI_OK;
    if (n)
        status = fail_with(err, SUMI_ERR_SHAPE,
                           "%zu tensor%s of the checkpoint %s not part of this architecture: %s%s",
                           n, n > 1 ? "s" : "", n > 1 ? "are" : "is", buf_text(&names),
                           n > 5 ? ", ..." : "");
    buf_reset(&names);
    return status;
}
