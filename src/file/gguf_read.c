/* The bytes of one .gguf file flow in; metadata values and tensors flow out, each proven to lie
 * inside the file. Knows the container only: of all keys it reads general.alignment alone, and no
 * count that the header claims is allocated before the file is known to be long enough for it. */
#include "file/gguf_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "file/le.h"

enum {
    VERSION = 3,
    MAX_KEYS = 1 << 16,
    MAX_KEY_BYTES = 65535, /* the format's own limit */
    MAX_TENSORS = 1 << 20,
    MIN_KEY_BYTES = 8 + 1 + 4 + 1,        /* the smallest key and value */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8, /* the smallest tensor info */
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20,
};

struct reader {
    const uint8_t *data;
    size_t bytes, at;
    const char *file;
    sumi_error *err;
};

/* Takes n bytes; `what` is being read. NULL, and a message, when the file ends before that. */
static const uint8_t *take(struct reader *r, uint64_t n, const char *what) {
    if (n > r->bytes - r->at) {
        fail_with(r->err, SUMI_ERR_FORMAT,
                  "%s: %s at byte %zu takes %" PRIu64
                  " bytes, but only %zu follow; the file is cut "
                  "off or damaged",
                  r->file, what, r->at, n, r->bytes - r->at);
        return NULL;
    }
    const uint8_t *p = r->data + r->at;
    r->at += (size_t)n;
    return p;
}

static sumi_status take_u32(struct reader *r, const char *what, uint32_t *out) {
    const uint8_t *p = take(r, 4, what);
    *out = p ? le32(p) : 0;
    return p ? SUMI_OK : SUMI_ERR_FORMAT;
}

static sumi_status take_u64(struct reader *r, const char *what, uint64_t *out) {
    const uint8_t *p = take(r, 8, what);
    *out = p ? le64(p) : 0;
    return p ? SUMI_OK : SUMI_ERR_FORMAT;
}

static sumi_status take_string(struct reader *r, const char *what, const char **s, size_t *n) {
    uint64_t len;
    TRY(take_u64(r, what, &len));
    *s = (const char *)take(r, len, what);
    *n = (size_t)len;
    return *s ? SUMI_OK : SUMI_ERR_FORMAT;
}

static sumi_status read_version(struct reader *r) {
    const uint8_t *magic = take(r, 4, "the magic \"GGUF\"");
    uint32_t version;
    if (!magic) return SUMI_ERR_FORMAT;
    if (memcmp(magic, "GGUF", 4) != 0)
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "%s: no GGUF file: it begins with %02x %02x %02x %02x instead of \"GGUF\"",
                         r->file, magic[0], magic[1], magic[2], magic[3]);
    TRY(take_u32(r, "the version", &version));
    if (version == VERSION) return SUMI_OK;
    if ((version & 0xFFFF) == 0 && version != 0)
        return fail_with(r->err, SUMI_ERR_UNSUPPORTED,
                         "%s: a big-endian GGUF file; only little-endian ones are read: convert it "
                         "with gguf-convert-endian of gguf-py",
                         r->file);
    return fail_with(r->err, SUMI_ERR_UNSUPPORTED, "%s: GGUF version %" PRIu32 ", expected %d%s",
                     r->file, version, VERSION,
                     version == 1 || version == 2 ? ": convert the model again with current tools"
                                                  : "");
}

/* A count of things of at least min_bytes each. */
static sumi_status read_count(struct reader *r, const char *what, uint64_t min_bytes,
                              uint64_t limit, uint64_t *out) {
    TRY(take_u64(r, what, out));
    if (*out > r->bytes / min_bytes)
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "%s: %s is %" PRIu64 ", more than a file of %zu bytes can hold", r->file,
                         what, *out, r->bytes);
    if (*out > limit)
        return fail_with(r->err, SUMI_ERR_LIMIT,
                         "%s: %s is %" PRIu64 ", over the limit of %" PRIu64, r->file, what, *out,
                         limit);
    return SUMI_OK;
}

static sumi_status bad_key(struct reader *r, sumi_status code, const char *key, const char *why,
                           uint64_t value) {
    return fail_with(r->err, code, "%s: key \"%.200s\" %s (%" PRIu64 ")", r->file, key, why, value);
}

/* Steps over the n elements of v and sets v->data and v->bytes. */
static sumi_status take_elements(struct reader *r, struct gguf_value *v, uint64_t n) {
    char what[256];
    snprintf(what, sizeof what, "key \"%.200s\"", v->key);
    size_t each = gguf_type_bytes(v->type), start = r->at;
    /* Every string takes at least its length. */
    if (n > (r->bytes - r->at) / (each ? each : 8))
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "%s: %s has %" PRIu64 " elements of type %s, but only %zu bytes follow; "
                         "the file is cut off or damaged",
                         r->file, what, n, gguf_type_name(v->type), r->bytes - r->at);
    v->data = r->data + r->at;
    v->n = (size_t)n;
    if (each) r->at += (size_t)n * each;
    for (uint64_t i = 0; !each && i < n; i++) {
        const char *s;
        size_t len;
        TRY(take_string(r, what, &s, &len));
    }
    v->bytes = r->at - start;
    return SUMI_OK;
}

static sumi_status read_value(struct reader *r, struct gguf_value *v) {
    uint32_t type;
    uint64_t n = 1;
    TRY(take_u32(r, "a value type", &type));
    if (type == GGUF_ARRAY) {
        v->is_array = true;
        TRY(take_u32(r, "an element type", &type));
        TRY(take_u64(r, "an array length", &n));
        if (type == GGUF_ARRAY)
            return bad_key(r, SUMI_ERR_UNSUPPORTED, v->key,
                           "is an array of arrays, which is not supported", n);
    }
    if (type > GGUF_F64)
        return bad_key(r, SUMI_ERR_UNSUPPORTED, v->key, "has an unknown value type", type);
    v->type = (enum gguf_type)type;
    return take_elements(r, v, n);
}

static sumi_status add_value(struct reader *r, struct gguf *g) {
    const char *key;
    size_t n;
    struct gguf_value v = {0};
    TRY(take_string(r, "a key", &key, &n));
    TRY(name_check(key, n, MAX_KEY_BYTES, r->file, "metadata key", r->err));
    v.key = strings_copy(&g->strings, key, n);
    if (!v.key) return NO_MEMORY(r->err, n);
    TRY(read_value(r, &v));
    if (g->n == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 64;
        struct gguf_value *kv = mem_resize(g->kv, cap, sizeof *kv);
        if (!kv) return NO_MEMORY(r->err, cap * sizeof *kv);
        g->kv = kv;
        g->cap = cap;
    }
    g->kv[g->n++] = v;
    return SUMI_OK;
}

static sumi_status read_metadata(struct reader *r, struct gguf *g, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) TRY(add_value(r, g));
    TRY(name_index_build(&g->index, g->kv, g->n, sizeof *g->kv, r->err));
    const void *const *twice = name_index_twice(&g->index);
    if (!twice) return SUMI_OK;
    return fail_with(r->err, SUMI_ERR_FORMAT, "%s: key \"%.200s\" comes twice", r->file,
                     ((const struct gguf_value *)*twice)->key);
}

static sumi_status read_alignment(struct reader *r, const struct gguf *g, size_t *out) {
    static const char key[] = "general.alignment";
    const struct gguf_value *v = gguf_find(g, key);
    *out = DEFAULT_ALIGNMENT;
    if (!v) return SUMI_OK;
    if (v->is_array || v->type != GGUF_U32)
        return fail_with(r->err, SUMI_ERR_FORMAT, "%s: key \"%s\": expected type u32, found %s%s",
                         r->file, key, v->is_array ? "an array of " : "", gguf_type_name(v->type));
    uint32_t a = le32(v->data);
    if (a == 0 || a > MAX_ALIGNMENT || (a & (a - 1)))
        return bad_key(r, SUMI_ERR_FORMAT, key, "must be a power of two, at most 2^20", a);
    *out = a;
    return SUMI_OK;
}

/* Types by their number in a file; those without a dtype are known by name only. */
static sumi_status tensor_type(struct reader *r, uint32_t id, struct tensor *t) {
    static const struct {
        const char *name;
        enum dtype dtype; /* DT_COUNT: not supported */
    } known[] = {
        [0] = {"F32", DT_F32},
        [1] = {"F16", DT_F16},
        [2] = {"Q4_0", DT_Q4_0},
        [3] = {"Q4_1", DT_Q4_1},
        [4] = {"Q4_2", DT_COUNT},
        [5] = {"Q4_3", DT_COUNT},
        [6] = {"Q5_0", DT_COUNT},
        [7] = {"Q5_1", DT_COUNT},
        [8] = {"Q8_0", DT_Q8_0},
        [9] = {"Q8_1", DT_COUNT},
        [10] = {"Q2_K", DT_COUNT},
        [11] = {"Q3_K", DT_COUNT},
        [12] = {"Q4_K", DT_Q4_K},
        [13] = {"Q5_K", DT_Q5_K},
        [14] = {"Q6_K", DT_Q6_K},
        [15] = {"Q8_K", DT_COUNT},
        [16] = {"IQ2_XXS", DT_COUNT},
        [17] = {"IQ2_XS", DT_COUNT},
        [18] = {"IQ3_XXS", DT_COUNT},
        [19] = {"IQ1_S", DT_COUNT},
        [20] = {"IQ4_NL", DT_COUNT},
        [21] = {"IQ3_S", DT_COUNT},
        [22] = {"IQ2_S", DT_COUNT},
        [23] = {"IQ4_XS", DT_COUNT},
        [24] = {"I8", DT_I8},
        [25] = {"I16", DT_I16},
        [26] = {"I32", DT_I32},
        [27] = {"I64", DT_I64},
        [28] = {"F64", DT_F64},
        [29] = {"IQ1_M", DT_COUNT},
        [30] = {"BF16", DT_BF16},
        [31] = {"Q4_0_4_4", DT_COUNT},
        [32] = {"Q4_0_4_8", DT_COUNT},
        [33] = {"Q4_0_8_8", DT_COUNT},
        [34] = {"TQ1_0", DT_COUNT},
        [35] = {"TQ2_0", DT_COUNT},
        [36] = {"IQ4_NL_4_4", DT_COUNT},
        [37] = {"IQ4_NL_4_8", DT_COUNT},
        [38] = {"IQ4_NL_8_8", DT_COUNT},
        [39] = {"MXFP4", DT_COUNT},
        [40] = {"NVFP4", DT_NVFP4},
        [41] = {"Q1_0", DT_COUNT},
    };
    if (id < sizeof known / sizeof *known && known[id].dtype != DT_COUNT) {
        t->dtype = known[id].dtype;
        return SUMI_OK;
    }
    return fail_with(r->err, SUMI_ERR_UNSUPPORTED,
                     "%s: tensor \"%s\" has the type %s (id %" PRIu32 "), which is not supported; "
                     "supported are F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K, Q5_K, Q6_K, NVFP4",
                     r->file, t->name,
                     id < sizeof known / sizeof *known ? known[id].name : "unknown", id);
}

/* The sizes of a tensor, innermost first in the file, outermost first here. */
static sumi_status read_dims(struct reader *r, struct tensor *t) {
    uint32_t n;
    TRY(take_u32(r, "a number of dimensions", &n));
    if (n > TENSOR_MAX_DIM)
        return fail_with(r->err, SUMI_ERR_UNSUPPORTED,
                         "%s: tensor \"%s\" has %" PRIu32 " dimensions, at most %d are supported",
                         r->file, t->name, n, TENSOR_MAX_DIM);
    t->n_dim = (int)n;
    for (int i = 0; i < TENSOR_MAX_DIM; i++) t->dim[i] = 1;
    for (int i = t->n_dim - 1; i >= 0; i--) {
        uint64_t dim;
        TRY(take_u64(r, "a dimension", &dim));
        if (dim < 1 || dim > INT64_MAX)
            return fail_with(r->err, SUMI_ERR_SHAPE,
                             "%s: tensor \"%s\": dimension %" PRId64 ", expected 1 or more",
                             r->file, t->name, (int64_t)dim);
        t->dim[i] = (int64_t)dim;
    }
    return SUMI_OK;
}

static sumi_status read_info(struct reader *r, struct tensor_list *list, size_t alignment,
                             uint64_t *offset) {
    const char *name;
    size_t n;
    uint32_t type;
    struct tensor t = {.file = r->file};
    TRY(take_string(r, "a tensor name", &name, &n));
    TRY(name_check(name, n, TENSOR_MAX_NAME, r->file, "tensor name", r->err));
    t.name = strings_copy(&list->strings, name, n);
    if (!t.name) return NO_MEMORY(r->err, n);
    TRY(read_dims(r, &t));
    TRY(take_u32(r, "a tensor type", &type));
    TRY(tensor_type(r, type, &t));
    TRY(tensor_measure(&t, r->err));
    TRY(take_u64(r, "a tensor offset", offset));
    if (*offset % alignment)
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "%s: tensor \"%s\" has the offset %" PRIu64 ", expected a multiple of %zu",
                         r->file, t.name, *offset, alignment);
    return tensor_list_add(list, &t, r->err);
}

/* Offsets count from the data section, which begins behind the last info. */
static sumi_status place(struct reader *r, struct tensor_list *list, size_t first,
                         const uint64_t *offset, size_t alignment) {
    size_t start, end = 0;
    if (first == list->n) return SUMI_OK;
    const struct tensor *last = NULL;
    bool fits = size_align(r->at, alignment, &start);
    for (size_t i = first; i < list->n; i++) {
        struct tensor *t = &list->at[i];
        size_t begin, stop;
        fits = fits && offset[i - first] <= PTRDIFF_MAX &&
               size_add(start, (size_t)offset[i - first], &begin) &&
               size_add(begin, t->bytes, &stop);
        if (!fits)
            return fail_with(r->err, SUMI_ERR_FORMAT,
                             "%s: tensor \"%s\" has the offset %" PRIu64 ", which no file can hold",
                             r->file, t->name, offset[i - first]);
        if (stop > end) {
            end = stop;
            last = t;
        }
        t->data = begin <= r->bytes ? r->data + begin : NULL;
    }
    if (end > r->bytes)
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "%s: expected %zu bytes, where tensor \"%s\" ends, found %zu; the file is "
                         "cut off or its header is damaged: fetch it again",
                         r->file, end, last->name, r->bytes);
    return tensor_list_order(list, first, r->err);
}

static sumi_status read_tensors(struct reader *r, struct tensor_list *list, uint64_t n,
                                size_t alignment) {
    size_t first = list->n;
    uint64_t *offset = mem_zero((size_t)n, sizeof *offset);
    if (!offset) return NO_MEMORY(r->err, n * sizeof *offset);
    sumi_status status = SUMI_OK;
    for (uint64_t i = 0; status == SUMI_OK && i < n; i++)
        status = read_info(r, list, alignment, &offset[i]);
    if (status == SUMI_OK) status = place(r, list, first, offset, alignment);
    mem_free(offset);
    return status;
}

static sumi_status read_file(struct reader *r, struct gguf *g, struct tensor_list *list) {
    uint64_t n_tensor, n_key;
    size_t alignment;
    TRY(read_version(r));
    TRY(read_count(r, "the tensor count", MIN_TENSOR_BYTES, MAX_TENSORS, &n_tensor));
    TRY(read_count(r, "the key count", MIN_KEY_BYTES, MAX_KEYS, &n_key));
    TRY(read_metadata(r, g, n_key));
    TRY(read_alignment(r, g, &alignment));
    return read_tensors(r, list, n_tensor, alignment);
}

sumi_status gguf_read(struct gguf **out, struct tensor_list *list, const uint8_t *data,
                      size_t bytes, const char *file, sumi_error *err) {
    *out = NULL;
    struct gguf *g = mem_zero(1, sizeof *g);
    if (!g) return NO_MEMORY(err, sizeof *g);
    g->file = file;
    struct reader r = {.data = data, .bytes = bytes, .file = file, .err = err};
    sumi_status status = read_file(&r, g, list);
    if (status == SUMI_OK) *out = g;
    else gguf_close(g);
    return status;
}

void gguf_close(struct gguf *g) {
    if (!g) return;
    name_index_reset(&g->index);
    strings_reset(&g->strings);
    mem_free(g->kv);
    mem_free(g);
}
