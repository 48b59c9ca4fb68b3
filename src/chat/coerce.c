/* Text of an argument and the tool's schema flow in, a JSON value flows out. It knows neither
 * markers nor streams. */
#include "chat/coerce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "chat/collect.h"

enum kind {
    KIND_NULL = 1,
    KIND_INTEGER = 2,
    KIND_NUMBER = 4,
    KIND_BOOLEAN = 8,
    KIND_OBJECT = 16,
    KIND_ARRAY = 32,
    KIND_STRING = 64,
    ANY_KIND = 127
};

/* A chain of references, the schemas looked at for one value (references may make a small text a
 * large tree), and values written as strings inside values. */
enum { MAX_REFERENCES = 16, MAX_SCHEMAS = 256, MAX_NESTING = JSON_MAX_DEPTH };

static struct json_object *function_of(struct json_object *tool) {
    struct json_object *f = json_get(tool, "function");
    return f ? f : tool;
}

static size_t n_tool(struct json_object *tools) {
    return json_is(tools, json_type_array) ? json_object_array_length(tools) : 0;
}

/* Length of the common beginning of s[0..n) and the tool's name; *len is the name's length. */
static size_t common(struct json_object *function, const char *s, size_t n, size_t *len) {
    struct json_object *v = json_get(function, "name");
    *len = 0;
    if (!json_is(v, json_type_string)) return 0;
    const char *name = json_object_get_string(v);
    *len = (size_t)json_object_get_string_len(v);
    size_t k = 0;
    while (k < n && k < *len && s[k] == name[k]) k++;
    return k;
}

struct json_object *tool_find(struct json_object *tools, const char *name, size_t n) {
    for (size_t i = 0; n && i < n_tool(tools); i++) {
        struct json_object *f = function_of(json_object_array_get_idx(tools, i));
        size_t len;
        if (common(f, name, n, &len) == n && len == n) return f;
    }
    return NULL;
}

bool tool_name_begins(struct json_object *tools, const char *s, size_t n) {
    for (size_t i = 0; i < n_tool(tools); i++) {
        size_t len;
        if (common(function_of(json_object_array_get_idx(tools, i)), s, n, &len) == n) return true;
    }
    return false;
}

/* The root that "#/..." references start from. Responses-style tools say input_schema. */
static struct json_object *parameters_of(struct json_object *function) {
    struct json_object *p = json_get(function, "parameters");
    return p ? p : json_get(function, "input_schema");
}

/* Follows {"$ref": "#/a/b"} within the tool's schema. A reference that leads nowhere, or in a
 * circle, gives NULL: nothing is known then. */
static struct json_object *resolve(struct json_object *function, struct json_object *schema) {
    for (int hop = 0; hop < MAX_REFERENCES; hop++) {
        struct json_object *ref = json_get(schema, "$ref");
        if (!json_is(ref, json_type_string)) return schema;
        const char *path = json_object_get_string(ref);
        if (path[0] != '#' || json_pointer_get(parameters_of(function), path + 1, &schema) != 0)
            return NULL;
    }
    return NULL;
}

struct json_object *tool_parameter(struct json_object *function, const char *key) {
    struct json_object *list = json_get(resolve(function, parameters_of(function)), "properties");
    return resolve(function, json_get(list, key));
}

static unsigned kind_of_name(const char *name) {
    static const struct {
        const char *name;
        unsigned kind;
    } names[] = {{"null", KIND_NULL},    {"none", KIND_NULL},     {"integer", KIND_INTEGER},
                 {"int", KIND_INTEGER},  {"long", KIND_INTEGER},  {"number", KIND_NUMBER},
                 {"float", KIND_NUMBER}, {"double", KIND_NUMBER}, {"boolean", KIND_BOOLEAN},
                 {"bool", KIND_BOOLEAN}, {"object", KIND_OBJECT}, {"dict", KIND_OBJECT},
                 {"map", KIND_OBJECT},   {"array", KIND_ARRAY},   {"list", KIND_ARRAY},
                 {"tuple", KIND_ARRAY},  {"string", KIND_STRING}, {"str", KIND_STRING},
                 {"text", KIND_STRING}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcasecmp(name, names[i].name)) return names[i].kind;
    return 0;
}

static unsigned kind_of_value(struct json_object *v) {
    switch (json_object_get_type(v)) {
    case json_type_null: return KIND_NULL;
    case json_type_boolean: return KIND_BOOLEAN;
    case json_type_int: return KIND_INTEGER;
    case json_type_double: return KIND_NUMBER;
    case json_type_object: return KIND_OBJECT;
    case json_type_array: return KIND_ARRAY;
    case json_type_string: return KIND_STRING;
    }
    return 0;
}

static unsigned kinds_in(struct json_object *function, struct json_object *schema, int *left);

/* The union over a list: names of types, enum members, or alternative schemas. */
static unsigned kinds_of_list(struct json_object *function, struct json_object *schema,
                              const char *key, int *left) {
    struct json_object *list = json_get(schema, key);
    unsigned kinds = 0;
    if (!json_is(list, json_type_array)) return 0;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *v = json_object_array_get_idx(list, i);
        if (!strcmp(key, "enum")) kinds |= kind_of_value(v);
        else if (!strcmp(key, "type"))
            kinds |= json_is(v, json_type_string) ? kind_of_name(json_object_get_string(v)) : 0;
        else kinds |= kinds_in(function, v, left);
    }
    return kinds;
}

static unsigned kinds_in(struct json_object *function, struct json_object *schema, int *left) {
    schema = resolve(function, schema);
    if (--*left < 0 || !json_is(schema, json_type_object)) return 0;
    struct json_object *type = json_get(schema, "type"), *constant;
    unsigned kinds = 0;
    if (json_is(type, json_type_string)) kinds |= kind_of_name(json_object_get_string(type));
    if (json_object_object_get_ex(schema, "const", &constant)) kinds |= kind_of_value(constant);
    static const char *const lists[] = {"type", "enum", "anyOf", "oneOf", "allOf"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        kinds |= kinds_of_list(function, schema, lists[i], left);
    return kinds;
}

static unsigned kinds_of(struct json_object *function, struct json_object *schema) {
    int left = MAX_SCHEMAS;
    unsigned kinds = kinds_in(function, schema, &left);
    return kinds ? kinds : KIND_STRING;
}

bool coerce_is_string(struct json_object *function, struct json_object *schema) {
    return kinds_of(function, schema) == KIND_STRING;
}

static bool is_word(const char *s, size_t n, const char *word) {
    return n == strlen(word) && !strncasecmp(s, word, n);
}

/* An integer in Python's spelling, of any length: sign and leading zeros are normalised. */
static bool put_integer(struct buf *out, const char *s, size_t n) {
    chat_strip(&s, &n);
    bool minus = n && *s == '-';
    if (n && (*s == '-' || *s == '+')) {
        s++;
        n--;
    }
    if (!n || strspn(s, "0123456789") < n) return false;
    while (n > 1 && *s == '0') {
        s++;
        n--;
    }
    if (minus && *s != '0') buf_putc(out, '-');
    buf_put(out, s, n);
    return true;
}

static bool put_number(struct buf *out, const char *s, size_t n) {
    if (put_integer(out, s, n)) return true;
    chat_strip(&s, &n);
    if (!n || n > 1000 || strspn(s, "+-.0123456789eE") < n) return false;
    char *end;
    double x = strtod(s, &end);
    if (end != s + n || !isfinite(x)) return false;
    if (x == trunc(x)) buf_printf(out, "%.0f", x == 0 ? 0.0 : x);
    else json_put_double(out, x);
    return true;
}

static bool put_boolean(struct buf *out, const char *s, size_t n) {
    bool yes = is_word(s, n, "true") || is_word(s, n, "1");
    if (!yes && !is_word(s, n, "false") && !is_word(s, n, "0")) return false;
    buf_puts(out, yes ? "true" : "false");
    return true;
}

enum fidelity { FAITHFUL, CLAMPED, INFINITE };

/* Whether a parsed value still says what was written: json-c turns integers beyond 64 bits into the
 * nearest it has, and overlong numbers into infinities. */
static enum fidelity fidelity_of(struct json_object *v) {
    enum fidelity worst = FAITHFUL;
    if (json_is(v, json_type_double))
        return isfinite(json_object_get_double(v)) ? FAITHFUL : INFINITE;
    if (json_is(v, json_type_int)) {
        int64_t i = json_object_get_int64(v);
        return i == INT64_MIN || i == INT64_MAX ? CLAMPED : FAITHFUL;
    }
    if (json_is(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            enum fidelity f = fidelity_of(json_object_array_get_idx(v, i));
            if (f > worst) worst = f;
        }
    } else if (json_is(v, json_type_object)) {
        json_object_object_foreach(v, key, member) {
            (void)key;
            enum fidelity f = fidelity_of(member);
            if (f > worst) worst = f;
        }
    }
    return worst;
}

static void put_as(struct buf *out, struct json_object *function, struct json_object *schema,
                   const char *text, size_t n, int depth);

/* A parsed value; strings inside it are typed where their schema allows no string. */
static void put_typed(struct buf *out, struct json_object *function, struct json_object *schema,
                      struct json_object *v, int depth) {
    schema = resolve(function, schema);
    bool first = true;
    switch (json_object_get_type(v)) {
    case json_type_object: {
        struct json_object *list = json_get(schema, "properties");
        buf_putc(out, '{');
        json_object_object_foreach(v, key, member) {
            if (!first) buf_puts(out, ", ");
            first = false;
            json_put_text(out, key);
            buf_puts(out, ": ");
            put_typed(out, function, json_get(list, key), member, depth + 1);
        }
        buf_putc(out, '}');
        return;
    }
    case json_type_array:
        buf_putc(out, '[');
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            if (i) buf_puts(out, ", ");
            put_typed(out, function, json_get(schema, "items"), json_object_array_get_idx(v, i),
                      depth + 1);
        }
        buf_putc(out, ']');
        return;
    case json_type_string: {
        const char *s = json_object_get_string(v);
        size_t n = (size_t)json_object_get_string_len(v);
        if (depth && !(kinds_of(function, schema) & KIND_STRING))
            put_as(out, function, schema, s, n, depth);
        else json_put_string(out, s, n);
        return;
    }
    default: json_put_value(out, v, true);
    }
}

/* Writes the text as a JSON value if it is one of an allowed kind. */
static bool put_json(struct buf *out, struct json_object *function, struct json_object *schema,
                     unsigned kinds, const char *s, size_t n, int depth) {
    struct json_object *v;
    sumi_status status = json_parse(&v, s, n, "argument", NULL);
    if (status == SUMI_ERR_MEMORY) out->failed = true;
    if (status != SUMI_OK) return false;
    enum fidelity f = fidelity_of(v);
    bool fits = (kinds & kind_of_value(v)) && f != INFINITE;
    if (fits && f == CLAMPED) {
        chat_strip(&s, &n);
        buf_put(out, s, n);
    } else if (fits) {
        put_typed(out, function, schema, v, depth);
    }
    json_object_put(v);
    return fits;
}

static void put_as(struct buf *out, struct json_object *function, struct json_object *schema,
                   const char *text, size_t n, int depth) {
    unsigned kinds = kinds_of(function, schema);
    if (depth > MAX_NESTING) kinds = KIND_STRING;
    if (kinds & KIND_NULL && is_word(text, n, "null")) {
        buf_puts(out, "null");
        return;
    }
    if (kinds & KIND_INTEGER && put_integer(out, text, n)) return;
    if (kinds & KIND_NUMBER && put_number(out, text, n)) return;
    if (kinds & KIND_BOOLEAN && put_boolean(out, text, n)) return;
    unsigned trees = kinds & (KIND_OBJECT | KIND_ARRAY);
    if (trees && put_json(out, function, schema, trees, text, n, depth)) return;
    if (!(kinds & KIND_STRING) && put_json(out, function, schema, ANY_KIND, text, n, depth)) return;
    json_put_string(out, text, n);
}

void coerce_put(struct buf *out, struct json_object *function, struct json_object *schema,
                const char *text, size_t n) {
    put_as(out, function, schema, text, n, 0);
}
