/* Config files: a small subset of YAML. In comes text, out go the same (row, value) pairs that a
 * command line makes. Known are "key: value" lines, lists as "- item" lines or [a, b], quoted and
 * plain scalars, comments, and inline {...} for options that take JSON; everything else YAML has is
 * refused by name. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/option_impl.h"

struct reader {
    const char *at, *end, *what;
    int line;
};

struct entry {
    char *key;
    char **item; /* [n] */
    size_t n;
    bool is_list, is_null, inline_json;
    int line;
};

static void entry_reset(struct entry *e) {
    mem_free(e->key);
    for (size_t i = 0; i < e->n; i++) mem_free(e->item[i]);
    mem_free(e->item);
    *e = (struct entry){0};
}

static sumi_status bad_line(const struct reader *r, sumi_error *err, const char *why) {
    return fail_with(err, SUMI_ERR_FORMAT, "%s line %d: %s", r->what, r->line, why);
}

/* Next line with something on it, without its comment and trailing blanks; *indent counts leading
 * blanks. False at the end. A '#' inside quotes is no comment. */
static bool next_line(struct reader *r, const char **line, size_t *n, size_t *indent) {
    while (r->at < r->end) {
        const char *start = r->at, *eol = memchr(start, '\n', (size_t)(r->end - start));
        if (!eol) eol = r->end;
        r->at = eol < r->end ? eol + 1 : eol;
        r->line++;
        const char *p = start, *stop = eol;
        char quote = 0;
        for (; p < eol; p++) {
            if (quote == '"' && *p == '\\') p++;
            else if (quote) quote = *p == quote ? 0 : quote;
            else if ((*p == '"' || *p == '\'') && (p == start || strchr(" \t[{,:", p[-1])))
                quote = *p;
            else if (*p == '#' && (p == start || p[-1] == ' ' || p[-1] == '\t')) {
                stop = p;
                break;
            }
        }
        while (stop > start && strchr(" \t\r", stop[-1])) stop--;
        for (p = start; p < stop && *p == ' ';) p++;
        if (p == stop || (stop - start == 3 && memcmp(start, "---", 3) == 0)) continue;
        *indent = (size_t)(p - start);
        *line = p;
        *n = (size_t)(stop - p);
        return true;
    }
    return false;
}

static sumi_status push_item(struct entry *e, char *text, sumi_error *err) {
    char **list = text ? mem_resize(e->item, e->n + 1, sizeof *list) : NULL;
    if (!list) {
        mem_free(text);
        return NO_MEMORY(err, 64);
    }
    e->item = list;
    e->item[e->n++] = text;
    return SUMI_OK;
}

/* Reads a quoted scalar at s; *used is its length with quotes. */
static sumi_status quoted(const struct reader *r, struct entry *e, const char *s, size_t n,
                          size_t *used, sumi_error *err) {
    struct buf out = {0};
    size_t i = 1;
    for (; i < n; i++) {
        if (*s == '"' && s[i] == '\\' && i + 1 < n) {
            i++;
        } else if (s[i] == *s) {
            if (*s == '"' || i + 1 >= n || s[i + 1] != '\'') break;
            i++;
        }
        if (*s == '\'') buf_putc(&out, s[i]);
    }
    if (i >= n) {
        buf_reset(&out);
        return bad_line(r, err, "a quoted text does not end on its line");
    }
    *used = i + 1;
    if (*s == '\'') return push_item(e, buf_take(&out), err);
    struct json_object *o;
    if (json_parse(&o, s, i + 1, "", NULL) != SUMI_OK)
        return bad_line(r, err, "a text in double quotes must be written as in JSON");
    const char *text = json_object_get_string(o);
    sumi_status status = push_item(e, mem_string(text, strlen(text)), err);
    json_object_put(o);
    return status;
}

static sumi_status plain(const struct reader *r, struct entry *e, const char *s, size_t n,
                         sumi_error *err) {
    if (n && strchr("&*!|>%@`", *s)) {
        char why[96];
        snprintf(why, sizeof why,
                 "'%c' begins something that this subset of YAML lacks; quote the text", *s);
        return bad_line(r, err, why);
    }
    return push_item(e, mem_string(s, n), err);
}

/* [a, "b", c] */
static sumi_status inline_list(const struct reader *r, struct entry *e, const char *s, size_t n,
                               sumi_error *err) {
    if (s[n - 1] != ']') return bad_line(r, err, "a list in brackets must end on its line");
    size_t at = 1, end = n - 1;
    e->is_list = true;
    for (;;) {
        while (at < end && s[at] == ' ') at++;
        if (at >= end) return SUMI_OK;
        size_t used;
        if (s[at] == '"' || s[at] == '\'') {
            TRY(quoted(r, e, s + at, end - at, &used, err));
        } else {
            for (used = 0; at + used < end && s[at + used] != ',';) used++;
            size_t len = used;
            while (len && s[at + len - 1] == ' ') len--;
            if (memchr(s + at, '[', len) || memchr(s + at, '{', len))
                return bad_line(r, err, "lists within lists are not supported");
            TRY(plain(r, e, s + at, len, err));
        }
        at += used;
        while (at < end && s[at] == ' ') at++;
        if (at < end && s[at++] != ',')
            return bad_line(r, err, "expected a comma between list items");
    }
}

/* `json` takes what is in brackets or braces as JSON text. */
static sumi_status scalar(const struct reader *r, struct entry *e, const char *s, size_t n,
                          bool json, sumi_error *err) {
    if (*s == '{' && !json)
        return bad_line(r, err, "a map in braces is only for options that take JSON");
    if (json && (*s == '{' || *s == '[')) {
        e->inline_json = true;
        return push_item(e, mem_string(s, n), err);
    }
    if (*s == '[') return inline_list(r, e, s, n, err);
    if (*s != '"' && *s != '\'') return plain(r, e, s, n, err);
    size_t used;
    TRY(quoted(r, e, s, n, &used, err));
    return used == n ? SUMI_OK : bad_line(r, err, "text after a closing quote");
}

/* "- item" lines after a key without a value. A deeper "key:" line would be a nested map. */
static sumi_status block_list(struct reader *r, struct entry *e, sumi_error *err) {
    for (;;) {
        struct reader before = *r;
        const char *s;
        size_t n, indent;
        if (!next_line(r, &s, &n, &indent) || (indent == 0 && *s != '-')) {
            *r = before;
            return SUMI_OK;
        }
        if (*s != '-' || (n > 1 && s[1] != ' '))
            return fail_with(
                err, SUMI_ERR_UNSUPPORTED,
                "%s line %d: nested maps are not supported; write %s: '{...}' as JSON, "
                "or %s.member: value",
                r->what, r->line, e->key, e->key);
        for (s++, n--; n && *s == ' ';) s++, n--;
        if (!n) return bad_line(r, err, "an empty list item");
        e->is_list = true;
        TRY(scalar(r, e, s, n, false, err));
    }
}

static bool is_json_row(const struct options *o, const char *key, size_t n, size_t *row,
                        bool *negated) {
    return opt_lookup(o, key, n, false, row, negated) == OPT_MATCH &&
           o->row[*row]->type == OPT_JSON;
}

static sumi_status read_entry(const struct options *o, struct reader *r, struct entry *e,
                              bool *more, sumi_error *err) {
    const char *s;
    size_t n, indent, colon = 0, row;
    bool negated;
    *more = next_line(r, &s, &n, &indent);
    if (!*more) return SUMI_OK;
    e->line = r->line;
    if (indent || memchr(s, '\t', n)) return bad_line(r, err, "unexpected indentation or tab");
    while (colon < n && !(s[colon] == ':' && (colon + 1 == n || s[colon + 1] == ' '))) colon++;
    if (colon == n || colon == 0 || colon > 200) return bad_line(r, err, "expected \"key: value\"");
    e->key = mem_string(s, colon);
    if (!e->key) return NO_MEMORY(err, colon);
    for (char *p = e->key; *p && *p != '.'; p++)
        if (*p == '_') *p = '-';
    s += colon + 1;
    n -= colon + 1;
    while (n && *s == ' ') s++, n--;
    if (!n) {
        TRY(block_list(r, e, err));
        e->is_null = !e->is_list;
        return SUMI_OK;
    }
    bool json = is_json_row(o, e->key, strcspn(e->key, "."), &row, &negated);
    TRY(scalar(r, e, s, n, json, err));
    e->is_null = !e->is_list && ((n == 1 && *s == '~') || (n == 4 && memcmp(s, "null", 4) == 0));
    return SUMI_OK;
}

static sumi_status apply_entry(struct options *o, const struct reader *r, const struct entry *e,
                               sumi_error *err) {
    char label[160], near[96];
    size_t n = strcspn(e->key, ".");
    struct opt_input in = {.source = OPT_FROM_FILE,
                           .label = label,
                           .text = (const char *const *)e->item,
                           .n = e->n,
                           .member = e->key[n] ? e->key + n + 1 : NULL};
    snprintf(label, sizeof label, "%.60s line %d: %.80s", r->what, e->line, e->key);
    if (opt_lookup(o, e->key, n, false, &in.row, &in.negated) != OPT_MATCH) {
        opt_nearest(o, e->key, near, sizeof near);
        return fail_param(err, SUMI_ERR_ARG, e->key, "%s: unknown option%s%s%s", label,
                          *near ? "; did you mean " : "", *near ? near + 2 : "", *near ? "?" : "");
    }
    const struct opt_row *row = o->row[in.row];
    if (strcmp(row->name, "config") == 0)
        return fail_param(err, SUMI_ERR_ARG, row->name, "%s: a config file cannot name another",
                          label);
    if (in.member && row->type != OPT_JSON)
        return fail_param(err, SUMI_ERR_ARG, row->name, "%s: %s takes no members", label,
                          row->name);
    if (e->is_list && row->type != OPT_LIST && row->kind != OPT_A)
        return fail_param(err, SUMI_ERR_ARG, row->name, "%s: expected one value, found a list",
                          label);
    bool b;
    if (row->type == OPT_BOOL && in.negated && e->n == 1) {
        if (!opt_parse_bool(e->item[0], &b))
            return fail_param(err, SUMI_ERR_ARG, row->name, "%s: expected true or false", label);
        in.negated = b;
        in.n = 0;
    }
    return opt_apply(o, &in, err);
}

sumi_status options_config(struct options *o, const char *text, size_t n, const char *what,
                           sumi_error *err) {
    struct reader r = {.at = text, .end = text + n, .what = what};
    sumi_status status = SUMI_OK;
    for (bool more = true; more && status == SUMI_OK;) {
        struct entry e = {0};
        status = read_entry(o, &r, &e, &more, err);
        if (status == SUMI_OK && more && !e.is_null) status = apply_entry(o, &r, &e, err);
        entry_reset(&e);
    }
    return status;
}
