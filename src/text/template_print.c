/* Values as text: what Python's str() and repr() give. Strings keep their origin; brackets, quotes
 * and numbers have that of their container. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "text/template_eval.h"
#include "text/template_text.h"

static sumi_status put_text(struct eval *ev, const char *text, bool trusted) {
    return tpl_put(ev, text, strlen(text), trusted);
}

static sumi_status put_int(struct eval *ev, int64_t i, bool trusted) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, i);
    return put_text(ev, text, trusted);
}

sumi_status tpl_put_double(struct eval *ev, double d, bool json, bool trusted) {
    if (isnan(d)) return put_text(ev, json ? "NaN" : "nan", trusted);
    if (isinf(d)) {
        if (d < 0) TRY(put_text(ev, "-", trusted));
        return put_text(ev, json ? "Infinity" : "inf", trusted);
    }
    struct buf b = {0};
    json_put_double(&b, d);
    sumi_status status =
        b.failed ? NO_MEMORY(ev->err, b.len) : tpl_put(ev, buf_text(&b), b.len, trusted);
    buf_reset(&b);
    return status;
}

static sumi_status put_escape(struct eval *ev, uint32_t c, bool trusted) {
    char text[16];
    const char *at = c && c < 0x80 ? strchr("\n\r\t", (int)c) : NULL;
    if (at) snprintf(text, sizeof text, "\\%c", "nrt"[at - strchr("\n\r\t", '\n')]);
    else if (c < 0x100) snprintf(text, sizeof text, "\\x%02x", c);
    else snprintf(text, sizeof text, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    return put_text(ev, text, trusted);
}

static sumi_status repr_string(struct eval *ev, const struct str *s, bool trusted) {
    char quote = memchr(s->p, '\'', s->n) && !memchr(s->p, '"', s->n) ? '"' : '\'';
    size_t from = 0;
    TRY(tpl_put(ev, &quote, 1, trusted));
    for (size_t i = 0; i < s->n;) {
        size_t n = tpl_char_len(s->p[i]);
        uint32_t c = tpl_char(s->p + i);
        bool plain = tpl_printable(c) && c != '\\' && c != (uint32_t)quote;
        if (!plain) {
            TRY(tpl_put_str(ev, s, from, i - from));
            from = i + n;
            if (c == '\\' || c == (uint32_t)quote) {
                TRY(tpl_put(ev, "\\", 1, str_trust(s, i)));
                TRY(tpl_put_str(ev, s, i, 1));
            } else {
                TRY(put_escape(ev, c, str_trust(s, i)));
            }
        }
        i += n;
    }
    TRY(tpl_put_str(ev, s, from, s->n - from));
    return tpl_put(ev, &quote, 1, trusted);
}

static sumi_status repr_list(struct eval *ev, const struct list *l, const char *brackets,
                             int depth) {
    TRY(tpl_put(ev, brackets, 1, l->trusted));
    for (size_t i = 0; i < l->n; i++) {
        if (i) TRY(put_text(ev, ", ", l->trusted));
        TRY(tpl_repr(ev, &l->v[i], l->trusted, depth + 1));
    }
    if (*brackets == '(' && l->n == 1) TRY(put_text(ev, ",", l->trusted));
    return tpl_put(ev, brackets + 1, 1, l->trusted);
}

static sumi_status repr_pairs(struct eval *ev, const struct pair *pairs, size_t n, bool trusted,
                              int depth) {
    TRY(put_text(ev, "{", trusted));
    for (size_t i = 0; i < n; i++) {
        if (i) TRY(put_text(ev, ", ", trusted));
        TRY(tpl_repr(ev, &pairs[i].key, trusted, depth + 1));
        TRY(put_text(ev, ": ", trusted));
        TRY(tpl_repr(ev, &pairs[i].value, trusted, depth + 1));
    }
    return put_text(ev, "}", trusted);
}

static sumi_status repr_view(struct eval *ev, const struct value *v, int depth) {
    static const char *const names[] = {"dict_keys(", "dict_values(", "dict_items("};
    TRY(put_text(ev, names[v->sub], v->list->trusted));
    TRY(repr_list(ev, v->list, "[]", depth));
    return put_text(ev, ")", v->list->trusted);
}

static sumi_status repr_range(struct eval *ev, const struct range *r, bool trusted) {
    char text[96];
    int n = snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64, r->start, r->stop);
    if (r->step != 1) snprintf(text + n, sizeof text - (size_t)n, ", %" PRId64, r->step);
    TRY(put_text(ev, text, trusted));
    return put_text(ev, ")", trusted);
}

static sumi_status repr_macro(struct eval *ev, const struct macro *m) {
    const struct str *name = m->node->kind == N_MACRO ? m->node->name->s : NULL;
    if (!name) return put_text(ev, "<Macro anonymous>", true);
    TRY(put_text(ev, "<Macro ", true));
    TRY(repr_string(ev, name, true));
    return put_text(ev, ">", true);
}

sumi_status tpl_repr(struct eval *ev, const struct value *v, bool trusted, int depth) {
    TRY(tpl_charge(ev, 1));
    if (depth > ev->limits.max_depth)
        return tpl_limit(ev, "values nested over %d", ev->limits.max_depth);
    switch (v->kind) {
    case V_UNDEF: return put_text(ev, "Undefined", trusted);
    case V_NONE: return put_text(ev, "None", trusted);
    case V_BOOL: return put_text(ev, v->sub ? "True" : "False", trusted);
    case V_INT: return put_int(ev, v->i, trusted);
    case V_BIG: return tpl_put(ev, v->s->p, v->s->n, trusted);
    case V_FLOAT: return tpl_put_double(ev, v->d, false, trusted);
    case V_STR: return repr_string(ev, v->s, trusted);
    case V_LIST: return repr_list(ev, v->list, "[]", depth);
    case V_TUPLE: return repr_list(ev, v->list, "()", depth);
    case V_DICT: return repr_pairs(ev, v->dict->pairs, v->dict->n, v->dict->trusted, depth);
    case V_VIEW: return repr_view(ev, v, depth);
    case V_RANGE: return repr_range(ev, v->range, trusted);
    case V_NS:
        TRY(put_text(ev, "<Namespace ", true));
        TRY(repr_pairs(ev, v->ns->pairs, v->ns->n, true, depth));
        return put_text(ev, ">", true);
    case V_MACRO: return repr_macro(ev, v->macro);
    default:
        /* Python prints the address of the object. */
        return tpl_fail(ev, "a %s cannot be printed", tpl_type_name(v));
    }
}

sumi_status tpl_print(struct eval *ev, const struct value *v) {
    if (v->kind == V_STR) return tpl_put_str(ev, v->s, 0, v->s->n);
    if (v->kind == V_UNDEF) return SUMI_OK;
    return tpl_repr(ev, v, true, 0);
}

sumi_status tpl_to_str(struct eval *ev, const struct value *v, const struct str **out) {
    struct value text;
    if (v->kind == V_STR) {
        *out = v->s;
        return SUMI_OK;
    }
    size_t mark = tpl_mark(ev);
    TRY(tpl_print(ev, v));
    TRY(tpl_take(ev, mark, &text));
    *out = text.s;
    return SUMI_OK;
}
