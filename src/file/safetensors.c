/* The bytes of one .safetensors file flow in, its tensors flow out, each proven to lie inside the
 * file. Knows the container only: no tensor name means anything here, and no size that the header
 * claims is allocated. */
#include "file/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/utf8.h"
#include "file/cursor.h"
#include "file/le.h"

enum {
    LENGTH_BYTES = 8,
    HEADER_MAX = 100000000, /* the format's own limit */
    FIELD_MAX = 32,         /* longest key or dtype worth reading: "data_offsets", "F8_E4M3FNUZ" */
};

struct reader {
    struct cursor c;
    struct tensor_list *list;
    const uint8_t *data;            /* data section */
    size_t bytes;                   /* of it */
    size_t start;                   /* of it in the file */
    size_t end;                     /* largest end of a tensor so far, may lie outside the data */
    char last[TENSOR_MAX_NAME + 1]; /* the tensor that ends there */
};

/* What an entry says, before it is believed. */
struct entry {
    char name[TENSOR_MAX_NAME + 1];
    size_t name_bytes;
    char dtype[FIELD_MAX + 1];
    int n_dim;
    uint64_t dim[TENSOR_MAX_DIM];
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
};

static sumi_status read_shape(struct reader *r, struct entry *e, sumi_error *err) {
    TRY(cursor_expect(&r->c, '[', err));
    if (cursor_try(&r->c, ']')) return SUMI_OK;
    do {
        if (e->n_dim == TENSOR_MAX_DIM)
            return fail_with(err, SUMI_ERR_UNSUPPORTED,
                             "%s: tensor \"%s\" has more than %d dimensions", r->c.what, e->name,
                             TENSOR_MAX_DIM);
        TRY(cursor_u64(&r->c, &e->dim[e->n_dim++], err));
    } while (cursor_try(&r->c, ','));
    return cursor_expect(&r->c, ']', err);
}

static sumi_status read_offsets(struct reader *r, struct entry *e, sumi_error *err) {
    TRY(cursor_expect(&r->c, '[', err));
    TRY(cursor_u64(&r->c, &e->begin, err));
    TRY(cursor_expect(&r->c, ',', err));
    TRY(cursor_u64(&r->c, &e->end, err));
    return cursor_expect(&r->c, ']', err);
}

static sumi_status read_field(struct reader *r, struct entry *e, sumi_error *err) {
    char key[FIELD_MAX + 1];
    size_t n;
    TRY(cursor_string(&r->c, key, FIELD_MAX, &n, err));
    TRY(cursor_expect(&r->c, ':', err));
    bool *seen = strcmp(key, "dtype") == 0          ? &e->has_dtype
                 : strcmp(key, "shape") == 0        ? &e->has_shape
                 : strcmp(key, "data_offsets") == 0 ? &e->has_offsets
                                                    : NULL;
    if (!seen)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: tensor \"%s\" has a field \"%s\", expected dtype, shape and "
                         "data_offsets",
                         r->c.what, e->name, key);
    if (*seen)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: tensor \"%s\" has %s twice", r->c.what, e->name,
                         key);
    *seen = true;
    if (seen == &e->has_dtype) return cursor_string(&r->c, e->dtype, FIELD_MAX, &n, err);
    return seen == &e->has_shape ? read_shape(r, e, err) : read_offsets(r, e, err);
}

static sumi_status read_entry(struct reader *r, struct entry *e, sumi_error *err) {
    TRY(cursor_expect(&r->c, '{', err));
    if (!cursor_try(&r->c, '}')) {
        do {
            TRY(read_field(r, e, err));
        } while (cursor_try(&r->c, ','));
        TRY(cursor_expect(&r->c, '}', err));
    }
    const char *absent = !e->has_dtype     ? "dtype"
                         : !e->has_shape   ? "shape"
                         : !e->has_offsets ? "data_offsets"
                                           : NULL;
    if (absent)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: tensor \"%s\" has no %s", r->c.what, e->name,
                         absent);
    return SUMI_OK;
}

/* An entry becomes a tensor when type, shape and offsets agree. A tensor that ends behind the data
 * is only noted: how long the file should be is known when all of them are read. */
static sumi_status add_tensor(struct reader *r, const struct entry *e, sumi_error *err) {
    struct tensor t = {.file = r->c.what, .n_dim = e->n_dim};
    t.name = strings_copy(&r->list->strings, e->name, e->name_bytes);
    if (!t.name) return NO_MEMORY(err, e->name_bytes);
    if (!dtype_parse(e->dtype, &t.dtype) || dtype_info(t.dtype)->block != 1)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "%s: tensor \"%s\" has the type \"%s\", which is not supported", t.file,
                         t.name, e->dtype);
    for (int i = 0; i < TENSOR_MAX_DIM; i++) {
        uint64_t dim = i < e->n_dim ? e->dim[i] : 1;
        if (dim > INT64_MAX)
            return fail_with(err, SUMI_ERR_SHAPE,
                             "%s: tensor \"%s\": dimension %" PRIu64 " is over 2^63", t.file,
                             t.name, dim);
        t.dim[i] = (int64_t)dim;
    }
    TRY(tensor_measure(&t, err));
    char text[128];
    size_t file_end;
    if (e->begin > e->end)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: tensor \"%s\" begins at %" PRIu64
                         " and ends before that, at %" PRIu64,
                         t.file, t.name, e->begin, e->end);
    if (e->end - e->begin != t.bytes)
        return fail_with(err, SUMI_ERR_SHAPE,
                         "%s: tensor \"%s\" is %s, which takes %zu bytes, but its data_offsets "
                         "[%" PRIu64 ", %" PRIu64 "] hold %" PRIu64,
                         t.file, t.name, tensor_describe(&t, text, sizeof text), t.bytes, e->begin,
                         e->end, e->end - e->begin);
    if (e->end > PTRDIFF_MAX || !size_add(r->start, (size_t)e->end, &file_end))
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: tensor \"%s\" ends at byte %" PRIu64 ", which no file can hold",
                         t.file, t.name, e->end);
    if (e->end > r->end) {
        r->end = (size_t)e->end;
        memcpy(r->last, e->name, e->name_bytes + 1);
    }
    if (e->end > r->bytes) return SUMI_OK;
    t.data = r->data + e->begin;
    return tensor_list_add(r->list, &t, err);
}

/* "__metadata__": text to text; nothing in it changes how the file is read. */
static sumi_status skip_metadata(struct reader *r, sumi_error *err) {
    size_t n;
    TRY(cursor_expect(&r->c, '{', err));
    if (cursor_try(&r->c, '}')) return SUMI_OK;
    do {
        TRY(cursor_string(&r->c, NULL, 0, &n, err));
        TRY(cursor_expect(&r->c, ':', err));
        TRY(cursor_string(&r->c, NULL, 0, &n, err));
    } while (cursor_try(&r->c, ','));
    return cursor_expect(&r->c, '}', err);
}

static sumi_status read_header(struct reader *r, sumi_error *err) {
    TRY(cursor_expect(&r->c, '{', err));
    if (!cursor_try(&r->c, '}')) {
        do {
            struct entry e = {0};
            TRY(cursor_string(&r->c, e.name, TENSOR_MAX_NAME, &e.name_bytes, err));
            TRY(cursor_expect(&r->c, ':', err));
            TRY(name_check(e.name, e.name_bytes, TENSOR_MAX_NAME, r->c.what, "tensor name", err));
            if (strcmp(e.name, "__metadata__") == 0) {
                TRY(skip_metadata(r, err));
                continue;
            }
            TRY(read_entry(r, &e, err));
            TRY(add_tensor(r, &e, err));
        } while (cursor_try(&r->c, ','));
        TRY(cursor_expect(&r->c, '}', err));
    }
    return cursor_end(&r->c) ? SUMI_OK : cursor_fail(&r->c, "nothing but blanks", err);
}

/* Every byte of the data section belongs to exactly one tensor. */
static sumi_status check_cover(const struct reader *r, size_t first, sumi_error *err) {
    const char *file = r->c.what;
    if (r->end > r->bytes)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: expected %zu bytes, where tensor \"%s\" ends, found %zu; the file is "
                         "cut off or its header is damaged: fetch it again",
                         file, r->start + r->end, r->last, r->start + r->bytes);
    TRY(tensor_list_order(r->list, first, err));
    const uint8_t *at = r->data;
    for (size_t i = first; i < r->list->n; i++) {
        const struct tensor *t = &r->list->at[i];
        if (t->data != at)
            return fail_with(err, SUMI_ERR_FORMAT,
                             "%s: a hole of %zu bytes before tensor \"%s\": every byte must belong "
                             "to a tensor",
                             file, (size_t)((const uint8_t *)t->data - at), t->name);
        at += t->bytes;
    }
    size_t rest = r->bytes - (size_t)(at - r->data);
    if (rest)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: expected %zu bytes, found %zu: %zu bytes behind the last tensor "
                         "belong to none",
                         file, r->start + r->bytes - rest, r->start + r->bytes, rest);
    return SUMI_OK;
}

sumi_status safetensors_read(struct tensor_list *list, const uint8_t *data, size_t bytes,
                             const char *file, sumi_error *err) {
    if (bytes < LENGTH_BYTES)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: expected at least %d bytes of header length, found %zu", file,
                         LENGTH_BYTES, bytes);
    uint64_t n = le64(data);
    if (n > bytes - LENGTH_BYTES)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: a header of %" PRIu64 " bytes is announced, but only %zu follow; "
                         "the file is cut off, or no safetensors file",
                         file, n, bytes - LENGTH_BYTES);
    if (n > HEADER_MAX)
        return fail_with(err, SUMI_ERR_LIMIT,
                         "%s: a header of %" PRIu64 " bytes, over the limit of %d", file, n,
                         HEADER_MAX);
    const char *text = (const char *)data + LENGTH_BYTES;
    size_t valid = utf8_valid_prefix(text, (size_t)n);
    if (valid < n)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: byte %zu of the header is not valid UTF-8",
                         file, valid);
    struct reader r = {
        .c = {.text = text, .n = (size_t)n, .what = file},
        .list = list,
        .start = LENGTH_BYTES + (size_t)n,
        .bytes = bytes - LENGTH_BYTES - (size_t)n,
        .data = data + LENGTH_BYTES + n,
    };
    size_t first = list->n;
    TRY(read_header(&r, err));
    return check_cover(&r, first, err);
}
