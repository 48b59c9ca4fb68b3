/* Metadata values flow in as checked ranges of a file, numbers and texts flow out. Knows value
 * types and how far they convert, not what any key means. */
#include "file/gguf.h"

#include <inttypes.h>

#include "file/gguf_read.h"
#include "file/le.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},     [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},     [GGUF_U32] = {"u32", 4},   [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},     [GGUF_BOOL] = {"bool", 1}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8},   [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

const char *gguf_type_name(enum gguf_type t) {
    return types[t].name;
}

size_t gguf_type_bytes(enum gguf_type t) {
    return types[t].bytes;
}

size_t gguf_count(const struct gguf *g) {
    return g->n;
}

const struct gguf_value *gguf_at(const struct gguf *g, size_t i) {
    return &g->kv[i];
}

const struct gguf_value *gguf_find(const struct gguf *g, const char *key) {
    return name_index_find(&g->index, key);
}

bool gguf_value_i64(const struct gguf_value *v, size_t i, int64_t *out) {
    if (i >= v->n) return false;
    const uint8_t *p = v->data + i * gguf_type_bytes(v->type);
    switch (v->type) {
    case GGUF_U8: *out = p[0]; return true;
    case GGUF_I8: *out = (int8_t)p[0]; return true;
    case GGUF_U16: *out = le16(p); return true;
    case GGUF_I16: *out = (int16_t)le16(p); return true;
    case GGUF_U32: *out = le32(p); return true;
    case GGUF_I32: *out = (int32_t)le32(p); return true;
    case GGUF_BOOL: *out = p[0] != 0; return true;
    case GGUF_I64: *out = (int64_t)le64(p); return true;
    case GGUF_U64:
        if (le64(p) > INT64_MAX) return false;
        *out = (int64_t)le64(p);
        return true;
    case GGUF_F32:
    case GGUF_F64:
    case GGUF_STRING:
    case GGUF_ARRAY: break;
    }
    return false;
}

bool gguf_value_f64(const struct gguf_value *v, size_t i, double *out) {
    if (i >= v->n) return false;
    const uint8_t *p = v->data + i * gguf_type_bytes(v->type);
    int64_t whole;
    switch (v->type) {
    case GGUF_F32: *out = (double)le_f32(p); return true;
    case GGUF_F64: *out = le_f64(p); return true;
    case GGUF_U64: *out = (double)le64(p); return true;
    case GGUF_BOOL: return false;
    default:
        if (!gguf_value_i64(v, i, &whole)) return false;
        *out = (double)whole;
        return true;
    }
}

bool gguf_next_string(const struct gguf_value *v, size_t *at, const char **s, size_t *n) {
    if (v->type != GGUF_STRING || *at >= v->bytes) return false;
    *n = (size_t)le64(v->data + *at);
    *s = (const char *)v->data + *at + 8;
    *at += 8 + *n;
    return true;
}

/* The scalar at a key; *out is NULL when it is absent and need not be there. */
static sumi_status find_scalar(const struct gguf *g, const char *key, bool required,
                               const struct gguf_value **out, sumi_error *err) {
    *out = gguf_find(g, key);
    if (*out || !required) return SUMI_OK;
    return fail_param(err, SUMI_ERR_MISSING, key, "%s: key \"%.200s\" is not in the file", g->file,
                      key);
}

static sumi_status wrong_type(const struct gguf *g, const struct gguf_value *v, const char *want,
                              sumi_error *err) {
    if (v->is_array)
        return fail_param(
            err, SUMI_ERR_FORMAT, v->key,
            "%s: key \"%.200s\": expected %s, found an array of %zu values of type %s", g->file,
            v->key, want, v->n, gguf_type_name(v->type));
    return fail_param(err, SUMI_ERR_FORMAT, v->key,
                      "%s: key \"%.200s\": expected %s, found type %s", g->file, v->key, want,
                      gguf_type_name(v->type));
}

sumi_status gguf_get_i64(const struct gguf *g, const char *key, bool required, int64_t *out,
                         sumi_error *err) {
    const struct gguf_value *v;
    TRY(find_scalar(g, key, required, &v, err));
    if (!v || (!v->is_array && v->type != GGUF_BOOL && gguf_value_i64(v, 0, out))) return SUMI_OK;
    if (!v->is_array && v->type == GGUF_U64)
        return fail_param(err, SUMI_ERR_FORMAT, key,
                          "%s: key \"%.200s\": expected a number below 2^63, found %" PRIu64,
                          g->file, key, le64(v->data));
    return wrong_type(g, v, "an integer", err);
}

sumi_status gguf_get_f64(const struct gguf *g, const char *key, bool required, double *out,
                         sumi_error *err) {
    const struct gguf_value *v;
    TRY(find_scalar(g, key, required, &v, err));
    if (!v || (!v->is_array && gguf_value_f64(v, 0, out))) return SUMI_OK;
    return wrong_type(g, v, "a number", err);
}

sumi_status gguf_get_bool(const struct gguf *g, const char *key, bool required, bool *out,
                          sumi_error *err) {
    const struct gguf_value *v;
    TRY(find_scalar(g, key, required, &v, err));
    if (!v) return SUMI_OK;
    if (v->is_array || v->type != GGUF_BOOL) return wrong_type(g, v, "a bool", err);
    *out = v->data[0] != 0;
    return SUMI_OK;
}

sumi_status gguf_get_string(const struct gguf *g, const char *key, bool required, const char **out,
                            size_t *n, sumi_error *err) {
    const struct gguf_value *v;
    size_t at = 0;
    TRY(find_scalar(g, key, required, &v, err));
    if (!v || (!v->is_array && gguf_next_string(v, &at, out, n))) return SUMI_OK;
    return wrong_type(g, v, "a string", err);
}
