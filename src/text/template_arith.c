/* Arithmetic with Python's rules: true and floor division, the sign of a remainder, repetition and
 * concatenation of sequences. Integers have 64 bits; a larger result is an error. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "text/template_eval.h"

static sumi_status too_big(struct eval *ev) {
    return tpl_limit(ev, "an integer over 64 bits");
}

static sumi_status mismatch(struct eval *ev, int op, const struct value *a, const struct value *b) {
    for (int i = 0; i < 2; i++) {
        const struct value *v = i ? b : a;
        if (v->kind != V_UNDEF) continue;
        if (v->hint) return tpl_fail(ev, "'%.*s' is undefined", (int)v->hint->n, v->hint->p);
        return tpl_fail(ev, "an undefined value in '%s'", token_text((enum token_kind)op));
    }
    return tpl_fail(ev, "no operator '%s' between %s and %s", token_text((enum token_kind)op),
                    tpl_type_name(a), tpl_type_name(b));
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static sumi_status int_power(struct eval *ev, int64_t base, int64_t exponent, struct value *out) {
    int64_t r = 1;
    while (exponent) {
        if (exponent & 1 && __builtin_mul_overflow(r, base, &r)) return too_big(ev);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return too_big(ev);
    }
    *out = v_int(r);
    return SUMI_OK;
}

static sumi_status int_math(struct eval *ev, int op, int64_t a, int64_t b, struct value *out) {
    int64_t r = 0;
    bool over = false;
    switch (op) {
    case T_ADD: over = __builtin_add_overflow(a, b, &r); break;
    case T_SUB: over = __builtin_sub_overflow(a, b, &r); break;
    case T_MUL: over = __builtin_mul_overflow(a, b, &r); break;
    case T_POW: return int_power(ev, a, b, out);
    default: /* FLOORDIV, MOD */
        if (b == 0) return tpl_fail(ev, "division by zero");
        if (b == -1) over = op == T_FLOORDIV && __builtin_sub_overflow(0, a, &r);
        else if (op == T_FLOORDIV) r = floor_div(a, b);
        else r = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    }
    if (over) return too_big(ev);
    *out = v_int(r);
    return SUMI_OK;
}

static sumi_status float_math(struct eval *ev, int op, double a, double b, struct value *out) {
    double r = 0;
    switch (op) {
    case T_ADD: r = a + b; break;
    case T_SUB: r = a - b; break;
    case T_MUL: r = a * b; break;
    case T_POW:
        if ((a == 0 && b < 0) || (a < 0 && b != floor(b)))
            return tpl_fail(ev, "a power without a real value");
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b)) return tpl_fail(ev, "a power out of range");
        break;
    default: /* DIV, FLOORDIV, MOD */
        if (b == 0) return tpl_fail(ev, "division by zero");
        if (op == T_DIV) {
            r = a / b;
            break;
        }
        double rest = fmod(a, b), quotient = (a - rest) / b;
        if (rest == 0) rest = copysign(0.0, b);
        else if ((rest < 0) != (b < 0)) rest += b, quotient -= 1;
        r = floor(quotient);
        if (quotient - r > 0.5) r += 1;
        if (quotient == 0) r = copysign(0.0, a / b);
        if (op == T_MOD) r = rest;
    }
    *out = v_float(r);
    return SUMI_OK;
}

static sumi_status number_math(struct eval *ev, int op, const struct value *a,
                               const struct value *b, struct value *out) {
    bool ints = v_is_int(a) && v_is_int(b);
    if (ints && op != T_DIV && !(op == T_POW && v_int_of(b) < 0))
        return int_math(ev, op, v_int_of(a), v_int_of(b), out);
    return float_math(ev, op, v_double_of(a), v_double_of(b), out);
}

static sumi_status repeat_list(struct eval *ev, const struct value *v, int64_t times,
                               struct value *out) {
    size_t n;
    struct value *items;
    const struct list *l;
    if (!size_mul(v->list->n, (size_t)times, &n) || n > SIZE_MAX / sizeof *items)
        return tpl_limit(ev, "a list of over 2^60 items");
    TRY(tpl_charge(ev, n));
    TPL_NEW(ev, items, n);
    for (size_t i = 0; i < n; i += v->list->n)
        memcpy(items + i, v->list->v, v->list->n * sizeof *items);
    TRY(tpl_new_list(ev, items, n, v->list->trusted, &l));
    *out = v->kind == V_LIST ? v_list(l) : v_tuple(l);
    return SUMI_OK;
}

static sumi_status repeat(struct eval *ev, const struct value *v, int64_t times,
                          struct value *out) {
    if (times < 0) times = 0;
    if (v->kind != V_STR) return repeat_list(ev, v, v->list->n ? times : 0, out);
    size_t mark = tpl_mark(ev);
    TRY(tpl_repeat(ev, v->s, times));
    return tpl_take(ev, mark, out);
}

static bool is_sequence(const struct value *v) {
    return v->kind == V_STR || v->kind == V_LIST || v->kind == V_TUPLE;
}

static sumi_status add_lists(struct eval *ev, const struct value *a, const struct value *b,
                             struct value *out) {
    size_t n = a->list->n + b->list->n;
    struct value *items;
    const struct list *l;
    TRY(tpl_charge(ev, n));
    TPL_NEW(ev, items, n);
    if (a->list->n) memcpy(items, a->list->v, a->list->n * sizeof *items);
    if (b->list->n) memcpy(items + a->list->n, b->list->v, b->list->n * sizeof *items);
    TRY(tpl_new_list(ev, items, n, a->list->trusted && b->list->trusted, &l));
    *out = a->kind == V_LIST ? v_list(l) : v_tuple(l);
    return SUMI_OK;
}

sumi_status tpl_math(struct eval *ev, int op, const struct value *a, const struct value *b,
                     struct value *out) {
    if (v_is_number(a) && v_is_number(b)) return number_math(ev, op, a, b, out);
    if (op == T_ADD && a->kind == b->kind && is_sequence(a))
        return a->kind == V_STR ? tpl_concat(ev, a->s, b->s, out) : add_lists(ev, a, b, out);
    if (op == T_MUL && is_sequence(a) && v_is_int(b)) return repeat(ev, a, v_int_of(b), out);
    if (op == T_MUL && is_sequence(b) && v_is_int(a)) return repeat(ev, b, v_int_of(a), out);
    if (op == T_MOD && a->kind == V_STR) return tpl_percent(ev, a->s, b, out);
    return mismatch(ev, op, a, b);
}

sumi_status tpl_negate(struct eval *ev, const struct value *v, bool minus, struct value *out) {
    if (v->kind == V_FLOAT) *out = v_float(minus ? -v->d : v->d);
    else if (v_is_int(v) && !(minus && v_int_of(v) == INT64_MIN))
        *out = v_int(minus ? -v_int_of(v) : v_int_of(v));
    else return mismatch(ev, minus ? T_SUB : T_ADD, v, v);
    return SUMI_OK;
}
