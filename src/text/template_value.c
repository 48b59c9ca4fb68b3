/* Values: constructors, and the way from the input's JSON to values. Strings of the input are
 * borrowed, containers are copied into the arena once. */
#include "text/template_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_eval.h"
#include "text/template_text.h"

struct str *tpl_str_make(struct arena *a, const char *p, size_t n, const uint8_t *mask,
                         bool trusted) {
    struct str *s = arena_alloc(a, 1, sizeof *s);
    if (s)
        *s = (struct str){
            .p = p, .n = n, .chars = tpl_chars(p, n), .mask = mask, .trusted = trusted};
    return s;
}

size_t str_offset(const struct str *s, size_t chars) {
    if (chars >= s->chars) return s->n;
    if (s->chars == s->n) return chars;
    size_t i = 0;
    while (chars--) i += tpl_char_len(s->p[i]);
    return i;
}

sumi_status tpl_str(struct eval *ev, const char *p, size_t n, const uint8_t *mask, bool trusted,
                    struct value *out) {
    TRY(tpl_charge(ev, n / 256));
    const struct str *s = tpl_str_make(&ev->arena, p, n, mask, trusted);
    if (!s) return tpl_no_memory(ev);
    *out = v_str(s);
    return SUMI_OK;
}

const char *tpl_type_name(const struct value *v) {
    static const char *const names[] = {
#define X(name, text) text,
        KIND_LIST(X)
#undef X
    };
    return names[v->kind];
}

bool tpl_truth(const struct value *v) {
    switch (v->kind) {
    case V_ABSENT:
    case V_UNDEF:
    case V_NONE: return false;
    case V_BOOL: return v->sub;
    case V_INT: return v->i != 0;
    case V_FLOAT: return v->d != 0;
    case V_STR: return v->s->n != 0;
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return v->list->n != 0;
    case V_DICT: return v->dict->n != 0;
    case V_RANGE: return v->range->n != 0;
    default: return true;
    }
}

bool tpl_origin(const struct value *v) {
    switch (v->kind) {
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return v->list->trusted;
    case V_DICT: return v->dict->trusted;
    case V_GEN: return v->gen->list->trusted;
    case V_STR: return !v->s->mask && v->s->trusted;
    default: return true;
    }
}

sumi_status tpl_new_list(struct eval *ev, const struct value *v, size_t n, bool trusted,
                         const struct list **out) {
    struct list *l;
    *out = NULL;
    TPL_NEW(ev, l, 1);
    *l = (struct list){.v = v, .n = n, .trusted = trusted};
    *out = l;
    return SUMI_OK;
}

sumi_status tpl_push(struct eval *ev, struct vec *vec, struct value v) {
    if (vec->n == vec->cap) {
        struct value *more;
        size_t cap = vec->cap ? 2 * vec->cap : 8;
        TPL_NEW(ev, more, cap);
        if (vec->n) memcpy(more, vec->v, vec->n * sizeof *more);
        vec->v = more;
        vec->cap = cap;
    }
    vec->v[vec->n++] = v;
    return SUMI_OK;
}

sumi_status tpl_pair(struct eval *ev, struct value a, struct value b, bool trusted,
                     struct value *out) {
    struct value *two;
    const struct list *l = NULL;
    TPL_NEW(ev, two, 2);
    two[0] = a;
    two[1] = b;
    TRY(tpl_new_list(ev, two, 2, trusted, &l));
    *out = v_tuple(l);
    return SUMI_OK;
}

sumi_status tpl_gen(struct eval *ev, const struct list *l, struct value *out) {
    struct gen *g;
    TPL_NEW(ev, g, 1);
    *g = (struct gen){.list = l};
    *out = (struct value){.kind = V_GEN, .gen = g};
    return SUMI_OK;
}

/* Equality of dictionary keys: scalars only, numbers by value as in Python (1 == True == 1.0). */
static bool same_key(const struct value *a, const struct value *b) {
    if (a->kind == V_STR) return b->kind == V_STR && str_is(a->s, b->s->p, b->s->n);
    if (v_is_int(a) && v_is_int(b)) return v_int_of(a) == v_int_of(b);
    if (v_is_number(a) && v_is_number(b)) return v_double_of(a) == v_double_of(b);
    return a->kind == V_NONE && b->kind == V_NONE;
}

static int order_keys(const struct str *a, const char *p, size_t n) {
    int c = memcmp(a->p, p, a->n < n ? a->n : n);
    return c ? c : (a->n > n) - (a->n < n);
}

/* The pair of a key: its number, or d->n. */
static size_t find_str(const struct dict *d, const char *key, size_t n) {
    size_t i = 0, end = d->n;
    if (!d->index) {
        while (i < d->n && !(d->pairs[i].key.kind == V_STR && str_is(d->pairs[i].key.s, key, n)))
            i++;
        return i;
    }
    while (i < end) {
        size_t mid = (i + end) / 2;
        if (order_keys(d->pairs[d->index[mid]].key.s, key, n) < 0) i = mid + 1;
        else end = mid;
    }
    return i < d->n && str_is(d->pairs[d->index[i]].key.s, key, n) ? d->index[i] : d->n;
}

const struct value *tpl_dict_str(const struct dict *d, const char *key, size_t n) {
    size_t i = find_str(d, key, n);
    return i < d->n ? &d->pairs[i].value : NULL;
}

const struct value *tpl_dict_find(const struct dict *d, const struct value *key) {
    size_t i = 0;
    if (key->kind == V_STR) return tpl_dict_str(d, key->s->p, key->s->n);
    if (d->index) return NULL; /* its keys are strings */
    while (i < d->n && !same_key(&d->pairs[i].key, key)) i++;
    return i < d->n ? &d->pairs[i].value : NULL;
}

/* A repeated key keeps its place and the last value. */
static sumi_status drop_repeated(struct eval *ev, struct dict *d, struct pair *pairs, size_t n) {
    d->pairs = pairs;
    for (size_t i = 0; i < n; i++) {
        size_t old = 0;
        TRY(tpl_charge(ev, d->n / 8));
        while (old < d->n && !same_key(&pairs[old].key, &pairs[i].key)) old++;
        if (old < d->n) pairs[old].value = pairs[i].value;
        else pairs[d->n++] = pairs[i];
    }
    return SUMI_OK;
}

#define SMALL_DICT 8

/* Larger dicts of strings get their pair numbers in the order of the keys. *unique is false, and
 * nothing done, if a key is repeated or no string. */
static sumi_status sort_keys(struct eval *ev, struct dict *d, struct pair *pairs, size_t n,
                             bool *unique) {
    struct value *keys, *order;
    uint32_t *index;
    *unique = false;
    TPL_NEW(ev, keys, n);
    TPL_NEW(ev, order, n);
    TPL_NEW(ev, index, n);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].key.kind != V_STR) return SUMI_OK;
        keys[i] = pairs[i].key;
        order[i] = v_int((int64_t)i);
    }
    TRY(tpl_sort(ev, order, keys, n, false));
    for (size_t i = 0; i < n; i++) {
        index[i] = (uint32_t)order[i].i;
        if (i && same_key(&keys[index[i - 1]], &keys[index[i]])) return SUMI_OK;
    }
    *unique = true;
    d->pairs = pairs;
    d->n = n;
    d->index = index;
    return SUMI_OK;
}

sumi_status tpl_new_dict(struct eval *ev, struct pair *pairs, size_t n, bool trusted,
                         struct value *out) {
    struct dict *d;
    if (n > UINT32_MAX / 4) return tpl_limit(ev, "a dict of %zu members", n);
    for (size_t i = 0; i < n; i++) {
        enum value_kind k = pairs[i].key.kind;
        if (k != V_STR && k != V_NONE && !v_is_number(&pairs[i].key))
            return tpl_fail(ev, "a %s cannot be a dict key here", tpl_type_name(&pairs[i].key));
    }
    TRY(tpl_charge(ev, n));
    TPL_NEW(ev, d, 1);
    *d = (struct dict){.trusted = trusted};
    bool unique = false;
    if (n > SMALL_DICT) TRY(sort_keys(ev, d, pairs, n, &unique));
    if (!unique) TRY(drop_repeated(ev, d, pairs, n));
    *out = (struct value){.kind = V_DICT, .dict = d};
    return SUMI_OK;
}

/* The address is the mark that chat_template_trust leaves on a string. */
static char trust_mark;

void chat_template_trust(struct json_object *string) {
    json_object_set_userdata(string, &trust_mark, NULL);
}

static sumi_status string_from_json(struct eval *ev, const char *p, size_t n, bool trusted,
                                    struct value *out) {
    if (!utf8_valid(p, n)) return tpl_fail(ev, "an input variable holds invalid UTF-8");
    return tpl_str(ev, p, n, NULL, trusted, out);
}

static sumi_status integer_from_json(struct eval *ev, struct json_object *o, struct value *out) {
    uint64_t u = json_object_get_uint64(o);
    *out = v_int(json_object_get_int64(o));
    if (u <= INT64_MAX || out->i < 0) return SUMI_OK;
    char *digits;
    TPL_NEW(ev, digits, 24);
    int n = snprintf(digits, 24, "%" PRIu64, u);
    TRY(tpl_str(ev, digits, (size_t)n, NULL, true, out));
    out->kind = V_BIG;
    return SUMI_OK;
}

static sumi_status array_from_json(struct eval *ev, struct json_object *o, int depth,
                                   struct value *out) {
    size_t n = json_object_array_length(o);
    struct value *v;
    const struct list *l = NULL;
    TPL_NEW(ev, v, n);
    for (size_t i = 0; i < n; i++)
        TRY(tpl_from_json(ev, json_object_array_get_idx(o, i), depth + 1, &v[i]));
    TRY(tpl_new_list(ev, v, n, false, &l));
    *out = v_list(l);
    return SUMI_OK;
}

static sumi_status object_from_json(struct eval *ev, struct json_object *o, int depth,
                                    struct value *out) {
    struct pair *pairs;
    size_t n = 0;
    TPL_NEW(ev, pairs, json_object_object_length(o));
    json_object_object_foreach(o, key, member) {
        TRY(string_from_json(ev, key, strlen(key), false, &pairs[n].key));
        TRY(tpl_from_json(ev, member, depth + 1, &pairs[n].value));
        n++;
    }
    return tpl_new_dict(ev, pairs, n, false, out);
}

sumi_status tpl_from_json(struct eval *ev, struct json_object *o, int depth, struct value *out) {
    TRY(tpl_charge(ev, 1));
    if (depth > ev->limits.max_depth)
        return tpl_limit(ev, "an input variable nested over %d", ev->limits.max_depth);
    switch (json_object_get_type(o)) {
    case json_type_null: *out = v_none(); return SUMI_OK;
    case json_type_boolean: *out = v_bool(json_object_get_boolean(o)); return SUMI_OK;
    case json_type_int: return integer_from_json(ev, o, out);
    case json_type_double: *out = v_float(json_object_get_double(o)); return SUMI_OK;
    case json_type_string:
        return string_from_json(ev, json_object_get_string(o),
                                (size_t)json_object_get_string_len(o),
                                json_object_get_userdata(o) == &trust_mark, out);
    case json_type_array: return array_from_json(ev, o, depth, out);
    case json_type_object: return object_from_json(ev, o, depth, out);
    }
    return tpl_fail(ev, "an input variable of an unknown type");
}
