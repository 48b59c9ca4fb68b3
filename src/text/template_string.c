/* Strings out of strings: parts, joins, replacements. Every byte keeps its origin. */
#include <string.h>

#include "base/utf8.h"
#include "text/template_eval.h"
#include "text/template_text.h"

sumi_status tpl_sub(struct eval *ev, const struct str *s, size_t from, size_t n,
                    struct value *out) {
    if (n == s->n) {
        *out = v_str(s);
        return SUMI_OK;
    }
    return tpl_str(ev, s->p + from, n, s->mask ? s->mask + from : NULL, s->trusted, out);
}

sumi_status tpl_concat(struct eval *ev, const struct str *a, const struct str *b,
                       struct value *out) {
    size_t mark = tpl_mark(ev);
    if (!a->n || !b->n) {
        *out = v_str(a->n ? a : b);
        return SUMI_OK;
    }
    TRY(tpl_put_str(ev, a, 0, a->n));
    TRY(tpl_put_str(ev, b, 0, b->n));
    return tpl_take(ev, mark, out);
}

size_t tpl_find(const struct str *s, size_t from, size_t to, const struct str *what) {
    if (from > to || what->n > to - from) return SIZE_MAX;
    if (!what->n) return from;
    const char *at = memmem(s->p + from, to - from, what->p, what->n);
    return at ? (size_t)(at - s->p) : SIZE_MAX;
}

size_t tpl_find_last(const struct str *s, size_t from, size_t to, const struct str *what) {
    if (from > to || what->n > to - from) return SIZE_MAX;
    for (size_t at = to - what->n;; at--) {
        if (!what->n || memcmp(s->p + at, what->p, what->n) == 0) return at;
        if (at == from) return SIZE_MAX;
    }
}

static bool in_set(const struct str *s, size_t at, size_t n, const struct str *chars) {
    if (!chars) return tpl_space(s->p + at, n) != 0;
    return memmem(chars->p, chars->n, s->p + at, n) != NULL;
}

sumi_status tpl_strip(struct eval *ev, const struct str *s, const struct str *chars, enum side side,
                      struct value *out) {
    size_t from = 0, to = s->n;
    size_t cost = chars ? 1 + chars->n / 256 : 0; /* of one character against the set */
    TRY(tpl_charge(ev, s->n / 256));
    while (side & SIDE_LEFT && from < to && in_set(s, from, tpl_char_len(s->p[from]), chars)) {
        TRY(tpl_charge(ev, cost));
        from += tpl_char_len(s->p[from]);
    }
    while (side & SIDE_RIGHT && from < to) {
        TRY(tpl_charge(ev, cost));
        size_t at = to - 1;
        while (at > from && (s->p[at] & 0xC0) == 0x80) at--;
        if (!in_set(s, at, to - at, chars)) break;
        to = at;
    }
    return tpl_sub(ev, s, from, to - from, out);
}

static sumi_status push_sub(struct eval *ev, struct vec *parts, const struct str *s, size_t from,
                            size_t to) {
    struct value part;
    TRY(tpl_charge(ev, 1));
    TRY(tpl_sub(ev, s, from, to - from, &part));
    return tpl_push(ev, parts, part);
}

static sumi_status finish_split(struct eval *ev, struct vec *parts, bool reversed, bool trusted,
                                struct value *out) {
    const struct list *l;
    for (size_t i = 0; reversed && i < parts->n / 2; i++) {
        struct value swap = parts->v[i];
        parts->v[i] = parts->v[parts->n - 1 - i];
        parts->v[parts->n - 1 - i] = swap;
    }
    TRY(tpl_new_list(ev, parts->v, parts->n, trusted, &l));
    *out = v_list(l);
    return SUMI_OK;
}

/* Words; the last of max splits keeps the white space behind it. */
static sumi_status split_words(struct eval *ev, const struct str *s, int64_t max,
                               struct vec *parts) {
    size_t at = tpl_space_left(s->p, s->n);
    while (at < s->n) {
        if (max >= 0 && (int64_t)parts->n >= max) return push_sub(ev, parts, s, at, s->n);
        size_t end = at;
        while (end < s->n && !tpl_space(s->p + end, s->n - end)) end += tpl_char_len(s->p[end]);
        TRY(push_sub(ev, parts, s, at, end));
        at = end + tpl_space_left(s->p + end, s->n - end);
    }
    return SUMI_OK;
}

static sumi_status split_words_right(struct eval *ev, const struct str *s, int64_t max,
                                     struct vec *parts) {
    size_t end = s->n - tpl_space_right(s->p, s->n);
    while (end) {
        if (max >= 0 && (int64_t)parts->n >= max) return push_sub(ev, parts, s, 0, end);
        size_t at = end;
        while (at) {
            size_t before = at - 1;
            while (before && (s->p[before] & 0xC0) == 0x80) before--;
            if (tpl_space(s->p + before, at - before)) break;
            at = before;
        }
        TRY(push_sub(ev, parts, s, at, end));
        end = at - tpl_space_right(s->p, at);
    }
    return SUMI_OK;
}

sumi_status tpl_split(struct eval *ev, const struct str *s, const struct str *sep, int64_t max,
                      bool from_right, struct value *out) {
    struct vec parts = {0};
    bool trusted = !s->mask && s->trusted;
    TRY(tpl_charge(ev, s->n / 64 * (from_right && sep ? 1 + sep->n / 64 : 1)));
    if (sep && !sep->n) return tpl_fail(ev, "split: an empty separator");
    if (!sep) {
        TRY(from_right ? split_words_right(ev, s, max, &parts) : split_words(ev, s, max, &parts));
        return finish_split(ev, &parts, from_right, trusted, out);
    }
    size_t from = 0, to = s->n;
    while (max < 0 || (int64_t)parts.n < max) {
        size_t at = from_right ? tpl_find_last(s, 0, to, sep) : tpl_find(s, from, s->n, sep);
        if (at == SIZE_MAX) break;
        TRY(push_sub(ev, &parts, s, from_right ? at + sep->n : from, from_right ? to : at));
        from = at + sep->n;
        to = at;
    }
    TRY(push_sub(ev, &parts, s, from_right ? 0 : from, from_right ? to : s->n));
    return finish_split(ev, &parts, from_right, trusted, out);
}

sumi_status tpl_splitlines(struct eval *ev, const struct str *s, bool keep, struct value *out) {
    struct vec parts = {0};
    size_t from = 0;
    TRY(tpl_charge(ev, s->n / 64));
    for (size_t i = 0; i < s->n;) {
        size_t n = tpl_line_break(s->p + i, s->n - i);
        if (!n) {
            i += tpl_char_len(s->p[i]);
            continue;
        }
        TRY(push_sub(ev, &parts, s, from, keep ? i + n : i));
        from = i += n;
    }
    if (from < s->n) TRY(push_sub(ev, &parts, s, from, s->n));
    return finish_split(ev, &parts, false, !s->mask && s->trusted, out);
}

/* An empty `old` stands before every character and at the end. */
static sumi_status replace_empty(struct eval *ev, const struct str *s, const struct str *with,
                                 int64_t max, struct value *out) {
    size_t mark = tpl_mark(ev), at = 0;
    for (int64_t done = 0; max < 0 || done < max; done++) {
        TRY(tpl_charge(ev, 1));
        TRY(tpl_put_str(ev, with, 0, with->n));
        if (at == s->n) return tpl_take(ev, mark, out);
        TRY(tpl_put_str(ev, s, at, tpl_char_len(s->p[at])));
        at += tpl_char_len(s->p[at]);
    }
    TRY(tpl_put_str(ev, s, at, s->n - at));
    return tpl_take(ev, mark, out);
}

sumi_status tpl_replace(struct eval *ev, const struct str *s, const struct str *old,
                        const struct str *with, int64_t max, struct value *out) {
    TRY(tpl_charge(ev, s->n / 64));
    if (!old->n) return replace_empty(ev, s, with, max, out);
    size_t mark = tpl_mark(ev), from = 0;
    for (int64_t done = 0; max < 0 || done < max; done++) {
        size_t at = tpl_find(s, from, s->n, old);
        if (at == SIZE_MAX) break;
        TRY(tpl_charge(ev, 1));
        TRY(tpl_put_str(ev, s, from, at - from));
        TRY(tpl_put_str(ev, with, 0, with->n));
        from = at + old->n;
    }
    if (!from) {
        *out = v_str(s);
        return SUMI_OK;
    }
    TRY(tpl_put_str(ev, s, from, s->n - from));
    return tpl_take(ev, mark, out);
}

sumi_status tpl_join(struct eval *ev, const struct str *sep, const struct value *items, bool strict,
                     struct value *out) {
    struct iter it = {0};
    struct value v;
    bool more;
    size_t mark = tpl_mark(ev);
    TRY(tpl_iter(ev, items, &it));
    for (bool first = true;; first = false) {
        TRY(tpl_next(ev, &it, &v, &more));
        if (!more) break;
        if (!first) TRY(tpl_put_str(ev, sep, 0, sep->n));
        if (strict && v.kind != V_STR)
            return tpl_fail(ev, "join: expected strings, found %s", tpl_type_name(&v));
        TRY(tpl_print(ev, &v));
    }
    return tpl_take(ev, mark, out);
}

sumi_status tpl_pad(struct eval *ev, const struct str *s, const struct str *with, int64_t n,
                    int share, struct value *out) {
    size_t mark = tpl_mark(ev);
    /* CPython's center puts the odd one left if the width is odd. */
    int64_t left = share == 2 ? n : share == 0 ? 0 : n / 2 + (n & (n + (int64_t)s->chars) & 1);
    TRY(tpl_repeat(ev, with, left));
    TRY(tpl_put_str(ev, s, 0, s->n));
    TRY(tpl_repeat(ev, with, n - left));
    return tpl_take(ev, mark, out);
}

/* A short run of output of one origin. */
struct run {
    char text[256];
    size_t n;
    bool trusted;
};

static sumi_status flush(struct eval *ev, struct run *r) {
    size_t n = r->n;
    r->n = 0;
    return tpl_put(ev, r->text, n, r->trusted);
}

/* Maps the character c; `begin`: first of the string or word; `before`, `after`: cased neighbours.
 */
static int map_case(uint32_t c, enum case_kind kind, bool begin, bool before, bool after,
                    uint32_t out[3]) {
    bool final = before && !after;
    switch (kind) {
    case CASE_UPPER: return tpl_upper(c, out);
    case CASE_LOWER: return tpl_lower(c, final, out);
    case CASE_CAPITAL: return begin ? tpl_title(c, out) : tpl_lower(c, final, out);
    case CASE_TITLE: return before ? tpl_lower(c, final, out) : tpl_title(c, out);
    case CASE_TITLE_FILTER: return begin ? tpl_upper(c, out) : tpl_lower(c, final, out);
    case CASE_SWAP:
        if (tpl_char_is(c, CHAR_UPPER)) return tpl_lower(c, final, out);
        if (tpl_char_is(c, CHAR_LOWER)) return tpl_upper(c, out);
        break;
    }
    out[0] = c;
    return 1;
}

/* Words of the title filter begin behind white space and - ( { [ <. */
static bool breaks_word(const char *p, size_t n) {
    return tpl_space(p, n) || (*p && strchr("-({[<", *p));
}

sumi_status tpl_case(struct eval *ev, const struct str *s, enum case_kind kind, struct value *out) {
    struct run run = {0};
    size_t mark = tpl_mark(ev);
    bool begin = true, before = false;
    TRY(tpl_charge(ev, s->n / 4));
    for (size_t i = 0; i < s->n;) {
        size_t n = tpl_char_len(s->p[i]);
        uint32_t c = tpl_char(s->p + i), mapped[3];
        bool after = c == 0x3A3 && i + n < s->n && tpl_cased(tpl_char(s->p + i + n));
        int k = map_case(c, kind, begin, before, after, mapped);
        if (run.n && (run.trusted != str_trust(s, i) || run.n > sizeof run.text - 12))
            TRY(flush(ev, &run));
        run.trusted = str_trust(s, i);
        for (int j = 0; j < k; j++) run.n += (size_t)utf8_encode(mapped[j], run.text + run.n);
        /* The title filter maps the rest of a word by itself, so its first letter is no neighbour.
         */
        before = tpl_cased(c) && !(kind == CASE_TITLE_FILTER && begin);
        begin = kind == CASE_TITLE_FILTER && breaks_word(s->p + i, n);
        i += n;
    }
    TRY(flush(ev, &run));
    return tpl_take(ev, mark, out);
}
