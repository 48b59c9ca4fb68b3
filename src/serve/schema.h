/* Which JSON types the fields of a request body may have. All faults of a body are reported in one
 * message: schema errors come before any rule is looked at. */
#ifndef SUMI_SERVE_SCHEMA_H
#define SUMI_SERVE_SCHEMA_H

#include <json-c/json.h>

#include "base/buf.h"
#include "base/status.h"

enum field_type {
    FIELD_BOOL,
    FIELD_INT, /* 64 bits; 5.0 counts as 5 */
    FIELD_NUMBER,
    FIELD_STRING,
    FIELD_OBJECT,
    FIELD_ARRAY,
    FIELD_INTS,    /* array of FIELD_INT */
    FIELD_STRINGS, /* array of strings */
    FIELD_OBJECTS, /* array of objects */
    FIELD_STRING_OR_STRINGS,
    FIELD_STRING_OR_OBJECT,
    FIELD_NUMBERS_BY_KEY, /* object of numbers */
    FIELD_WORD            /* string out of `words` */
};

struct field {
    const char *name;
    enum field_type type;
    bool required;
    const char *words; /* FIELD_WORD: "a, b, c" */
};

struct schema_report {
    struct buf lines;
    int n;
    char first[64]; /* "body.<field>" of the first fault */
};

/* Adds the faults of `body` to the report. Null counts as absence; unknown fields are ignored. */
void schema_check(struct schema_report *r, struct json_object *body, const struct field *fields,
                  size_t n);
/* One more fault, found by the caller. `path` is relative to the body. */
void schema_fault(struct schema_report *r, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* SUMI_OK, or SUMI_ERR_FORMAT with all faults; frees the report. */
sumi_status schema_result(struct schema_report *r, sumi_error *err);

/* Integer value of a checked FIELD_INTS item. */
sumi_status schema_int(struct json_object *value, int64_t *out);

#endif
