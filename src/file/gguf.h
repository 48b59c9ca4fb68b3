/* GGUF version 3: metadata by key. Layout: docs/formats.md; the container is little endian. */
#ifndef SUMI_FILE_GGUF_H
#define SUMI_FILE_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct gguf;

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

/* A metadata value. Strings are not NUL-terminated; data is borrowed from the file's mapping. */
struct gguf_value {
    const char *key;     /* NUL-terminated copy */
    enum gguf_type type; /* element type when is_array */
    bool is_array;
    size_t n; /* elements; 1 for a scalar */
    const uint8_t
        *data;    /* packed elements, little endian, unaligned; strings as u64 length + bytes */
    size_t bytes; /* of data */
};

size_t gguf_count(const struct gguf *g);
const struct gguf_value *gguf_at(const struct gguf *g, size_t i);
const struct gguf_value *gguf_find(const struct gguf *g, const char *key); /* NULL if absent */

/* Typed reads. An absent key leaves *out untouched and returns SUMI_OK when `required` is false,
 * else SUMI_ERR_MISSING naming the key; a wrong type is SUMI_ERR_FORMAT naming both types. Integer
 * reads accept every integer type whose value fits. */
sumi_status gguf_get_i64(const struct gguf *g, const char *key, bool required, int64_t *out,
                         sumi_error *err);
sumi_status gguf_get_f64(const struct gguf *g, const char *key, bool required, double *out,
                         sumi_error *err);
sumi_status gguf_get_bool(const struct gguf *g, const char *key, bool required, bool *out,
                          sumi_error *err);
sumi_status gguf_get_string(const struct gguf *g, const char *key, bool required, const char **out,
                            size_t *n, sumi_error *err);

/* Element i of an array (or of a scalar seen as an array of one). The index must be below v->n and
 * the type must fit, else false. */
bool gguf_value_i64(const struct gguf_value *v, size_t i, int64_t *out); /* integers and bool */
bool gguf_value_f64(const struct gguf_value *v, size_t i, double *out);  /* floats and integers */

/* Strings of an array in order: start with *at = 0, call n times. False at the end or when the
 * value holds no strings. */
bool gguf_next_string(const struct gguf_value *v, size_t *at, const char **s, size_t *n);

#endif
