/* The methods of strings. Positions are in characters, as in Python. */
#include <string.h>

#include "text/template_eval.h"
#include "text/template_text.h"

typedef const struct value *arg_t;

#define METHOD(name)                                                                      \
    static sumi_status name(TPL_UNUSED struct eval *ev, arg_t self, TPL_UNUSED arg_t arg, \
                            struct value *out)

static bool given(arg_t v) {
    return v->kind != V_ABSENT && v->kind != V_NONE;
}

static sumi_status opt_str(struct eval *ev, arg_t v, const char *what, const struct str **out) {
    *out = NULL;
    return given(v) ? tpl_need_str(ev, v, what, out) : SUMI_OK;
}

static sumi_status opt_int(struct eval *ev, arg_t v, const char *what, int64_t missing,
                           int64_t *out) {
    *out = missing;
    return given(v) ? tpl_need_int(ev, v, what, out) : SUMI_OK;
}

METHOD(m_upper) {
    return tpl_case(ev, self->s, CASE_UPPER, out);
}
METHOD(m_lower) {
    return tpl_case(ev, self->s, CASE_LOWER, out);
}
METHOD(m_title) {
    return tpl_case(ev, self->s, CASE_TITLE, out);
}
METHOD(m_capitalize) {
    return tpl_case(ev, self->s, CASE_CAPITAL, out);
}
METHOD(m_swapcase) {
    return tpl_case(ev, self->s, CASE_SWAP, out);
}

static sumi_status strip(struct eval *ev, arg_t self, arg_t arg, enum side side,
                         struct value *out) {
    const struct str *chars;
    TRY(opt_str(ev, arg, "strip", &chars));
    return tpl_strip(ev, self->s, chars, side, out);
}
METHOD(m_strip) {
    return strip(ev, self, arg, SIDE_BOTH, out);
}
METHOD(m_lstrip) {
    return strip(ev, self, arg, SIDE_LEFT, out);
}
METHOD(m_rstrip) {
    return strip(ev, self, arg, SIDE_RIGHT, out);
}

static sumi_status split(struct eval *ev, arg_t self, arg_t arg, bool right, struct value *out) {
    const struct str *sep;
    int64_t max;
    TRY(opt_str(ev, &arg[0], "split", &sep));
    TRY(opt_int(ev, &arg[1], "split", -1, &max));
    return tpl_split(ev, self->s, sep, max, right, out);
}
METHOD(m_split) {
    return split(ev, self, arg, false, out);
}
METHOD(m_rsplit) {
    return split(ev, self, arg, true, out);
}

METHOD(m_splitlines) {
    return tpl_splitlines(ev, self->s, tpl_truth(arg), out);
}

METHOD(m_replace) {
    const struct str *old, *with;
    int64_t max;
    TRY(tpl_need_str(ev, &arg[0], "replace", &old));
    TRY(tpl_need_str(ev, &arg[1], "replace", &with));
    TRY(opt_int(ev, &arg[2], "replace", -1, &max));
    return tpl_replace(ev, self->s, old, with, max, out);
}

METHOD(m_join) {
    return tpl_join(ev, self->s, arg, true, out);
}

static sumi_status remove_affix(struct eval *ev, const struct str *s, arg_t arg, bool prefix,
                                struct value *out) {
    const struct str *affix;
    TRY(tpl_need_str(ev, arg, "removeprefix", &affix));
    size_t rest = s->n - affix->n;
    bool has =
        affix->n <= s->n && affix->n && memcmp(s->p + (prefix ? 0 : rest), affix->p, affix->n) == 0;
    if (!has) return tpl_sub(ev, s, 0, s->n, out);
    return tpl_sub(ev, s, prefix ? affix->n : 0, rest, out);
}
METHOD(m_removeprefix) {
    return remove_affix(ev, self->s, arg, true, out);
}
METHOD(m_removesuffix) {
    return remove_affix(ev, self->s, arg, false, out);
}

static sumi_status partition(struct eval *ev, const struct str *s, arg_t arg, bool last,
                             struct value *out) {
    const struct str *sep;
    struct value *part;
    const struct list *l;
    TRY(tpl_need_str(ev, arg, "partition", &sep));
    if (!sep->n) return tpl_fail(ev, "partition: an empty separator");
    TRY(tpl_charge(ev, s->n / 64 * (1 + sep->n / 64)));
    TPL_NEW(ev, part, 3);
    size_t at = last ? tpl_find_last(s, 0, s->n, sep) : tpl_find(s, 0, s->n, sep);
    bool found = at != SIZE_MAX;
    size_t left = found ? at : last ? 0 : s->n;
    size_t right = found ? at + sep->n : left;
    TRY(tpl_sub(ev, s, 0, left, &part[0]));
    TRY(tpl_sub(ev, s, left, right - left, &part[1]));
    TRY(tpl_sub(ev, s, right, s->n - right, &part[2]));
    TRY(tpl_new_list(ev, part, 3, !s->mask && s->trusted, &l));
    *out = v_tuple(l);
    return SUMI_OK;
}
METHOD(m_partition) {
    return partition(ev, self->s, arg, false, out);
}
METHOD(m_rpartition) {
    return partition(ev, self->s, arg, true, out);
}

/* The optional start and end of a search, from characters to bytes; *from > *to: finds nothing. */
static sumi_status bounds(struct eval *ev, const struct str *s, arg_t start, arg_t end,
                          size_t *from, size_t *to) {
    int64_t n = (int64_t)s->chars, a, b;
    TRY(opt_int(ev, start, "start", 0, &a));
    TRY(opt_int(ev, end, "end", n, &b));
    if (s->chars != s->n) TRY(tpl_charge(ev, s->n / 64));
    if (a < 0) a = a < -n ? 0 : a + n;
    if (b < 0) b = b < -n ? 0 : b + n;
    if (b > n) b = n;
    *to = str_offset(s, (size_t)b);
    *from = a > n ? SIZE_MAX : str_offset(s, (size_t)a);
    return SUMI_OK;
}

static sumi_status search(struct eval *ev, const struct str *s, arg_t arg, bool last, bool must,
                          struct value *out) {
    const struct str *what;
    size_t from, to;
    TRY(tpl_need_str(ev, &arg[0], "find", &what));
    TRY(bounds(ev, s, &arg[1], &arg[2], &from, &to));
    TRY(tpl_charge(ev, s->n / 64 * (1 + what->n / 64)));
    size_t at = last ? tpl_find_last(s, from, to, what) : tpl_find(s, from, to, what);
    if (at == SIZE_MAX && must) return tpl_fail(ev, "index: the substring is not there");
    *out = v_int(at == SIZE_MAX ? -1 : (int64_t)tpl_chars(s->p, at));
    return SUMI_OK;
}
METHOD(m_find) {
    return search(ev, self->s, arg, false, false, out);
}
METHOD(m_rfind) {
    return search(ev, self->s, arg, true, false, out);
}
METHOD(m_index) {
    return search(ev, self->s, arg, false, true, out);
}
METHOD(m_rindex) {
    return search(ev, self->s, arg, true, true, out);
}

METHOD(m_count) {
    const struct str *s = self->s, *what;
    size_t from, to;
    int64_t n = 0;
    TRY(tpl_need_str(ev, &arg[0], "count", &what));
    TRY(bounds(ev, s, &arg[1], &arg[2], &from, &to));
    TRY(tpl_charge(ev, s->n / 64));
    if (!what->n) n = from <= to ? (int64_t)tpl_chars(s->p + from, to - from) + 1 : 0;
    for (; what->n && (from = tpl_find(s, from, to, what)) != SIZE_MAX; from += what->n) n++;
    *out = v_int(n);
    return SUMI_OK;
}

static sumi_status affix(struct eval *ev, const struct str *s, arg_t arg, bool prefix,
                         struct value *out) {
    const struct value *one = &arg[0];
    size_t from, to, n = 1;
    TRY(bounds(ev, s, &arg[1], &arg[2], &from, &to));
    if (arg[0].kind == V_TUPLE) {
        one = arg[0].list->v;
        n = arg[0].list->n;
    }
    bool found = false;
    for (size_t i = 0; i < n && !found; i++) {
        const struct str *what;
        TRY(tpl_charge(ev, 1));
        TRY(tpl_need_str(ev, &one[i], "startswith", &what));
        found = from <= to && what->n <= to - from &&
                (!what->n || !memcmp(s->p + (prefix ? from : to - what->n), what->p, what->n));
    }
    *out = v_bool(found);
    return SUMI_OK;
}
METHOD(m_startswith) {
    return affix(ev, self->s, arg, true, out);
}
METHOD(m_endswith) {
    return affix(ev, self->s, arg, false, out);
}

/* All characters of a class, and at least one. */
static sumi_status all_are(struct eval *ev, const struct str *s, unsigned classes,
                           struct value *out) {
    bool all = s->n != 0;
    TRY(tpl_charge(ev, s->n / 8));
    for (size_t i = 0; all && i < s->n; i += tpl_char_len(s->p[i])) {
        uint32_t c = tpl_char(s->p + i);
        all = false;
        for (unsigned k = CHAR_ALPHA; k <= CHAR_LOWER; k++)
            if (classes >> k & 1) all |= tpl_char_is(c, (enum char_class)k);
    }
    *out = v_bool(all);
    return SUMI_OK;
}
METHOD(m_isalpha) {
    return all_are(ev, self->s, 1 << CHAR_ALPHA, out);
}
METHOD(m_isdigit) {
    return all_are(ev, self->s, 1 << CHAR_DIGIT, out);
}
METHOD(m_isdecimal) {
    return all_are(ev, self->s, 1 << CHAR_DECIMAL, out);
}
METHOD(m_isnumeric) {
    return all_are(ev, self->s, 1 << CHAR_NUMERIC, out);
}
METHOD(m_isalnum) {
    return all_are(ev, self->s, 1 << CHAR_ALPHA | 1 << CHAR_DIGIT | 1 << CHAR_NUMERIC, out);
}

METHOD(m_isspace) {
    TRY(tpl_charge(ev, self->s->n / 64));
    *out = v_bool(self->s->n && tpl_space_left(self->s->p, self->s->n) == self->s->n);
    return SUMI_OK;
}

METHOD(m_isascii) {
    *out = v_bool(self->s->chars == self->s->n);
    return SUMI_OK;
}

sumi_status tpl_is_case(struct eval *ev, const struct str *s, bool upper, bool *out) {
    bool any = false, wrong = false;
    TRY(tpl_charge(ev, s->n / 8));
    for (size_t i = 0; !wrong && i < s->n; i += tpl_char_len(s->p[i])) {
        uint32_t c = tpl_char(s->p + i);
        bool right = tpl_char_is(c, upper ? CHAR_UPPER : CHAR_LOWER);
        any |= right;
        wrong = !right && tpl_cased(c);
    }
    *out = any && !wrong;
    return SUMI_OK;
}
METHOD(m_isupper) {
    bool is;
    TRY(tpl_is_case(ev, self->s, true, &is));
    *out = v_bool(is);
    return SUMI_OK;
}
METHOD(m_islower) {
    bool is;
    TRY(tpl_is_case(ev, self->s, false, &is));
    *out = v_bool(is);
    return SUMI_OK;
}

/* Fills up to a width of characters; `share` of 2 is the part that goes left. */
static sumi_status fill(struct eval *ev, const struct str *s, arg_t arg, int share,
                        struct value *out) {
    static const struct str blank = {" ", 1, 1, NULL, true};
    const struct str *with = &blank;
    int64_t width, have = (int64_t)s->chars;
    TRY(tpl_need_int(ev, &arg[0], "width", &width));
    if (arg[1].kind != V_ABSENT) TRY(tpl_need_str(ev, &arg[1], "fill character", &with));
    if (with->chars != 1) return tpl_fail(ev, "the fill must be one character");
    if (width < have) width = have;
    return tpl_pad(ev, s, with, width - have, share, out);
}
METHOD(m_center) {
    return fill(ev, self->s, arg, 1, out);
}
METHOD(m_ljust) {
    return fill(ev, self->s, arg, 0, out);
}
METHOD(m_rjust) {
    return fill(ev, self->s, arg, 2, out);
}

static sumi_status m_format(struct eval *ev, arg_t self, const struct args *args,
                            struct value *out) {
    return tpl_format(ev, self->s, args, out);
}

#define STR (1u << V_STR)

const struct method_info str_methods[] = {
    {"strip", STR, "chars", 0, m_strip, NULL},
    {"lstrip", STR, "chars", 0, m_lstrip, NULL},
    {"rstrip", STR, "chars", 0, m_rstrip, NULL},
    {"split", STR, "sep maxsplit", 0, m_split, NULL},
    {"rsplit", STR, "sep maxsplit", 0, m_rsplit, NULL},
    {"splitlines", STR, "keepends", 0, m_splitlines, NULL},
    {"startswith", STR, "prefix start end", 1, m_startswith, NULL},
    {"endswith", STR, "suffix start end", 1, m_endswith, NULL},
    {"replace", STR, "old new count", 2, m_replace, NULL},
    {"join", STR, "iterable", 1, m_join, NULL},
    {"find", STR, "sub start end", 1, m_find, NULL},
    {"rfind", STR, "sub start end", 1, m_rfind, NULL},
    {"index", STR, "sub start end", 1, m_index, NULL},
    {"rindex", STR, "sub start end", 1, m_rindex, NULL},
    {"count", STR, "sub start end", 1, m_count, NULL},
    {"partition", STR, "sep", 1, m_partition, NULL},
    {"rpartition", STR, "sep", 1, m_rpartition, NULL},
    {"removeprefix", STR, "prefix", 1, m_removeprefix, NULL},
    {"removesuffix", STR, "suffix", 1, m_removesuffix, NULL},
    {"upper", STR, "", 0, m_upper, NULL},
    {"lower", STR, "", 0, m_lower, NULL},
    {"title", STR, "", 0, m_title, NULL},
    {"capitalize", STR, "", 0, m_capitalize, NULL},
    {"swapcase", STR, "", 0, m_swapcase, NULL},
    {"isalpha", STR, "", 0, m_isalpha, NULL},
    {"isdigit", STR, "", 0, m_isdigit, NULL},
    {"isdecimal", STR, "", 0, m_isdecimal, NULL},
    {"isnumeric", STR, "", 0, m_isnumeric, NULL},
    {"isalnum", STR, "", 0, m_isalnum, NULL},
    {"isspace", STR, "", 0, m_isspace, NULL},
    {"isascii", STR, "", 0, m_isascii, NULL},
    {"isupper", STR, "", 0, m_isupper, NULL},
    {"islower", STR, "", 0, m_islower, NULL},
    {"center", STR, "width fillchar", 1, m_center, NULL},
    {"ljust", STR, "width fillchar", 1, m_ljust, NULL},
    {"rjust", STR, "width fillchar", 1, m_rjust, NULL},
    {"format", STR, NULL, 0, NULL, m_format},
};
const size_t n_str_methods = sizeof str_methods / sizeof *str_methods;
