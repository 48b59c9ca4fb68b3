/* Formatting after a pattern: the operator `%` and str.format. The pattern's text keeps its own
 * origin, the values keep theirs; numbers and padding count as the pattern's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

struct spec {
    char fill, align; /* < > ^ =, 0: default */
    char sign;        /* 0, '+', ' ' */
    bool alt, comma;
    int64_t width, precision; /* -1: not given */
    char type;                /* 0: default */
    bool trusted;
};

#define MAX_DIGITS 350 /* of a number, the precision included */

/* Digits of |i| in a base, with its prefix if asked for. */
static void int_digits(uint64_t u, const struct spec *spec, char *out) {
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    unsigned base = spec->type == 'x' || spec->type == 'X' ? 16
                    : spec->type == 'o'                    ? 8
                    : spec->type == 'b'                    ? 2
                                                           : 10;
    char digits[80];
    int n = 0;
    do {
        if (spec->comma && n % 4 == 3) digits[n++] = ',';
        digits[n++] = (spec->type == 'X' ? upper : lower)[u % base];
        u /= base;
    } while (u);
    if (spec->alt && base != 10) {
        *out++ = '0';
        *out++ = spec->type;
    }
    while (n) *out++ = digits[--n];
    *out = 0;
}

static void add_commas(char *text) {
    size_t whole = strspn(text, "0123456789"), n = strlen(text);
    for (size_t at = whole; at > 3;) {
        at -= 3;
        memmove(text + at + 1, text + at, n - at + 1);
        text[at] = ',';
        n++;
    }
}

static sumi_status float_digits(struct eval *ev, double d, const struct spec *spec, char *out) {
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    char pattern[8] = "%.*f";
    if (spec->precision > 300 || (fabs(d) >= 1e40 && strchr("fF%", spec->type)))
        return tpl_limit(ev, "a number of over 300 digits");
    if (spec->type != '%') pattern[3] = spec->type;
    snprintf(out, MAX_DIGITS, pattern, precision, fabs(d) * (spec->type == '%' ? 100 : 1));
    if (spec->type == '%') strcat(out, "%");
    if (spec->comma) add_commas(out);
    return SUMI_OK;
}

static sumi_status put_fill(struct eval *ev, int64_t n, const struct spec *spec) {
    const struct str fill = {&spec->fill, 1, 1, NULL, spec->trusted};
    return tpl_repeat(ev, &fill, n);
}

static sumi_status put_padded(struct eval *ev, const struct str *text, const char *sign,
                              const struct spec *spec, char align) {
    int64_t free = spec->width - (int64_t)text->chars - (int64_t)strlen(sign);
    if (free < 0) free = 0;
    if (spec->align) align = spec->align;
    int64_t left = align == '>' ? free : align == '^' ? free / 2 : 0;
    TRY(put_fill(ev, left, spec));
    TRY(tpl_put(ev, sign, strlen(sign), spec->trusted));
    if (align == '=') TRY(put_fill(ev, free, spec));
    TRY(tpl_put_str(ev, text, 0, text->n));
    return put_fill(ev, align == '=' ? 0 : free - left, spec);
}

static sumi_status put_number(struct eval *ev, const struct value *v, struct spec *spec) {
    char digits[2 * MAX_DIGITS];
    bool negative = v->kind == V_FLOAT ? signbit(v->d) : v_int_of(v) < 0;
    bool is_int = strchr("dxXob", spec->type) != NULL;
    if (is_int && v->kind == V_FLOAT) return tpl_fail(ev, "'%c' needs an integer", spec->type);
    int64_t i = is_int ? v_int_of(v) : 0;
    if (is_int) int_digits(i < 0 ? 0 - (uint64_t)i : (uint64_t)i, spec, digits);
    else TRY(float_digits(ev, v_double_of(v), spec, digits));
    const char *sign = negative ? "-" : spec->sign == '+' ? "+" : spec->sign ? " " : "";
    struct str text = {digits, strlen(digits), strlen(digits), NULL, spec->trusted};
    return put_padded(ev, &text, sign, spec, '>');
}

static sumi_status put_text(struct eval *ev, const struct str *s, const struct spec *spec,
                            char align) {
    struct value cut = v_str(s);
    if (spec->precision >= 0 && (size_t)spec->precision < s->chars)
        TRY(tpl_sub(ev, s, 0, str_offset(s, (size_t)spec->precision), &cut));
    return put_padded(ev, cut.s, "", spec, align);
}

static sumi_status put_repr(struct eval *ev, const struct value *v, const struct spec *spec,
                            char align) {
    struct value text;
    size_t mark = tpl_mark(ev);
    TRY(tpl_repr(ev, v, spec->trusted, 0));
    TRY(tpl_take(ev, mark, &text));
    return put_text(ev, text.s, spec, align);
}

/* Decimal digits at *at, or -1; the width of a field cannot pass the output's limit anyway. */
static int64_t read_int(const struct str *f, size_t *at) {
    int64_t n = -1;
    while (*at < f->n && f->p[*at] >= '0' && f->p[*at] <= '9') {
        n = (n < 0 ? 0 : n) * 10 + (f->p[*at] - '0');
        if (n > INT32_MAX) n = INT32_MAX;
        ++*at;
    }
    return n;
}

/* The values of `%`: a tuple one after another, a dict by key, anything else once. */
struct feed {
    const struct value *arg;
    size_t next;
    bool by_key;
};

static sumi_status feed_next(struct eval *ev, struct feed *feed, struct value *out) {
    bool tuple = feed->arg->kind == V_TUPLE;
    if (feed->next >= (tuple ? feed->arg->list->n : 1))
        return tpl_fail(ev, "not enough values for the format");
    *out = tuple ? feed->arg->list->v[feed->next] : *feed->arg;
    feed->next++;
    return SUMI_OK;
}

static sumi_status feed_key(struct eval *ev, struct feed *feed, const struct str *f, size_t *at,
                            struct value *out) {
    size_t from = ++*at;
    while (*at < f->n && f->p[*at] != ')') ++*at;
    if (feed->arg->kind != V_DICT || *at == f->n)
        return tpl_fail(ev, "%%(name) in a format needs a dict");
    const struct value *v = tpl_dict_str(feed->arg->dict, f->p + from, *at - from);
    if (!v) return tpl_fail(ev, "no member '%.*s' for the format", (int)(*at - from), f->p + from);
    feed->by_key = true;
    *out = *v;
    ++*at;
    return SUMI_OK;
}

static sumi_status read_percent(struct eval *ev, const struct str *f, size_t *at,
                                struct spec *spec) {
    for (; *at < f->n && strchr("-0+ #", f->p[*at]) && f->p[*at]; ++*at) {
        char c = f->p[*at];
        if (c == '-') spec->align = '<', spec->fill = ' ';
        else if (c == '0' && spec->align != '<') spec->align = '=', spec->fill = '0';
        else if (c == '+' || (c == ' ' && !spec->sign)) spec->sign = c;
        else if (c == '#') spec->alt = true;
    }
    spec->width = read_int(f, at);
    if (*at < f->n && f->p[*at] == '.') {
        ++*at;
        spec->precision = read_int(f, at);
        if (spec->precision < 0) spec->precision = 0;
    }
    if (*at == f->n) return tpl_fail(ev, "an incomplete format");
    spec->type = f->p[(*at)++];
    return SUMI_OK;
}

static sumi_status put_percent(struct eval *ev, const struct value *v, struct spec *spec) {
    const struct str *s;
    struct value number = *v;
    switch (spec->type) {
    case 's':
    case 'r':
        if (spec->align == '=') spec->align = '>', spec->fill = ' ';
        if (spec->type == 'r') return put_repr(ev, v, spec, '>');
        TRY(tpl_to_str(ev, v, &s));
        return put_text(ev, s, spec, '>');
    case 'd':
    case 'i':
    case 'u': spec->type = 'd'; break;
    case 'x':
    case 'X':
    case 'o':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': break;
    default: return tpl_fail(ev, "'%%%c' is no format here", spec->type);
    }
    if (!v_is_number(v))
        return tpl_fail(ev, "'%%%c' needs a number, found %s", spec->type, tpl_type_name(v));
    if (spec->type == 'd' && v->kind == V_FLOAT) {
        if (!(fabs(v->d) < 9e18)) return tpl_limit(ev, "an integer over 64 bits");
        number = v_int((int64_t)v->d);
    }
    if (spec->precision >= 0 && strchr("dxXo", spec->type))
        return tpl_fail(ev, "a precision of an integer is not supported");
    return put_number(ev, &number, spec);
}

sumi_status tpl_percent(struct eval *ev, const struct str *f, const struct value *arg,
                        struct value *out) {
    size_t mark = tpl_mark(ev), at = 0;
    struct feed feed = {.arg = arg};
    while (at < f->n) {
        const char *sign = memchr(f->p + at, '%', f->n - at);
        size_t end = sign ? (size_t)(sign - f->p) : f->n;
        TRY(tpl_put_str(ev, f, at, end - at));
        if (!sign) break;
        at = end + 1;
        if (at < f->n && f->p[at] == '%') {
            TRY(tpl_put_str(ev, f, at++, 1));
            continue;
        }
        struct spec spec = {.fill = ' ', .precision = -1, .trusted = str_trust(f, end)};
        struct value v = v_none();
        bool keyed = at < f->n && f->p[at] == '(';
        if (keyed) TRY(feed_key(ev, &feed, f, &at, &v));
        TRY(read_percent(ev, f, &at, &spec));
        if (!keyed) TRY(feed_next(ev, &feed, &v));
        TRY(put_percent(ev, &v, &spec));
    }
    bool single = arg->kind != V_TUPLE;
    bool mapping =
        arg->kind == V_DICT || arg->kind == V_LIST || arg->kind == V_UNDEF || arg->kind == V_RANGE;
    if (!feed.by_key && !(single && mapping) && feed.next < (single ? 1 : arg->list->n))
        return tpl_fail(ev, "more values than the format takes");
    return tpl_take(ev, mark, out);
}

/* [[fill]align][sign][#][0][width][,][.precision][type] in f[at..end). */
static sumi_status read_braces(struct eval *ev, const struct str *f, size_t at, size_t end,
                               struct spec *spec) {
    if (at + 1 < end && strchr("<>^=", f->p[at + 1]) && f->p[at + 1] && !(f->p[at] & 0x80)) {
        spec->fill = f->p[at];
        spec->align = f->p[at + 1];
        at += 2;
    } else if (at < end && strchr("<>^=", f->p[at]) && f->p[at]) {
        spec->align = f->p[at++];
    }
    if (at < end && (f->p[at] == '+' || f->p[at] == ' ')) spec->sign = f->p[at++];
    else if (at < end && f->p[at] == '-') at++;
    if (at < end && f->p[at] == '#') spec->alt = true, at++;
    if (at < end && f->p[at] == '0' && !spec->align) spec->fill = '0', spec->align = '=', at++;
    spec->width = read_int(f, &at);
    if (at < end && f->p[at] == ',') spec->comma = true, at++;
    if (at < end && f->p[at] == '.') {
        at++;
        spec->precision = read_int(f, &at);
        if (spec->precision < 0) return tpl_fail(ev, "a format without its precision");
    }
    if (at < end) spec->type = f->p[at++];
    if (at == end && (!spec->type || strchr("sdfFeEgGxXob%", spec->type))) return SUMI_OK;
    return tpl_fail(ev, "an unknown format '%.*s'", (int)(end < f->n ? end : f->n), f->p);
}

static sumi_status put_braces(struct eval *ev, const struct value *v, struct spec *spec) {
    const struct str *s;
    bool number = v_is_number(v) && !(v->kind == V_BOOL && !spec->type);
    if (number && v_is_int(v) && !spec->type) spec->type = 'd';
    if (number && spec->type && spec->type != 's') {
        if (spec->precision >= 0 && strchr("dxXob", spec->type))
            return tpl_fail(ev, "a precision of an integer");
        return put_number(ev, v, spec);
    }
    if (spec->type && (spec->type != 's' || v->kind != V_STR))
        return tpl_fail(ev, "the format '%c' of a %s", spec->type, tpl_type_name(v));
    if (number && spec->precision >= 0)
        return tpl_fail(ev, "a precision without a type is not supported");
    if (spec->align == '=' && !number) return tpl_fail(ev, "'=' aligns numbers only");
    TRY(tpl_to_str(ev, v, &s));
    return put_text(ev, s, spec, number ? '>' : '<');
}

/* The field's value: a number, a name, or nothing for the next positional one. */
static sumi_status field_value(struct eval *ev, const struct str *name, const struct args *args,
                               size_t *next, struct value *out) {
    size_t at = 0;
    int64_t index = name->n ? read_int(name, &at) : (int64_t)(*next)++;
    if (at < name->n && index >= 0) return tpl_fail(ev, "an unknown field in a format");
    if (index >= 0) {
        if ((size_t)index >= args->n_pos) return tpl_fail(ev, "not enough values for the format");
        *out = args->pos[index];
        return SUMI_OK;
    }
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!str_is(args->kw[i].key.s, name->p, name->n)) continue;
        *out = args->kw[i].value;
        return SUMI_OK;
    }
    return tpl_fail(ev, "no value for the field '%.*s' of a format", (int)name->n, name->p);
}

static sumi_status put_field(struct eval *ev, const struct str *f, size_t at, size_t end,
                             const struct args *args, size_t *next) {
    size_t stop = at;
    struct value v, name;
    struct spec spec = {.fill = ' ', .precision = -1, .trusted = str_trust(f, at - 1)};
    while (stop < end && f->p[stop] != ':' && f->p[stop] != '!') stop++;
    TRY(tpl_sub(ev, f, at, stop - at, &name));
    if (memchr(name.s->p, '.', name.s->n) || memchr(name.s->p, '[', name.s->n))
        return tpl_fail(ev, "attributes in a format are not supported");
    TRY(field_value(ev, name.s, args, next, &v));
    bool repr = end - stop >= 2 && f->p[stop] == '!' && f->p[stop + 1] == 'r';
    if (repr || (end - stop >= 2 && f->p[stop] == '!' && f->p[stop + 1] == 's')) {
        const struct str *s;
        stop += 2;
        if (repr) {
            size_t mark = tpl_mark(ev);
            TRY(tpl_repr(ev, &v, spec.trusted, 0));
            TRY(tpl_take(ev, mark, &v));
        } else {
            TRY(tpl_to_str(ev, &v, &s));
            v = v_str(s);
        }
    }
    if (stop < end && f->p[stop] != ':') return tpl_fail(ev, "an unknown conversion in a format");
    if (stop < end) TRY(read_braces(ev, f, stop + 1, end, &spec));
    return put_braces(ev, &v, &spec);
}

sumi_status tpl_format(struct eval *ev, const struct str *f, const struct args *args,
                       struct value *out) {
    size_t mark = tpl_mark(ev), next = 0;
    for (size_t at = 0; at < f->n;) {
        size_t end = at;
        while (end < f->n && f->p[end] != '{' && f->p[end] != '}') end++;
        TRY(tpl_put_str(ev, f, at, end - at));
        at = end + 1;
        if (end == f->n) break;
        if (at < f->n && f->p[at] == f->p[end]) {
            TRY(tpl_put_str(ev, f, at++, 1));
            continue;
        }
        const char *close = f->p[end] == '{' ? memchr(f->p + at, '}', f->n - at) : NULL;
        if (!close) return tpl_fail(ev, "a single brace in a format");
        end = (size_t)(close - f->p);
        if (memchr(f->p + at, '{', end - at))
            return tpl_fail(ev, "nested fields in a format are not supported");
        TRY(put_field(ev, f, at, end, args, &next));
        at = end + 1;
    }
    return tpl_take(ev, mark, out);
}
