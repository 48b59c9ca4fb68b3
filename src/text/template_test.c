/* The tests behind `is`. */
#include <string.h>

#include "text/template_eval.h"

#define TEST(name)                                                                        \
    static sumi_status name(TPL_UNUSED struct eval *ev, TPL_UNUSED const struct value *v, \
                            TPL_UNUSED const struct value *arg, bool *out)

/* Tests that only look at the type. */
#define TYPE_TEST(name, expr) \
    TEST(name) {              \
        *out = (expr);        \
        return SUMI_OK;       \
    }

TYPE_TEST(t_defined, v->kind != V_UNDEF)
TYPE_TEST(t_undefined, v->kind == V_UNDEF)
TYPE_TEST(t_none, v->kind == V_NONE)
TYPE_TEST(t_boolean, v->kind == V_BOOL)
TYPE_TEST(t_true, v->kind == V_BOOL && v->sub)
TYPE_TEST(t_false, v->kind == V_BOOL && !v->sub)
TYPE_TEST(t_integer, v->kind == V_INT || v->kind == V_BIG)
TYPE_TEST(t_float, v->kind == V_FLOAT)
TYPE_TEST(t_number, v_is_number(v) || v->kind == V_BIG)
TYPE_TEST(t_string, v->kind == V_STR)
TYPE_TEST(t_mapping, v->kind == V_DICT)
TYPE_TEST(t_sequence, tpl_has_length(v) && v->kind != V_VIEW)
TYPE_TEST(t_iterable, tpl_is_iterable(v))
TYPE_TEST(t_callable, tpl_is_callable(v))
TYPE_TEST(t_escaped, false)

TEST(t_remainder) {
    struct value rest;
    TRY(tpl_math(ev, T_MOD, v, arg, &rest));
    if (!v_is_number(&rest)) return tpl_fail(ev, "a remainder of a %s", tpl_type_name(v));
    *out = v_double_of(&rest) == 0;
    return SUMI_OK;
}

static sumi_status parity(struct eval *ev, const struct value *v, double want, bool *out) {
    const struct value two = v_int(2);
    struct value rest;
    TRY(tpl_math(ev, T_MOD, v, &two, &rest));
    *out = v_is_number(&rest) && v_double_of(&rest) == want;
    return SUMI_OK;
}
TEST(t_odd) {
    return parity(ev, v, 1, out);
}
TEST(t_even) {
    return parity(ev, v, 0, out);
}

static sumi_status in_case(struct eval *ev, const struct value *v, bool upper, bool *out) {
    const struct str *s;
    TRY(tpl_to_str(ev, v, &s));
    return tpl_is_case(ev, s, upper, out);
}
TEST(t_upper) {
    return in_case(ev, v, true, out);
}
TEST(t_lower) {
    return in_case(ev, v, false, out);
}

TEST(t_eq) {
    return tpl_compare(ev, T_EQ, v, arg, out);
}
TEST(t_ne) {
    return tpl_compare(ev, T_NE, v, arg, out);
}
TEST(t_lt) {
    return tpl_compare(ev, T_LT, v, arg, out);
}
TEST(t_le) {
    return tpl_compare(ev, T_LE, v, arg, out);
}
TEST(t_gt) {
    return tpl_compare(ev, T_GT, v, arg, out);
}
TEST(t_ge) {
    return tpl_compare(ev, T_GE, v, arg, out);
}
TEST(t_in) {
    return tpl_contains(ev, v, arg, out);
}

/* Identity, where it does not depend on how CPython stores things. */
TEST(t_sameas) {
    bool singleton = v->kind == V_NONE || v->kind == V_BOOL;
    if (!singleton && v->kind == arg->kind && v->i != arg->i)
        return tpl_fail(ev, "sameas of two values of type %s", tpl_type_name(v));
    *out = v->kind == arg->kind && (v->kind == V_BOOL ? v->sub == arg->sub : true);
    return SUMI_OK;
}

TEST(t_filter) {
    *out = v->kind == V_STR && filter_find(v->s);
    return SUMI_OK;
}
TEST(t_test) {
    *out = v->kind == V_STR && test_find(v->s);
    return SUMI_OK;
}

static const struct test tests[] = {
    {"defined", 0, t_defined},
    {"undefined", 0, t_undefined},
    {"none", 0, t_none},
    {"string", 0, t_string},
    {"mapping", 0, t_mapping},
    {"iterable", 0, t_iterable},
    {"sequence", 0, t_sequence},
    {"number", 0, t_number},
    {"integer", 0, t_integer},
    {"float", 0, t_float},
    {"boolean", 0, t_boolean},
    {"true", 0, t_true},
    {"false", 0, t_false},
    {"callable", 0, t_callable},
    {"odd", 0, t_odd},
    {"even", 0, t_even},
    {"divisibleby", 1, t_remainder},
    {"upper", 0, t_upper},
    {"lower", 0, t_lower},
    {"in", 1, t_in},
    {"eq", 1, t_eq},
    {"equalto", 1, t_eq},
    {"==", 1, t_eq},
    {"ne", 1, t_ne},
    {"!=", 1, t_ne},
    {"lt", 1, t_lt},
    {"lessthan", 1, t_lt},
    {"<", 1, t_lt},
    {"le", 1, t_le},
    {"<=", 1, t_le},
    {"gt", 1, t_gt},
    {"greaterthan", 1, t_gt},
    {">", 1, t_gt},
    {"ge", 1, t_ge},
    {">=", 1, t_ge},
    {"sameas", 1, t_sameas},
    {"escaped", 0, t_escaped},
    {"filter", 0, t_filter},
    {"test", 0, t_test},
};

const struct test *test_find(const struct str *name) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (str_is(name, tests[i].name, strlen(tests[i].name))) return &tests[i];
    return NULL;
}

sumi_status tpl_test(struct eval *ev, const struct test *t, const struct value *v,
                     const struct args *args, bool *out) {
    if (args->n_kw || args->n_pos != (size_t)t->n_args)
        return tpl_fail(ev, "the test '%s' takes %d argument%s", t->name, t->n_args,
                        t->n_args == 1 ? "" : "s");
    return t->run(ev, v, args->pos, out);
}
