/* Filters over sequences: selecting, mapping, ordering, reducing. Those that are generators in
 * jinja2 give a generator, though its items are computed at once. */
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

#define FILTER(name)                                                \
    static sumi_status name(struct eval *ev, const struct value *v, \
                            TPL_UNUSED const struct value *arg, struct value *out)

static const struct value absent = {.kind = V_ABSENT};

static sumi_status give(struct eval *ev, const struct vec *items, const struct value *like,
                        bool lazy, struct value *out) {
    const struct list *l;
    TRY(tpl_new_list(ev, items->v, items->n, tpl_origin(like), &l));
    if (lazy) return tpl_gen(ev, l, out);
    *out = v_list(l);
    return SUMI_OK;
}

/* Strings in lower case, everything else as it is. */
static sumi_status fold(struct eval *ev, const struct value *v, bool sensitive, struct value *out) {
    *out = *v;
    return sensitive || v->kind != V_STR ? SUMI_OK : tpl_case(ev, v->s, CASE_LOWER, out);
}

/* One step of a path: digits are an index. */
static sumi_status path_step(struct eval *ev, const struct str *path, size_t from, size_t n,
                             struct value *v) {
    struct value key;
    int64_t index = 0;
    size_t i = 0;
    while (i < n && i < 18 && path->p[from + i] >= '0' && path->p[from + i] <= '9')
        index = index * 10 + (path->p[from + i++] - '0');
    if (n && i == n) key = v_int(index);
    else TRY(tpl_sub(ev, path, from, n, &key));
    return tpl_item(ev, v, &key, v);
}

/* The attribute of an item: a key, an index or a dotted path; absent or None: the item itself. */
static sumi_status attribute_of(struct eval *ev, const struct value *item,
                                const struct value *attribute, const struct value *otherwise,
                                struct value *out) {
    *out = *item;
    if (attribute->kind == V_ABSENT || attribute->kind == V_NONE) return SUMI_OK;
    bool has_default = otherwise->kind != V_ABSENT && otherwise->kind != V_NONE;
    if (attribute->kind != V_STR) {
        TRY(tpl_item(ev, item, attribute, out));
        if (has_default && out->kind == V_UNDEF) *out = *otherwise;
        return SUMI_OK;
    }
    const struct str *path = attribute->s;
    for (size_t from = 0; from <= path->n;) {
        const char *dot = memchr(path->p + from, '.', path->n - from);
        size_t end = dot ? (size_t)(dot - path->p) : path->n;
        TRY(path_step(ev, path, from, end - from, out));
        if (has_default && out->kind == V_UNDEF) *out = *otherwise;
        from = end + 1;
    }
    return SUMI_OK;
}

FILTER(f_first) {
    struct iter it = {0};
    bool more;
    TRY(tpl_iter(ev, v, &it));
    TRY(tpl_next(ev, &it, out, &more));
    if (!more) *out = v_undef(NULL);
    return SUMI_OK;
}

FILTER(f_last) {
    const struct list *l;
    if (v->kind == V_GEN) return tpl_fail(ev, "last of a generator; make it a list first");
    TRY(tpl_collect(ev, v, &l));
    *out = l->n ? l->v[l->n - 1] : v_undef(NULL);
    return SUMI_OK;
}

FILTER(f_list) {
    const struct list *l;
    TRY(tpl_collect(ev, v, &l));
    *out = v_list(l);
    return SUMI_OK;
}

FILTER(f_reverse) {
    const struct list *l;
    struct vec items = {0};
    if (v->kind == V_STR) {
        const struct value part[3] = {absent, absent, v_int(-1)};
        return tpl_slice(ev, v, part, out);
    }
    TRY(tpl_collect(ev, v, &l));
    for (size_t i = l->n; i--;) TRY(tpl_push(ev, &items, l->v[i]));
    return give(ev, &items, v, v->kind != V_GEN, out);
}

FILTER(f_items) {
    struct vec items = {0};
    if (v->kind != V_UNDEF && v->kind != V_DICT)
        return tpl_fail(ev, "items: expected a mapping, found %s", tpl_type_name(v));
    for (size_t i = 0; v->kind == V_DICT && i < v->dict->n; i++) {
        struct value pair;
        TRY(tpl_charge(ev, 1));
        TRY(tpl_pair(ev, v->dict->pairs[i].key, v->dict->pairs[i].value, v->dict->trusted, &pair));
        TRY(tpl_push(ev, &items, pair));
    }
    return give(ev, &items, v, true, out);
}

FILTER(f_join) {
    static const struct str nothing = {"", 0, 0, NULL, true};
    const struct str *sep = &nothing;
    struct value mapped = *v;
    if (arg[0].kind != V_ABSENT) TRY(tpl_to_str(ev, &arg[0], &sep));
    if (arg[1].kind != V_ABSENT && arg[1].kind != V_NONE) {
        struct iter it = {0};
        struct vec items = {0};
        bool more;
        TRY(tpl_iter(ev, v, &it));
        for (struct value item;;) {
            TRY(tpl_next(ev, &it, &item, &more));
            if (!more) break;
            TRY(attribute_of(ev, &item, &arg[1], &absent, &item));
            TRY(tpl_push(ev, &items, item));
        }
        TRY(give(ev, &items, v, false, &mapped));
    }
    return tpl_join(ev, sep, &mapped, false, out);
}

/* The items and, for each, the key to compare by. A dotted attribute may list several, by comma;
 * `many` makes the key a list of them, as jinja2's sort does. */
static sumi_status keyed(struct eval *ev, const struct value *v, const struct value *attribute,
                         bool sensitive, bool many, struct vec *items, struct vec *keys) {
    const struct list *l, *attributes = NULL;
    static const struct str comma = {",", 1, 1, NULL, true};
    struct value split;
    TRY(tpl_collect(ev, v, &l));
    if (many && attribute->kind == V_STR) {
        TRY(tpl_split(ev, attribute->s, &comma, -1, false, &split));
        attributes = split.list;
    }
    size_t n = attributes ? attributes->n : 1;
    for (size_t i = 0; i < l->n; i++) {
        struct value *key;
        TPL_NEW(ev, key, n);
        for (size_t k = 0; k < n; k++) {
            TRY(attribute_of(ev, &l->v[i], attributes ? &attributes->v[k] : attribute, &absent,
                             &key[k]));
            TRY(fold(ev, &key[k], sensitive, &key[k]));
        }
        const struct list *all;
        if (many && n > 1) {
            TRY(tpl_new_list(ev, key, n, true, &all));
            TRY(tpl_push(ev, keys, v_list(all)));
        } else {
            TRY(tpl_push(ev, keys, key[0]));
        }
        TRY(tpl_push(ev, items, l->v[i]));
    }
    return SUMI_OK;
}

FILTER(f_sort) {
    struct vec items = {0}, keys = {0};
    TRY(keyed(ev, v, &arg[2], tpl_truth(&arg[1]), true, &items, &keys));
    TRY(tpl_sort(ev, items.v, keys.v, items.n, tpl_truth(&arg[0])));
    return give(ev, &items, v, false, out);
}

FILTER(f_dictsort) {
    struct vec items = {0}, keys = {0};
    const struct str *by = NULL;
    if (v->kind != V_DICT) return tpl_fail(ev, "dictsort of a %s", tpl_type_name(v));
    if (arg[1].kind != V_ABSENT) TRY(tpl_need_str(ev, &arg[1], "dictsort", &by));
    bool value = by && str_is(by, "value", 5);
    if (by && !value && !str_is(by, "key", 3))
        return tpl_fail(ev, "dictsort: by must be 'key' or 'value'");
    for (size_t i = 0; i < v->dict->n; i++) {
        const struct pair *p = &v->dict->pairs[i];
        struct value pair, key;
        TRY(tpl_pair(ev, p->key, p->value, v->dict->trusted, &pair));
        TRY(fold(ev, value ? &p->value : &p->key, tpl_truth(&arg[0]), &key));
        TRY(tpl_push(ev, &items, pair));
        TRY(tpl_push(ev, &keys, key));
    }
    TRY(tpl_sort(ev, items.v, keys.v, items.n, tpl_truth(&arg[2])));
    return give(ev, &items, v, false, out);
}

FILTER(f_unique) {
    struct vec items = {0}, keys = {0}, kept = {0}, seen = {0};
    TRY(keyed(ev, v, &arg[1], tpl_truth(&arg[0]), false, &items, &keys));
    for (size_t i = 0; i < items.n; i++) {
        bool known = false;
        if (keys.v[i].kind == V_LIST || keys.v[i].kind == V_DICT)
            return tpl_fail(ev, "unique: a %s cannot be told apart", tpl_type_name(&keys.v[i]));
        for (size_t k = 0; k < seen.n && !known; k++)
            TRY(tpl_equal(ev, &keys.v[i], &seen.v[k], &known));
        if (known) continue;
        TRY(tpl_push(ev, &seen, keys.v[i]));
        TRY(tpl_push(ev, &kept, items.v[i]));
    }
    return give(ev, &kept, v, true, out);
}

static sumi_status extreme(struct eval *ev, const struct value *v, const struct value *arg,
                           int sign, struct value *out) {
    struct vec items = {0}, keys = {0};
    size_t best = 0;
    TRY(keyed(ev, v, &arg[1], tpl_truth(&arg[0]), false, &items, &keys));
    for (size_t i = 1; i < items.n; i++) {
        int c;
        TRY(tpl_order(ev, &keys.v[i], &keys.v[best], &c));
        if (c == sign) best = i;
    }
    *out = items.n ? items.v[best] : v_undef(NULL);
    return SUMI_OK;
}
FILTER(f_min) {
    return extreme(ev, v, arg, -1, out);
}
FILTER(f_max) {
    return extreme(ev, v, arg, 1, out);
}

FILTER(f_sum) {
    struct vec items = {0}, keys = {0};
    TRY(keyed(ev, v, &arg[0], true, false, &items, &keys));
    *out = arg[1].kind == V_ABSENT ? v_int(0) : arg[1];
    if (out->kind == V_STR) return tpl_fail(ev, "sum: strings cannot be summed");
    for (size_t i = 0; i < keys.n; i++) TRY(tpl_math(ev, T_ADD, out, &keys.v[i], out));
    return SUMI_OK;
}

FILTER(f_batch) {
    const struct list *l;
    struct vec rows = {0}, row = {0};
    struct value full;
    int64_t count;
    bool pad = arg[1].kind != V_ABSENT && arg[1].kind != V_NONE;
    TRY(tpl_need_int(ev, &arg[0], "batch", &count));
    TRY(tpl_collect(ev, v, &l));
    for (size_t i = 0; i < l->n; i++) {
        if ((int64_t)row.n == count) {
            TRY(give(ev, &row, v, false, &full));
            TRY(tpl_push(ev, &rows, full));
            row = (struct vec){0};
        }
        TRY(tpl_push(ev, &row, l->v[i]));
    }
    while (row.n && pad && (int64_t)row.n < count) {
        TRY(tpl_charge(ev, 1));
        TRY(tpl_push(ev, &row, arg[1]));
    }
    if (row.n) {
        TRY(give(ev, &row, v, false, &full));
        TRY(tpl_push(ev, &rows, full));
    }
    return give(ev, &rows, v, true, out);
}

/* map('filter', ...) or map(attribute=..., default=...). */
static sumi_status f_map(struct eval *ev, const struct value *v, const struct args *args,
                         struct value *out) {
    struct vec items = {0};
    struct value named[2] = {absent, absent};
    const struct filter *f = NULL;
    struct args rest = *args;
    struct iter it = {0};
    if (!tpl_truth(v)) return give(ev, &items, v, true, out);
    if (args->n_pos) {
        const struct str *name;
        TRY(tpl_need_str(ev, &args->pos[0], "map", &name));
        f = filter_find(name);
        if (!f) return tpl_fail(ev, "map: no filter '%.*s'", (int)name->n, name->p);
        rest.pos++;
        rest.n_pos--;
    } else {
        TRY(tpl_bind(ev, "map", "attribute default", 1, args, named));
    }
    TRY(tpl_iter(ev, v, &it));
    for (;;) {
        struct value item, mapped;
        bool more;
        TRY(tpl_next(ev, &it, &item, &more));
        if (!more) break;
        if (f) TRY(tpl_filter(ev, f, &item, &rest, &mapped));
        else TRY(attribute_of(ev, &item, &named[0], &named[1], &mapped));
        TRY(tpl_push(ev, &items, mapped));
    }
    return give(ev, &items, v, true, out);
}

/* Keeps the items (or those whose attribute) that pass a test, or are true without one. */
static sumi_status choose(struct eval *ev, const struct value *v, const struct args *args,
                          bool by_attribute, bool want, struct value *out) {
    struct vec kept = {0};
    struct args rest = *args;
    const struct test *test = NULL;
    const struct value *attribute = &absent;
    struct iter it = {0};
    if (!tpl_truth(v)) return give(ev, &kept, v, true, out);
    if (by_attribute) {
        if (!rest.n_pos) return tpl_fail(ev, "the name of an attribute is missing");
        attribute = rest.pos++;
        rest.n_pos--;
    }
    if (rest.n_pos) {
        const struct str *name;
        TRY(tpl_need_str(ev, rest.pos, "the name of a test", &name));
        test = test_find(name);
        if (!test) return tpl_fail(ev, "no test is named '%.*s'", (int)name->n, name->p);
        rest.pos++;
        rest.n_pos--;
    }
    TRY(tpl_iter(ev, v, &it));
    for (;;) {
        struct value item, field;
        bool more, pass;
        TRY(tpl_next(ev, &it, &item, &more));
        if (!more) break;
        TRY(attribute_of(ev, &item, attribute, &absent, &field));
        if (test) TRY(tpl_test(ev, test, &field, &rest, &pass));
        else pass = tpl_truth(&field);
        if (pass == want) TRY(tpl_push(ev, &kept, item));
    }
    return give(ev, &kept, v, true, out);
}

static sumi_status f_select(struct eval *ev, const struct value *v, const struct args *args,
                            struct value *out) {
    return choose(ev, v, args, false, true, out);
}
static sumi_status f_reject(struct eval *ev, const struct value *v, const struct args *args,
                            struct value *out) {
    return choose(ev, v, args, false, false, out);
}
static sumi_status f_selectattr(struct eval *ev, const struct value *v, const struct args *args,
                                struct value *out) {
    return choose(ev, v, args, true, true, out);
}
static sumi_status f_rejectattr(struct eval *ev, const struct value *v, const struct args *args,
                                struct value *out) {
    return choose(ev, v, args, true, false, out);
}

const struct filter seq_filters[] = {
    {"first", "", 0, f_first, NULL},
    {"last", "", 0, f_last, NULL},
    {"list", "", 0, f_list, NULL},
    {"reverse", "", 0, f_reverse, NULL},
    {"items", "", 0, f_items, NULL},
    {"join", "d attribute", 0, f_join, NULL},
    {"map", NULL, 0, NULL, f_map},
    {"select", NULL, 0, NULL, f_select},
    {"reject", NULL, 0, NULL, f_reject},
    {"selectattr", NULL, 0, NULL, f_selectattr},
    {"rejectattr", NULL, 0, NULL, f_rejectattr},
    {"sort", "reverse case_sensitive attribute", 0, f_sort, NULL},
    {"dictsort", "case_sensitive by reverse", 0, f_dictsort, NULL},
    {"unique", "case_sensitive attribute", 0, f_unique, NULL},
    {"min", "case_sensitive attribute", 0, f_min, NULL},
    {"max", "case_sensitive attribute", 0, f_max, NULL},
    {"sum", "attribute start", 0, f_sum, NULL},
    {"batch", "linecount fill_with", 1, f_batch, NULL},
    {0},
};
