/* JSON bodies and a table of fields in, a list of faults out. It knows types, not meanings. */
#include "serve/schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "serve/error.h"

/* Echoed input is cut, and so is the list: a small body must not make a large answer. */
enum { MAX_LISTED = 10, MAX_ECHO = 40, MAX_LINES = 960 };

static const char *type_name(struct json_object *v) {
    switch (json_object_get_type(v)) {
    case json_type_null: return "null";
    case json_type_boolean: return "a boolean";
    case json_type_double: return "a number with a fraction";
    case json_type_int: return "an integer";
    case json_type_object: return "an object";
    case json_type_array: return "an array";
    default: return "a string";
    }
}

void schema_fault(struct schema_report *r, const char *path, const char *fmt, ...) {
    if (!r->n) snprintf(r->first, sizeof r->first, "body.%s", path);
    if (r->n++ >= MAX_LISTED) return;
    struct buf line = {.max = 1000};
    va_list ap;
    buf_printf(&line, "\nbody.%.100s: ", path);
    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    if (r->lines.len + line.len <= MAX_LINES) buf_put(&r->lines, line.data, line.len);
    buf_reset(&line);
}

static void wrong_type(struct schema_report *r, const char *path, const char *want,
                       struct json_object *v) {
    struct buf echo = {0};
    error_put_value(&echo, v, MAX_ECHO);
    schema_fault(r, path, "expected %s, found %s (%.100s)", want, type_name(v), buf_text(&echo));
    buf_reset(&echo);
}

sumi_status schema_int(struct json_object *value, int64_t *out) {
    if (json_is(value, json_type_int)) {
        /* json-c clamps what does not fit. */
        if (json_object_get_uint64(value) > INT64_MAX) return SUMI_ERR_FORMAT;
        *out = json_object_get_int64(value);
        return SUMI_OK;
    }
    double d = json_is(value, json_type_double) ? json_object_get_double(value) : NAN;
    if (!(fabs(d) < 9007199254740992.0) || d != floor(d)) return SUMI_ERR_FORMAT;
    *out = (int64_t)d;
    return SUMI_OK;
}

static bool is_int(struct json_object *v) {
    int64_t ignored;
    return schema_int(v, &ignored) == SUMI_OK;
}

static bool is_number(struct json_object *v) {
    return json_is(v, json_type_int) || json_is(v, json_type_double);
}

static bool is_string(struct json_object *v) {
    return json_is(v, json_type_string);
}

static bool is_object(struct json_object *v) {
    return json_is(v, json_type_object);
}

static void check_items(struct schema_report *r, const char *name, struct json_object *v,
                        bool (*fits)(struct json_object *), const char *list, const char *want) {
    if (!json_is(v, json_type_array)) {
        wrong_type(r, name, list, v);
        return;
    }
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        struct json_object *item = json_object_array_get_idx(v, i);
        if (fits(item)) continue;
        char path[128];
        snprintf(path, sizeof path, "%s.%zu", name, i);
        wrong_type(r, path, want, item);
        if (r->n > MAX_LISTED) return;
    }
}

static void check_numbers(struct schema_report *r, const char *name, struct json_object *v) {
    if (!json_is(v, json_type_object)) {
        wrong_type(r, name, "an object", v);
        return;
    }
    json_object_object_foreach(v, key, item) {
        if (is_number(item)) continue;
        char path[128];
        snprintf(path, sizeof path, "%s.%s", name, key);
        wrong_type(r, path, "a number", item);
        if (r->n > MAX_LISTED) return;
    }
}

static bool in_words(const char *words, const char *s, size_t n) {
    while (*words) {
        size_t len = strcspn(words, ",");
        if (len == n && memcmp(words, s, n) == 0) return true;
        words += len;
        words += strspn(words, ", ");
    }
    return false;
}

static void check_word(struct schema_report *r, const struct field *f, struct json_object *v) {
    if (!is_string(v)) wrong_type(r, f->name, "a string", v);
    else if (!in_words(f->words, json_object_get_string(v), (size_t)json_object_get_string_len(v)))
        schema_fault(r, f->name, "expected one of %s, found \"%.40s\"", f->words,
                     json_object_get_string(v));
}

static void check_field(struct schema_report *r, const struct field *f, struct json_object *v) {
    bool text = is_string(v);
    switch (f->type) {
    case FIELD_BOOL:
        if (!json_is(v, json_type_boolean)) wrong_type(r, f->name, "true or false", v);
        break;
    case FIELD_INT:
        if (!is_int(v)) wrong_type(r, f->name, "an integer of 64 bits", v);
        break;
    case FIELD_NUMBER:
        if (!is_number(v)) wrong_type(r, f->name, "a number", v);
        break;
    case FIELD_STRING:
        if (!text) wrong_type(r, f->name, "a string", v);
        break;
    case FIELD_OBJECT:
        if (!is_object(v)) wrong_type(r, f->name, "an object", v);
        break;
    case FIELD_ARRAY:
        if (!json_is(v, json_type_array)) wrong_type(r, f->name, "an array", v);
        break;
    case FIELD_INTS:
        check_items(r, f->name, v, is_int, "an array of integers", "an integer");
        break;
    case FIELD_STRINGS:
        check_items(r, f->name, v, is_string, "an array of strings", "a string");
        break;
    case FIELD_OBJECTS:
        check_items(r, f->name, v, is_object, "an array of objects", "an object");
        break;
    case FIELD_STRING_OR_STRINGS:
        if (!text)
            check_items(r, f->name, v, is_string, "a string or an array of strings", "a string");
        break;
    case FIELD_STRING_OR_OBJECT:
        if (!text && !is_object(v)) wrong_type(r, f->name, "a string or an object", v);
        break;
    case FIELD_NUMBERS_BY_KEY: check_numbers(r, f->name, v); break;
    case FIELD_WORD: check_word(r, f, v); break;
    }
}

void schema_check(struct schema_report *r, struct json_object *body, const struct field *fields,
                  size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct json_object *v = json_get(body, fields[i].name);
        if (v) check_field(r, &fields[i], v);
        else if (fields[i].required) schema_fault(r, fields[i].name, "this field is required");
    }
}

sumi_status schema_result(struct schema_report *r, sumi_error *err) {
    sumi_status status = SUMI_OK;
    if (r->n)
        status = fail_param(err, SUMI_ERR_FORMAT, r->first, "%d validation error%s:%s", r->n,
                            r->n == 1 ? "" : "s", buf_text(&r->lines));
    buf_reset(&r->lines);
    return status;
}
