/* What can be walked, counted and sliced: strings by character, lists, dicts by key, ranges,
 * generators. */
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

bool tpl_has_length(const struct value *v) {
    switch (v->kind) {
    case V_UNDEF:
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_VIEW:
    case V_DICT:
    case V_RANGE: return true;
    default: return false;
    }
}

bool tpl_is_iterable(const struct value *v) {
    return tpl_has_length(v) || v->kind == V_GEN;
}

sumi_status tpl_length(struct eval *ev, const struct value *v, size_t *out) {
    switch (v->kind) {
    case V_UNDEF: *out = 0; return SUMI_OK;
    case V_STR: *out = v->s->chars; return SUMI_OK;
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: *out = v->list->n; return SUMI_OK;
    case V_DICT: *out = v->dict->n; return SUMI_OK;
    case V_RANGE: *out = (size_t)v->range->n; return SUMI_OK;
    default: return tpl_fail(ev, "a %s has no length", tpl_type_name(v));
    }
}

struct value tpl_range_at(const struct range *r, int64_t i) {
    return v_int(r->start + i * r->step);
}

sumi_status tpl_iter(struct eval *ev, const struct value *v, struct iter *it) {
    *it = (struct iter){.of = *v};
    if (tpl_is_iterable(v)) return SUMI_OK;
    return tpl_fail(ev, "a %s cannot be iterated over", tpl_type_name(v));
}

sumi_status tpl_next(struct eval *ev, struct iter *it, struct value *out, bool *more) {
    const struct value *v = &it->of;
    TRY(tpl_charge(ev, 1));
    *more = true;
    switch (v->kind) {
    case V_STR:
        if (it->at < v->s->n) {
            size_t from = it->at, n = tpl_char_len(v->s->p[from]);
            it->at += n;
            return tpl_sub(ev, v->s, from, n, out);
        }
        break;
    case V_LIST:
    case V_TUPLE:
    case V_VIEW:
        if (it->at < v->list->n) {
            *out = v->list->v[it->at++];
            return SUMI_OK;
        }
        break;
    case V_DICT:
        if (it->at < v->dict->n) {
            *out = v->dict->pairs[it->at++].key;
            return SUMI_OK;
        }
        break;
    case V_GEN:
        if (v->gen->next < v->gen->list->n) {
            *out = v->gen->list->v[v->gen->next++];
            return SUMI_OK;
        }
        break;
    case V_RANGE:
        if ((int64_t)it->at < v->range->n) {
            *out = tpl_range_at(v->range, (int64_t)it->at++);
            return SUMI_OK;
        }
        break;
    default: break;
    }
    *more = false;
    return SUMI_OK;
}

/* Upper bound of the items that are left. */
static size_t at_most(const struct value *v) {
    switch (v->kind) {
    case V_STR: return v->s->chars;
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return v->list->n;
    case V_DICT: return v->dict->n;
    case V_GEN: return v->gen->list->n - v->gen->next;
    case V_RANGE: return (size_t)v->range->n;
    default: return 0;
    }
}

sumi_status tpl_collect(struct eval *ev, const struct value *v, const struct list **out) {
    struct iter it = {0};
    struct value *items;
    size_t n = 0;
    TRY(tpl_iter(ev, v, &it));
    TPL_NEW(ev, items, at_most(v));
    for (;;) {
        bool more;
        TRY(tpl_next(ev, &it, &items[n], &more));
        if (!more) break;
        n++;
    }
    return tpl_new_list(ev, items, n, tpl_origin(v), out);
}

/* A slice bound: absent or None gives `missing`, negative counts from the end, then clamped. */
static sumi_status bound(struct eval *ev, const struct value *v, int64_t n, int64_t low,
                         int64_t high, int64_t missing, int64_t *out) {
    *out = missing;
    if (v->kind == V_ABSENT || v->kind == V_NONE) return SUMI_OK;
    if (!v_is_int(v)) return tpl_fail(ev, "a slice bound of type %s", tpl_type_name(v));
    int64_t i = v_int_of(v);
    if (i < 0) i = i < -n ? low : i + n;
    *out = i < low ? low : i > high ? high : i;
    return SUMI_OK;
}

static sumi_status slice_string(struct eval *ev, const struct str *s, int64_t start, int64_t step,
                                int64_t count, struct value *out) {
    if (step == 1) {
        size_t from = str_offset(s, (size_t)start);
        size_t to = str_offset(s, (size_t)(start + count));
        return tpl_sub(ev, s, from, to - from, out);
    }
    size_t mark = tpl_mark(ev), at = str_offset(s, (size_t)start);
    TRY(tpl_charge(ev, s->n / 8));
    for (int64_t i = 0; i < count; i++) {
        TRY(tpl_put_str(ev, s, at, tpl_char_len(s->p[at])));
        for (int64_t k = 0; k < step && at < s->n; k++) at += tpl_char_len(s->p[at]);
        for (int64_t k = 0; k > step && at; k--) do
                at--;
            while (at && (s->p[at] & 0xC0) == 0x80);
    }
    return tpl_take(ev, mark, out);
}

sumi_status tpl_slice(struct eval *ev, const struct value *v, const struct value part[3],
                      struct value *out) {
    size_t length;
    int64_t start, stop, step = 1;
    bool list = v->kind == V_LIST || v->kind == V_TUPLE;
    if (!list && v->kind != V_STR && v->kind != V_RANGE)
        return tpl_fail(ev, "a %s cannot be sliced", tpl_type_name(v));
    TRY(tpl_length(ev, v, &length));
    if (v->kind == V_STR && v->s->chars != v->s->n) TRY(tpl_charge(ev, v->s->n / 64));
    int64_t n = (int64_t)length;
    if (part[2].kind != V_ABSENT && part[2].kind != V_NONE) {
        if (!v_is_int(&part[2]) || v_int_of(&part[2]) == 0)
            return tpl_fail(ev, "a slice step must be an integer other than 0");
        step = v_int_of(&part[2]);
        if (step > n + 1) step = n + 1;
        if (step < -n - 1) step = -n - 1;
    }
    bool down = step < 0;
    TRY(bound(ev, &part[0], n, down ? -1 : 0, down ? n - 1 : n, down ? n - 1 : 0, &start));
    TRY(bound(ev, &part[1], n, down ? -1 : 0, down ? n - 1 : n, down ? -1 : n, &stop));
    int64_t count = down ? (start - stop - step - 1) / -step : (stop - start + step - 1) / step;
    if (count < 0 || (down ? start <= stop : start >= stop)) count = 0;
    if (v->kind == V_STR) return slice_string(ev, v->s, count ? start : 0, step, count, out);
    if (v->kind == V_RANGE) {
        struct range *r;
        TPL_NEW(ev, r, 1);
        /* Within two items of the range the product is their distance, so it fits. */
        *r = (struct range){.start = count ? tpl_range_at(v->range, start).i : 0,
                            .step = count > 1 ? v->range->step * step : 1,
                            .n = count};
        r->stop = r->start + r->step * count;
        *out = (struct value){.kind = V_RANGE, .range = r};
        return SUMI_OK;
    }
    struct value *items;
    const struct list *l;
    TRY(tpl_charge(ev, (size_t)count));
    TPL_NEW(ev, items, (size_t)count);
    for (int64_t i = 0; i < count; i++) items[i] = v->list->v[start + i * step];
    TRY(tpl_new_list(ev, items, (size_t)count, v->list->trusted, &l));
    *out = v->kind == V_LIST ? v_list(l) : v_tuple(l);
    return SUMI_OK;
}
