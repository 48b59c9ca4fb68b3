/* Filters that make text of text. What is no string is printed first, as jinja2 does. */
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

#define FILTER(name)                                                \
    static sumi_status name(struct eval *ev, const struct value *v, \
                            TPL_UNUSED const struct value *arg, struct value *out)

static const struct str blank = {" ", 1, 1, NULL, true};

static sumi_status with_case(struct eval *ev, const struct value *v, enum case_kind kind,
                             struct value *out) {
    const struct str *s;
    TRY(tpl_to_str(ev, v, &s));
    return tpl_case(ev, s, kind, out);
}

FILTER(f_upper) {
    return with_case(ev, v, CASE_UPPER, out);
}
FILTER(f_lower) {
    return with_case(ev, v, CASE_LOWER, out);
}
FILTER(f_capitalize) {
    return with_case(ev, v, CASE_CAPITAL, out);
}
FILTER(f_title) {
    return with_case(ev, v, CASE_TITLE_FILTER, out);
}

FILTER(f_trim) {
    const struct str *s, *chars = NULL;
    TRY(tpl_to_str(ev, v, &s));
    if (arg[0].kind != V_ABSENT && arg[0].kind != V_NONE)
        TRY(tpl_need_str(ev, &arg[0], "trim", &chars));
    return tpl_strip(ev, s, chars, SIDE_BOTH, out);
}

FILTER(f_replace) {
    const struct str *s, *old, *with;
    int64_t max = -1;
    TRY(tpl_to_str(ev, v, &s));
    TRY(tpl_to_str(ev, &arg[0], &old));
    TRY(tpl_to_str(ev, &arg[1], &with));
    if (arg[2].kind != V_ABSENT && arg[2].kind != V_NONE)
        TRY(tpl_need_int(ev, &arg[2], "replace", &max));
    return tpl_replace(ev, s, old, with, max, out);
}

FILTER(f_center) {
    const struct str *s;
    int64_t width = 80;
    TRY(tpl_to_str(ev, v, &s));
    if (arg[0].kind != V_ABSENT) TRY(tpl_need_int(ev, &arg[0], "center", &width));
    if (width < (int64_t)s->chars) width = (int64_t)s->chars;
    return tpl_pad(ev, s, &blank, width - (int64_t)s->chars, 1, out);
}

static sumi_status put_width(struct eval *ev, const struct value *width) {
    int64_t n = 4;
    if (width->kind == V_STR) return tpl_put_str(ev, width->s, 0, width->s->n);
    if (width->kind != V_ABSENT) TRY(tpl_need_int(ev, width, "indent", &n));
    return tpl_repeat(ev, &blank, n);
}

/* Every line break becomes \n, with the origin of the break it stands for. */
FILTER(f_indent) {
    const struct str *s;
    bool first = tpl_truth(&arg[1]), blanks = tpl_truth(&arg[2]);
    size_t mark = tpl_mark(ev), from = 0;
    TRY(tpl_need_str(ev, v, "indent", &s));
    TRY(tpl_charge(ev, s->n / 64));
    if (first) TRY(put_width(ev, &arg[0]));
    while (from < s->n) {
        size_t end = from, cut;
        while (end < s->n && !tpl_line_break(s->p + end, s->n - end))
            end += tpl_char_len(s->p[end]);
        if (from && (blanks || end > from)) TRY(put_width(ev, &arg[0]));
        TRY(tpl_put_str(ev, s, from, end - from));
        if (end == s->n) break;
        cut = tpl_line_break(s->p + end, s->n - end);
        TRY(tpl_put(ev, "\n", 1, str_trust(s, end)));
        from = end + cut;
        if (from == s->n && blanks) TRY(put_width(ev, &arg[0]));
    }
    return tpl_take(ev, mark, out);
}

FILTER(f_escape) {
    const struct str *s;
    size_t mark = tpl_mark(ev), from = 0;
    TRY(tpl_to_str(ev, v, &s));
    TRY(tpl_charge(ev, s->n / 64));
    for (size_t i = 0; i < s->n; i++) {
        const char *with = s->p[i] == '&'    ? "&amp;"
                           : s->p[i] == '<'  ? "&lt;"
                           : s->p[i] == '>'  ? "&gt;"
                           : s->p[i] == '"'  ? "&#34;"
                           : s->p[i] == '\'' ? "&#39;"
                                             : NULL;
        if (!with) continue;
        TRY(tpl_put_str(ev, s, from, i - from));
        TRY(tpl_put(ev, with, strlen(with), str_trust(s, i)));
        from = i + 1;
    }
    TRY(tpl_put_str(ev, s, from, s->n - from));
    return tpl_take(ev, mark, out);
}

FILTER(f_truncate) {
    static const struct str dots = {"...", 3, 3, NULL, true};
    const struct str *s, *end = &dots;
    int64_t length = 255, leeway = 5;
    TRY(tpl_need_str(ev, v, "truncate", &s));
    if (arg[0].kind != V_ABSENT) TRY(tpl_need_int(ev, &arg[0], "truncate", &length));
    if (arg[2].kind != V_ABSENT) TRY(tpl_need_str(ev, &arg[2], "truncate", &end));
    if (arg[3].kind != V_ABSENT && arg[3].kind != V_NONE)
        TRY(tpl_need_int(ev, &arg[3], "truncate", &leeway));
    if (length < (int64_t)end->chars || leeway < 0 || length > INT32_MAX || leeway > INT32_MAX)
        return tpl_fail(ev, "truncate: a length shorter than the end mark, or a bad leeway");
    if ((int64_t)s->chars <= length + leeway) {
        *out = *v;
        return SUMI_OK;
    }
    size_t cut = str_offset(s, (size_t)length - end->chars);
    size_t word = tpl_truth(&arg[1]) ? SIZE_MAX : tpl_find_last(s, 0, cut, &blank);
    size_t mark = tpl_mark(ev);
    TRY(tpl_put_str(ev, s, 0, word == SIZE_MAX ? cut : word));
    TRY(tpl_put_str(ev, end, 0, end->n));
    return tpl_take(ev, mark, out);
}

FILTER(f_wordcount) {
    const struct str *s;
    int64_t n = 0;
    bool inside = false;
    TRY(tpl_to_str(ev, v, &s));
    TRY(tpl_charge(ev, s->n / 64));
    for (size_t i = 0; i < s->n; i += tpl_char_len(s->p[i])) {
        uint32_t c = tpl_char(s->p + i);
        bool word = c == '_' || tpl_char_is(c, CHAR_ALPHA) || tpl_char_is(c, CHAR_NUMERIC);
        n += word && !inside;
        inside = word;
    }
    *out = v_int(n);
    return SUMI_OK;
}

static sumi_status f_format(struct eval *ev, const struct value *v, const struct args *args,
                            struct value *out) {
    const struct str *s;
    struct value values;
    TRY(tpl_to_str(ev, v, &s));
    if (args->n_pos && args->n_kw)
        return tpl_fail(ev, "format: positional or keyword arguments, not both");
    if (args->n_kw) {
        struct pair *pairs;
        TPL_NEW(ev, pairs, args->n_kw);
        memcpy(pairs, args->kw, args->n_kw * sizeof *pairs);
        TRY(tpl_new_dict(ev, pairs, args->n_kw, true, &values));
    } else {
        const struct list *l;
        TRY(tpl_new_list(ev, args->pos, args->n_pos, true, &l));
        values = v_tuple(l);
    }
    return tpl_percent(ev, s, &values, out);
}

const struct filter text_filters[] = {
    {"trim", "chars", 0, f_trim, NULL},
    {"upper", "", 0, f_upper, NULL},
    {"lower", "", 0, f_lower, NULL},
    {"capitalize", "", 0, f_capitalize, NULL},
    {"title", "", 0, f_title, NULL},
    {"replace", "old new count", 2, f_replace, NULL},
    {"indent", "width first blank", 0, f_indent, NULL},
    {"center", "width", 0, f_center, NULL},
    {"escape", "", 0, f_escape, NULL},
    {"e", "", 0, f_escape, NULL},
    {"forceescape", "", 0, f_escape, NULL},
    {"truncate", "length killwords end leeway", 0, f_truncate, NULL},
    {"wordcount", "", 0, f_wordcount, NULL},
    {"format", NULL, 0, NULL, f_format},
    {0},
};
