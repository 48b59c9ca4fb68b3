/* JSON in, over json-c. json-c is lenient where RFC 8259 is not, so the strict flag is on and what
 * it lets through (invalid UTF-8, lone surrogates, control characters) is refused here. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static sumi_status bad(sumi_error *err, sumi_status code, size_t offset, const char *what,
                       const char *why) {
    char at[32];
    snprintf(at, sizeof at, "%zu", offset);
    return fail_param(err, code, at, "%s: %s at byte %zu", what, why, offset);
}

static int hex4(const char *s, size_t n) {
    int v = 0;
    if (n < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = s[i];
        int d = c >= '0' && c <= '9'                 ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                     : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* One pass over the text for what json-c accepts but JSON does not: NaN, Infinity, comments and
 * single quotes (none of whose characters may stand outside a string), control characters and lone
 * surrogate escapes in strings, and nesting that is too deep (counted here so that the message can
 * name the limit whatever json-c reports). */
static sumi_status prescan(const char *s, size_t n, const char *what, sumi_error *err) {
    bool in = false;
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (!in) {
            if (c == '"') in = true;
            else if (c == '[' || c == '{') {
                if (++depth > JSON_MAX_DEPTH)
                    return bad(err, SUMI_ERR_LIMIT, i, what, "nested deeper than 128 levels");
            } else if (c == ']' || c == '}') depth--;
            else if (!c || !strchr(" \t\r\n,:+-.0123456789eEtrufalsn", c))
                return bad(err, SUMI_ERR_FORMAT, i, what, "unexpected character in JSON");
            continue;
        }
        if (c == '"') in = false;
        else if (c < 0x20)
            return bad(err, SUMI_ERR_FORMAT, i, what, "control character in a string");
        else if (c == '\\') {
            if (++i >= n) break;
            if (s[i] != 'u') continue;
            int v = hex4(s + i + 1, n - i - 1);
            if (v < 0) return bad(err, SUMI_ERR_FORMAT, i, what, "bad \\u escape");
            i += 4;
            if (v < 0xD800 || v > 0xDFFF) continue;
            int w = v <= 0xDBFF && n - i > 6 && s[i + 1] == '\\' && s[i + 2] == 'u'
                        ? hex4(s + i + 3, n - i - 3)
                        : -1;
            if (w < 0xDC00 || w > 0xDFFF)
                return bad(err, SUMI_ERR_FORMAT, i, what, "lone surrogate in a string");
            i += 6;
        }
    }
    return SUMI_OK;
}

sumi_status json_parse(struct json_object **out, const char *text, size_t n, const char *what,
                       sumi_error *err) {
    *out = NULL;
    size_t valid = utf8_valid_prefix(text, n);
    if (valid < n) return bad(err, SUMI_ERR_FORMAT, valid, what, "invalid UTF-8");
    if (n > 0x7FFFFFF0) return bad(err, SUMI_ERR_LIMIT, n, what, "JSON text over 2 GiB");
    TRY(prescan(text, n, what, err));
    struct json_tokener *tok = json_tokener_new_ex(JSON_MAX_DEPTH + 2);
    if (!tok) return NO_MEMORY(err, sizeof(void *));
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    /* The terminating NUL is passed too: it ends a bare number, which json-c would wait on. */
    struct json_object *o = json_tokener_parse_ex(tok, text, (int)n);
    enum json_tokener_error e = json_tokener_get_error(tok);
    if (e == json_tokener_continue) {
        o = json_tokener_parse_ex(tok, "", 1);
        e = json_tokener_get_error(tok);
    }
    size_t end = json_tokener_get_parse_end(tok);
    sumi_status status = SUMI_OK;
    if (e != json_tokener_success) {
        char why[128];
        snprintf(why, sizeof why, "not valid JSON (%s)",
                 e == json_tokener_continue || e == json_tokener_error_parse_eof
                     ? "unexpected end"
                     : json_tokener_error_desc(e));
        status = bad(err, SUMI_ERR_FORMAT, end < n ? end : n, what, why);
        json_object_put(o);
    } else {
        *out = o;
    }
    json_tokener_free(tok);
    return status;
}

sumi_status json_parse_file(struct json_object **out, const char *path, size_t max_bytes,
                            sumi_error *err) {
    char *text;
    size_t n;
    *out = NULL;
    TRY(file_read(path, max_bytes, &text, &n, err));
    sumi_status status = json_parse(out, text, n, path, err);
    mem_free(text);
    return status;
}

struct json_object *json_get(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    if (json_is(o, json_type_object)) json_object_object_get_ex(o, key, &v);
    return v;
}

static sumi_status wrong(sumi_error *err, const char *key, const char *want,
                         struct json_object *v) {
    return fail_param(err, SUMI_ERR_FORMAT, key, "%s: expected %s, found %s", key, want,
                      json_type_to_name(json_object_get_type(v)));
}

sumi_status json_get_i64(struct json_object *o, const char *key, int64_t *out, sumi_error *err) {
    struct json_object *v = json_get(o, key);
    if (!v) return SUMI_OK;
    if (json_is(v, json_type_int)) {
        /* json-c clamps: a value at either end may be larger than what was written. */
        if (json_object_get_uint64(v) > INT64_MAX && json_object_get_int64(v) >= 0)
            return wrong(err, key, "an integer below 2^63", v);
        *out = json_object_get_int64(v);
        return SUMI_OK;
    }
    if (json_is(v, json_type_double)) {
        double d = json_object_get_double(v);
        if (d == floor(d) && fabs(d) < 9007199254740992.0) {
            *out = (int64_t)d;
            return SUMI_OK;
        }
    }
    return wrong(err, key, "an integer", v);
}

sumi_status json_get_f64(struct json_object *o, const char *key, double *out, sumi_error *err) {
    struct json_object *v = json_get(o, key);
    if (!v) return SUMI_OK;
    if (!json_is(v, json_type_int) && !json_is(v, json_type_double))
        return wrong(err, key, "a number", v);
    *out = json_object_get_double(v);
    return SUMI_OK;
}

sumi_status json_get_bool(struct json_object *o, const char *key, bool *out, sumi_error *err) {
    struct json_object *v = json_get(o, key);
    if (!v) return SUMI_OK;
    if (!json_is(v, json_type_boolean)) return wrong(err, key, "true or false", v);
    *out = json_object_get_boolean(v);
    return SUMI_OK;
}

sumi_status json_get_str(struct json_object *o, const char *key, const char **out,
                         sumi_error *err) {
    struct json_object *v = json_get(o, key);
    if (!v) return SUMI_OK;
    if (!json_is(v, json_type_string)) return wrong(err, key, "a string", v);
    *out = json_object_get_string(v);
    return SUMI_OK;
}
