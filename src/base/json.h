/* Reading JSON with json-c: depth-limited, UTF-8 checked, errors with an offset. */
#ifndef SUMI_BASE_JSON_H
#define SUMI_BASE_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/file_read.h"
#include "base/status.h"

#define JSON_MAX_DEPTH 128

/* Parses exactly one value from text[0..n); anything but white space after it is an error. Strict:
 * no comments, NaN, Infinity, single quotes, control characters in strings, lone surrogates.
 * Duplicate keys: the last one wins. Depth over JSON_MAX_DEPTH is SUMI_ERR_LIMIT, everything else
 * SUMI_ERR_FORMAT with the byte offset in err->param. *out is owned (json_object_put); it is NULL
 * for the JSON value null. `what` names the source in messages ("request body", a file name). */
sumi_status json_parse(struct json_object **out, const char *text, size_t n, const char *what,
                       sumi_error *err);

/* Reads and parses a file of at most max_bytes. */
sumi_status json_parse_file(struct json_object **out, const char *path, size_t max_bytes,
                            sumi_error *err);

/* Member of an object, or NULL when o is no object, the key is absent or its value is null. */
struct json_object *json_get(struct json_object *o, const char *key);

static inline bool json_is(struct json_object *o, enum json_type type) {
    return json_object_get_type(o) == type;
}

/* Typed members with a default for absent or null; a wrong type is SUMI_ERR_FORMAT naming the key
 * (also in err->param). Integers given as 5.0 are accepted. */
sumi_status json_get_i64(struct json_object *o, const char *key, int64_t *out, sumi_error *err);
sumi_status json_get_f64(struct json_object *o, const char *key, double *out, sumi_error *err);
sumi_status json_get_bool(struct json_object *o, const char *key, bool *out, sumi_error *err);
sumi_status json_get_str(struct json_object *o, const char *key, const char **out,
                         sumi_error *err); /* borrowed from o */

#endif
