/* The filter tojson: Python's json.dumps with the options that transformers passes on. A string
 * keeps its origin, everything else has that of its container. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "text/template_eval.h"
#include "text/template_text.h"

struct writer {
    struct eval *ev;
    const struct str *item_sep, *key_sep;
    const struct str *indent; /* one level; NULL: a single line */
    bool ascii, sort;
};

static sumi_status put_text(struct writer *w, const char *text, bool trusted) {
    return tpl_put(w->ev, text, strlen(text), trusted);
}

/* Bytes of s from `from` on that have one origin. */
static size_t run_of(const struct str *s, size_t from) {
    if (!s->mask) return s->n - from;
    const void *end = memchr(s->mask + from, !s->mask[from], s->n - from);
    return end ? (size_t)((const uint8_t *)end - s->mask) - from : s->n - from;
}

static sumi_status put_ascii(struct writer *w, const struct str *s, size_t from, size_t n) {
    char text[16];
    for (size_t i = from; i < from + n;) {
        size_t k = tpl_char_len(s->p[i]);
        uint32_t c = tpl_char(s->p + i);
        if (c < 0x10000) snprintf(text, sizeof text, "\\u%04x", c);
        else
            snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800 + (c - 0x10000) / 0x400,
                     0xDC00 + (c - 0x10000) % 0x400);
        TRY(put_text(w, text, str_trust(s, from)));
        i += k;
    }
    return SUMI_OK;
}

static sumi_status put_string(struct writer *w, const struct str *s, bool trusted) {
    struct buf b = {0};
    sumi_status status = tpl_charge(w->ev, s->n / 4);
    if (status == SUMI_OK) status = put_text(w, "\"", trusted);
    for (size_t i = 0, n; status == SUMI_OK && i < s->n; i += n) {
        n = run_of(s, i);
        if (w->ascii) { /* cut where ASCII and the rest meet */
            bool high = (unsigned char)s->p[i] >= 0x7F;
            size_t k = 1;
            while (k < n && high == ((unsigned char)s->p[i + k] >= 0x7F)) k++;
            n = k;
            if (high) {
                status = put_ascii(w, s, i, n);
                continue;
            }
        }
        buf_clear(&b);
        json_put_escaped(&b, s->p + i, n);
        status = b.failed ? NO_MEMORY(w->ev->err, n)
                          : tpl_put(w->ev, buf_text(&b), b.len, str_trust(s, i));
    }
    buf_reset(&b);
    return status == SUMI_OK ? put_text(w, "\"", trusted) : status;
}

/* A separator or an indentation, as trusted as the container it stands in. */
static sumi_status put_between(struct writer *w, const struct str *s, bool trusted) {
    return trusted ? tpl_put_str(w->ev, s, 0, s->n) : tpl_put(w->ev, s->p, s->n, false);
}

static sumi_status put_indent(struct writer *w, int depth, bool trusted) {
    if (!w->indent) return SUMI_OK;
    TRY(put_text(w, "\n", trusted));
    for (int i = 0; i < depth; i++) TRY(put_between(w, w->indent, trusted));
    return SUMI_OK;
}

static sumi_status put_value(struct writer *w, const struct value *v, bool trusted, int depth);

static sumi_status put_list(struct writer *w, const struct list *l, int depth) {
    if (!l->n) return put_text(w, "[]", l->trusted);
    TRY(put_text(w, "[", l->trusted));
    for (size_t i = 0; i < l->n; i++) {
        if (i) TRY(put_between(w, w->item_sep, l->trusted));
        TRY(put_indent(w, depth + 1, l->trusted));
        TRY(put_value(w, &l->v[i], l->trusted, depth + 1));
    }
    TRY(put_indent(w, depth, l->trusted));
    return put_text(w, "]", l->trusted);
}

static sumi_status put_scalar(struct writer *w, const struct value *v, bool trusted) {
    char text[32];
    switch (v->kind) {
    case V_NONE: return put_text(w, "null", trusted);
    case V_BOOL: return put_text(w, v->sub ? "true" : "false", trusted);
    case V_INT: snprintf(text, sizeof text, "%" PRId64, v->i); return put_text(w, text, trusted);
    case V_BIG: return tpl_put(w->ev, v->s->p, v->s->n, trusted);
    case V_FLOAT: return tpl_put_double(w->ev, v->d, true, trusted);
    default: return tpl_fail(w->ev, "a %s cannot be written as JSON", tpl_type_name(v));
    }
}

static sumi_status put_key(struct writer *w, const struct value *key, bool trusted) {
    if (key->kind == V_STR) return put_string(w, key->s, trusted);
    TRY(put_text(w, "\"", trusted));
    TRY(put_scalar(w, key, trusted));
    return put_text(w, "\"", trusted);
}

/* The pairs, sorted by key if asked for. */
static sumi_status pairs_of(struct writer *w, const struct dict *d, const struct pair **out) {
    *out = d->pairs;
    if (!w->sort || d->n < 2) return SUMI_OK;
    struct value *keys, *order;
    struct pair *sorted;
    TPL_NEW(w->ev, keys, d->n);
    TPL_NEW(w->ev, order, d->n);
    TPL_NEW(w->ev, sorted, d->n);
    for (size_t i = 0; i < d->n; i++) {
        keys[i] = d->pairs[i].key;
        order[i] = v_int((int64_t)i);
    }
    TRY(tpl_sort(w->ev, order, keys, d->n, false));
    for (size_t i = 0; i < d->n; i++) sorted[i] = d->pairs[order[i].i];
    *out = sorted;
    return SUMI_OK;
}

static sumi_status put_dict(struct writer *w, const struct dict *d, int depth) {
    const struct pair *pairs;
    if (!d->n) return put_text(w, "{}", d->trusted);
    TRY(pairs_of(w, d, &pairs));
    TRY(put_text(w, "{", d->trusted));
    for (size_t i = 0; i < d->n; i++) {
        if (i) TRY(put_between(w, w->item_sep, d->trusted));
        TRY(put_indent(w, depth + 1, d->trusted));
        TRY(put_key(w, &pairs[i].key, d->trusted));
        TRY(put_between(w, w->key_sep, d->trusted));
        TRY(put_value(w, &pairs[i].value, d->trusted, depth + 1));
    }
    TRY(put_indent(w, depth, d->trusted));
    return put_text(w, "}", d->trusted);
}

static sumi_status put_value(struct writer *w, const struct value *v, bool trusted, int depth) {
    TRY(tpl_charge(w->ev, 1));
    if (depth > w->ev->limits.max_depth)
        return tpl_limit(w->ev, "values nested over %d", w->ev->limits.max_depth);
    switch (v->kind) {
    case V_STR: return put_string(w, v->s, trusted);
    case V_LIST:
    case V_TUPLE: return put_list(w, v->list, depth);
    case V_DICT: return put_dict(w, v->dict, depth);
    default: return put_scalar(w, v, trusted);
    }
}

/* indent: a number of blanks or a string. */
static sumi_status read_indent(struct writer *w, const struct value *v) {
    static const struct str blank = {" ", 1, 1, NULL, true};
    struct value text;
    size_t mark = tpl_mark(w->ev);
    if (v->kind == V_ABSENT || v->kind == V_NONE) return SUMI_OK;
    if (v->kind == V_STR) {
        w->indent = v->s;
        return SUMI_OK;
    }
    int64_t n;
    TRY(tpl_need_int(w->ev, v, "indent", &n));
    TRY(tpl_repeat(w->ev, &blank, n));
    TRY(tpl_take(w->ev, mark, &text));
    w->indent = text.s;
    return SUMI_OK;
}

static sumi_status read_separators(struct writer *w, const struct value *v) {
    static const struct str comma = {",", 1, 1, NULL, true};
    static const struct str comma_blank = {", ", 2, 2, NULL, true};
    static const struct str colon_blank = {": ", 2, 2, NULL, true};
    w->item_sep = w->indent ? &comma : &comma_blank;
    w->key_sep = &colon_blank;
    if (v->kind == V_ABSENT || v->kind == V_NONE) return SUMI_OK;
    if ((v->kind != V_TUPLE && v->kind != V_LIST) || v->list->n != 2)
        return tpl_fail(w->ev, "tojson: separators must be a pair of strings");
    TRY(tpl_need_str(w->ev, &v->list->v[0], "separators", &w->item_sep));
    return tpl_need_str(w->ev, &v->list->v[1], "separators", &w->key_sep);
}

sumi_status tpl_json(struct eval *ev, const struct value *v, const struct value *options,
                     struct value *out) {
    struct writer w = {.ev = ev, .ascii = tpl_truth(&options[0]), .sort = tpl_truth(&options[3])};
    TRY(read_indent(&w, &options[1]));
    TRY(read_separators(&w, &options[2]));
    size_t mark = tpl_mark(ev);
    TRY(put_value(&w, v, true, 0));
    return tpl_take(ev, mark, out);
}
