/* Filters by name, and those of plain values: numbers, defaults, conversions. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

#define FILTER(name)                                                           \
    static sumi_status name(TPL_UNUSED struct eval *ev, const struct value *v, \
                            TPL_UNUSED const struct value *arg, struct value *out)

FILTER(f_default) {
    bool missing = v->kind == V_UNDEF || (tpl_truth(&arg[1]) && !tpl_truth(v));
    if (!missing) *out = *v;
    else if (arg[0].kind != V_ABSENT) *out = arg[0];
    else return tpl_str(ev, "", 0, NULL, true, out);
    return SUMI_OK;
}

FILTER(f_abs) {
    if (!v_is_number(v)) return tpl_fail(ev, "abs of a %s", tpl_type_name(v));
    bool negative = v->kind == V_FLOAT ? signbit(v->d) : v_int_of(v) < 0;
    return tpl_negate(ev, v, negative, out);
}

/* Python's float(): white space around, single underscores between digits, inf and nan. */
static bool parse_float(const struct str *s, double *out) {
    size_t from = tpl_space_left(s->p, s->n), to = s->n - tpl_space_right(s->p, s->n), n = 0;
    char text[400];
    for (size_t i = from; i < to; i++) {
        char c = s->p[i];
        bool digits = i > from && i + 1 < to && s->p[i - 1] >= '0' && s->p[i - 1] <= '9' &&
                      s->p[i + 1] >= '0' && s->p[i + 1] <= '9';
        if (c == '_' && digits) continue;
        if (!c || !strchr("+-.0123456789eEinfatyINFATY", c) || n == sizeof text - 1) return false;
        text[n++] = c;
    }
    char *end;
    text[n] = 0;
    *out = strtod(text, &end);
    return n && !*end && !strchr(text, '_');
}

/* Python's int(text, base), within 64 bits. */
static sumi_status parse_int(struct eval *ev, const struct str *s, int base, bool *ok,
                             int64_t *out) {
    size_t i = tpl_space_left(s->p, s->n), to = s->n - tpl_space_right(s->p, s->n);
    bool minus = i < to && s->p[i] == '-', any = false;
    if (i < to && (s->p[i] == '-' || s->p[i] == '+')) i++;
    char mark = to > i + 1 && s->p[i] == '0' ? (char)(s->p[i + 1] | 32) : 0;
    int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == 0 || base == marked)) {
        base = marked;
        i += 2;
        if (i < to && s->p[i] == '_') i++;
    }
    if (base == 0) base = 10;
    *ok = false;
    *out = 0;
    for (; i < to; i++, any = true) {
        char c = s->p[i];
        if (c == '_' && any && i + 1 < to && s->p[i - 1] != '_') continue;
        int d = c >= '0' && c <= '9'                 ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10
                                                     : 99;
        if (d >= base) return SUMI_OK;
        if (__builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, minus ? -d : d, out))
            return tpl_limit(ev, "int: an integer over 64 bits");
    }
    *ok = any;
    return SUMI_OK;
}

static sumi_status float_to_int(struct eval *ev, double d, struct value *out) {
    if (!(fabs(d) < 9.2e18)) return tpl_limit(ev, "int: an integer over 64 bits");
    *out = v_int((int64_t)d);
    return SUMI_OK;
}

FILTER(f_int) {
    int64_t base = 10, i;
    double d;
    bool ok = false;
    struct value otherwise = arg[0].kind == V_ABSENT ? v_int(0) : arg[0];
    if (arg[1].kind != V_ABSENT) TRY(tpl_need_int(ev, &arg[1], "int", &base));
    if (v->kind == V_UNDEF) return tpl_fail(ev, "int of an undefined value");
    if (v_is_int(v)) *out = v_int(v_int_of(v));
    else if (v->kind == V_BIG) *out = *v;
    else if (v->kind == V_FLOAT && isnan(v->d)) *out = otherwise;
    else if (v->kind == V_FLOAT) return float_to_int(ev, v->d, out);
    else if (v->kind != V_STR) *out = otherwise;
    else {
        if (base == 0 || (base >= 2 && base <= 36)) TRY(parse_int(ev, v->s, (int)base, &ok, &i));
        if (ok) *out = v_int(i);
        else if (!parse_float(v->s, &d) || !isfinite(d)) *out = otherwise;
        else return float_to_int(ev, d, out);
    }
    return SUMI_OK;
}

FILTER(f_float) {
    double d;
    if (v->kind == V_UNDEF) return tpl_fail(ev, "float of an undefined value");
    if (v_is_number(v)) *out = v_float(v_double_of(v));
    else if ((v->kind == V_STR || v->kind == V_BIG) && parse_float(v->s, &d)) *out = v_float(d);
    else *out = arg[0].kind == V_ABSENT ? v_float(0) : arg[0];
    return SUMI_OK;
}

/* To the nearest decimal of that precision, the exact half to even, as Python's round. */
static sumi_status round_common(struct eval *ev, const struct value *v, int64_t precision,
                                struct value *out) {
    char text[400];
    if (v_is_int(v) && precision >= 0) {
        *out = v_int(v_int_of(v));
    } else if (v_is_int(v)) {
        int64_t unit = 1, i = v_int_of(v);
        for (int64_t k = precision; k < 0; k++)
            if (__builtin_mul_overflow(unit, 10, &unit))
                return tpl_limit(ev, "round: a precision below -18");
        int64_t rest = i % unit, down = i - rest, half = unit / 2;
        if (rest < 0) rest += unit, down -= unit;
        bool up = rest > half || (rest == half && unit > 1 && (down / unit) % 2 != 0);
        *out = v_int(down + (up ? unit : 0));
    } else if (!isfinite(v->d) || precision > 300) {
        *out = *v;
    } else if (precision >= 0) {
        if (fabs(v->d) >= 1e60) {
            *out = *v;
            return SUMI_OK;
        }
        snprintf(text, sizeof text, "%.*f", (int)precision, v->d);
        *out = v_float(strtod(text, NULL));
    } else {
        double unit = pow(10, precision < -308 ? 308 : (double)-precision);
        *out = v_float(nearbyint(v->d / unit) * unit);
    }
    return SUMI_OK;
}

FILTER(f_round) {
    int64_t precision = 0;
    const struct str *method = NULL;
    if (!v_is_number(v)) return tpl_fail(ev, "round of a %s", tpl_type_name(v));
    if (arg[0].kind != V_ABSENT) TRY(tpl_need_int(ev, &arg[0], "round", &precision));
    if (arg[1].kind != V_ABSENT) TRY(tpl_need_str(ev, &arg[1], "round", &method));
    if (!method || str_is(method, "common", 6)) return round_common(ev, v, precision, out);
    bool up = str_is(method, "ceil", 4);
    if (!up && !str_is(method, "floor", 5))
        return tpl_fail(ev, "round: the method must be common, ceil or floor");
    double unit = pow(10, (double)precision), d = v_double_of(v) * unit;
    if (!isfinite(d)) return tpl_fail(ev, "round: a number out of range");
    *out = v_float((up ? ceil(d) : floor(d)) / unit);
    return SUMI_OK;
}

FILTER(f_length) {
    size_t n;
    TRY(tpl_length(ev, v, &n));
    *out = v_int((int64_t)n);
    return SUMI_OK;
}

FILTER(f_string) {
    const struct str *s;
    TRY(tpl_to_str(ev, v, &s));
    *out = v_str(s);
    return SUMI_OK;
}

FILTER(f_tojson) {
    return tpl_json(ev, v, arg, out);
}

/* Attributes proper: methods, members of a namespace, the fields of `loop`; no dict keys. */
FILTER(f_attr) {
    const struct str *name;
    TRY(tpl_need_str(ev, &arg[0], "attr", &name));
    *out = v_undef(name);
    if (v->kind == V_UNDEF || (v->kind != V_NS && v->kind != V_LOOP && !method_find(v, name)))
        return SUMI_OK;
    return tpl_attr(ev, v, name, out);
}

static const struct filter value_filters[] = {
    {"default", "default_value boolean", 0, f_default, NULL},
    {"d", "default_value boolean", 0, f_default, NULL},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, f_tojson, NULL},
    {"length", "", 0, f_length, NULL},
    {"count", "", 0, f_length, NULL},
    {"string", "", 0, f_string, NULL},
    {"safe", "", 0, f_string, NULL},
    {"abs", "", 0, f_abs, NULL},
    {"int", "default base", 0, f_int, NULL},
    {"float", "default", 0, f_float, NULL},
    {"round", "precision method", 0, f_round, NULL},
    {"attr", "name", 1, f_attr, NULL},
    {0},
};

const struct filter *filter_find(const struct str *name) {
    const struct filter *const tables[] = {value_filters, text_filters, seq_filters};
    for (size_t t = 0; t < 3; t++)
        for (const struct filter *f = tables[t]; f->name; f++)
            if (str_is(name, f->name, strlen(f->name))) return f;
    return NULL;
}

bool filter_refused(const struct str *name) {
    static const char *const refused[] = {"filesizeformat", "groupby",   "pprint",    "random",
                                          "slice",          "striptags", "urlencode", "urlize",
                                          "wordwrap",       "xmlattr"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (str_is(name, refused[i], strlen(refused[i]))) return true;
    return false;
}

sumi_status tpl_filter(struct eval *ev, const struct filter *f, const struct value *v,
                       const struct args *args, struct value *out) {
    struct value arg[MAX_PARAMS];
    if (f->raw) return f->raw(ev, v, args, out);
    TRY(tpl_bind(ev, f->name, f->params, f->needed, args, arg));
    return f->bound(ev, v, arg, out);
}
