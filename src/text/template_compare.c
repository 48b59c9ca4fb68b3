/* Equality, order, membership and sorting, as Python has them. Depth and work are bounded. */
#include <string.h>

#include "text/template_eval.h"

static sumi_status equal(struct eval *ev, const struct value *a, const struct value *b, int depth,
                         bool *out);

static sumi_status equal_lists(struct eval *ev, const struct list *a, const struct list *b,
                               int depth, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) TRY(equal(ev, &a->v[i], &b->v[i], depth + 1, out));
    return SUMI_OK;
}

static sumi_status equal_dicts(struct eval *ev, const struct dict *a, const struct dict *b,
                               int depth, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) {
        TRY(tpl_charge(ev, tpl_dict_cost(b)));
        const struct value *other = tpl_dict_find(b, &a->pairs[i].key);
        if (!other) *out = false;
        else TRY(equal(ev, &a->pairs[i].value, other, depth + 1, out));
    }
    return SUMI_OK;
}

/* Objects that are equal only to themselves. */
static bool same_object(const struct value *a, const struct value *b) {
    if (a->kind == V_METHOD)
        return a->method->info == b->method->info && a->method->self.kind == b->method->self.kind &&
               a->method->self.i == b->method->self.i;
    return a->kind == V_FUNCTION ? a->sub == b->sub : a->i == b->i;
}

static bool equal_ranges(const struct range *a, const struct range *b) {
    return a->n == b->n && (a->n < 1 || a->start == b->start) && (a->n < 2 || a->step == b->step);
}

static sumi_status equal(struct eval *ev, const struct value *a, const struct value *b, int depth,
                         bool *out) {
    TRY(tpl_charge(ev, 1));
    if (depth > ev->limits.max_depth)
        return tpl_limit(ev, "values nested over %d", ev->limits.max_depth);
    *out = false;
    if (v_is_number(a) && v_is_number(b)) {
        *out = v_is_int(a) && v_is_int(b) ? v_int_of(a) == v_int_of(b)
                                          : v_double_of(a) == v_double_of(b);
        return SUMI_OK;
    }
    if (a->kind != b->kind) return SUMI_OK;
    switch (a->kind) {
    case V_UNDEF:
    case V_NONE: *out = true; return SUMI_OK;
    case V_STR:
    case V_BIG:
        TRY(tpl_charge(ev, a->s->n == b->s->n ? a->s->n / 256 : 0));
        *out = str_is(a->s, b->s->p, b->s->n);
        return SUMI_OK;
    case V_LIST:
    case V_TUPLE: return equal_lists(ev, a->list, b->list, depth, out);
    case V_DICT: return equal_dicts(ev, a->dict, b->dict, depth, out);
    case V_RANGE: *out = equal_ranges(a->range, b->range); return SUMI_OK;
    default: *out = same_object(a, b); return SUMI_OK;
    }
}

sumi_status tpl_equal(struct eval *ev, const struct value *a, const struct value *b, bool *out) {
    return equal(ev, a, b, 0, out);
}

static int order_strings(const struct str *a, const struct str *b) {
    size_t n = a->n < b->n ? a->n : b->n;
    int c = n ? memcmp(a->p, b->p, n) : 0;
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

/* -1, 0, 1, or 2 where a number is NaN and no order holds. */
static sumi_status order(struct eval *ev, const struct value *a, const struct value *b, int depth,
                         int *out) {
    TRY(tpl_charge(ev, 1));
    if (depth > ev->limits.max_depth)
        return tpl_limit(ev, "values nested over %d", ev->limits.max_depth);
    if (v_is_int(a) && v_is_int(b)) {
        *out = (v_int_of(a) > v_int_of(b)) - (v_int_of(a) < v_int_of(b));
        return SUMI_OK;
    }
    if (v_is_number(a) && v_is_number(b)) {
        double x = v_double_of(a), y = v_double_of(b);
        *out = x != x || y != y ? 2 : (x > y) - (x < y);
        return SUMI_OK;
    }
    if (a->kind == V_STR && b->kind == V_STR) {
        TRY(tpl_charge(ev, a->s->n / 256));
        int c = order_strings(a->s, b->s);
        *out = (c > 0) - (c < 0);
        return SUMI_OK;
    }
    if (a->kind != b->kind || (a->kind != V_LIST && a->kind != V_TUPLE))
        return tpl_fail(ev, "no order between %s and %s", tpl_type_name(a), tpl_type_name(b));
    for (size_t i = 0; i < a->list->n && i < b->list->n; i++) {
        bool same;
        TRY(equal(ev, &a->list->v[i], &b->list->v[i], depth + 1, &same));
        if (!same) return order(ev, &a->list->v[i], &b->list->v[i], depth + 1, out);
    }
    *out = (a->list->n > b->list->n) - (a->list->n < b->list->n);
    return SUMI_OK;
}

sumi_status tpl_order(struct eval *ev, const struct value *a, const struct value *b, int *out) {
    return order(ev, a, b, 0, out);
}

sumi_status tpl_contains(struct eval *ev, const struct value *item, const struct value *in,
                         bool *out) {
    *out = false;
    if (in->kind == V_STR) {
        if (item->kind != V_STR)
            return tpl_fail(ev, "'in' a string needs a string, found %s", tpl_type_name(item));
        TRY(tpl_charge(ev, in->s->n / 256));
        *out = tpl_find(in->s, 0, in->s->n, item->s) != SIZE_MAX;
        return SUMI_OK;
    }
    if (in->kind == V_DICT) {
        if (item->kind == V_LIST || item->kind == V_DICT)
            return tpl_fail(ev, "a %s cannot be a dict key", tpl_type_name(item));
        TRY(tpl_charge(ev, tpl_dict_cost(in->dict)));
        *out = tpl_dict_find(in->dict, item) != NULL;
        return SUMI_OK;
    }
    struct iter it = {0};
    struct value v;
    TRY(tpl_iter(ev, in, &it));
    for (bool more = true; more && !*out;) {
        TRY(tpl_next(ev, &it, &v, &more));
        if (more) TRY(tpl_equal(ev, item, &v, out));
    }
    return SUMI_OK;
}

sumi_status tpl_compare(struct eval *ev, int op, const struct value *a, const struct value *b,
                        bool *out) {
    int c;
    switch (op) {
    case T_EQ: return tpl_equal(ev, a, b, out);
    case T_NE: TRY(tpl_equal(ev, a, b, out)); break;
    case T_NAME: return tpl_contains(ev, a, b, out);
    case T_STRING: TRY(tpl_contains(ev, a, b, out)); break;
    default:
        TRY(tpl_order(ev, a, b, &c));
        *out = c != 2 && (op == T_LT ? c < 0 : op == T_LE ? c <= 0 : op == T_GT ? c > 0 : c >= 0);
        return SUMI_OK;
    }
    *out = !*out;
    return SUMI_OK;
}

/* Whether the item at i must stay before the item at j, for i before j. */
static sumi_status in_order(struct eval *ev, const struct value *keys, size_t i, size_t j,
                            bool reverse, bool *out) {
    int c;
    TRY(tpl_order(ev, &keys[reverse ? i : j], &keys[reverse ? j : i], &c));
    *out = c != -1;
    return SUMI_OK;
}

/* Stable merge sort of indices, bottom up. */
sumi_status tpl_sort(struct eval *ev, struct value *v, const struct value *keys, size_t n,
                     bool reverse) {
    size_t *from, *to;
    struct value *sorted;
    TPL_NEW(ev, from, n);
    TPL_NEW(ev, to, n);
    TPL_NEW(ev, sorted, n);
    for (size_t i = 0; i < n; i++) from[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            size_t mid = start + width < n ? start + width : n;
            size_t end = start + 2 * width < n ? start + 2 * width : n;
            for (size_t i = start, j = mid, k = start; k < end; k++) {
                bool left = j == end;
                if (i < mid && j < end) TRY(in_order(ev, keys, from[i], from[j], reverse, &left));
                to[k] = left ? from[i++] : from[j++];
            }
        }
        size_t *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < n; i++) sorted[i] = v[from[i]];
    if (n) memcpy(v, sorted, n * sizeof *v);
    return SUMI_OK;
}
