/* The parser's tools: the current token, nodes and their kids, interned names, messages. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "text/template_ast.h"

sumi_status parse_fail(struct parser *ps, int line, sumi_status code, const char *fmt, ...) {
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return fail_with(ps->err, code, "chat template, line %d: %s", line, what);
}

sumi_status parse_step(struct parser *ps) {
    if (!ps->has_ahead) return lex_next(&ps->lx, &ps->now);
    ps->now = ps->ahead;
    ps->has_ahead = false;
    return SUMI_OK;
}

sumi_status parse_peek(struct parser *ps) {
    if (ps->has_ahead) return SUMI_OK;
    ps->has_ahead = true;
    return lex_next(&ps->lx, &ps->ahead);
}

sumi_status parse_expected(struct parser *ps, const char *what) {
    if (ps->now.kind == T_NAME)
        return parse_fail(ps, ps->now.line, SUMI_ERR_FORMAT, "expected %s, found '%.*s'", what,
                          (int)(ps->now.n < 100 ? ps->now.n : 100), ps->now.p);
    return parse_fail(ps, ps->now.line, SUMI_ERR_FORMAT, "expected %s, found %s", what,
                      token_text(ps->now.kind));
}

sumi_status parse_expect(struct parser *ps, enum token_kind kind) {
    if (ps->now.kind != kind) return parse_expected(ps, token_text(kind));
    return parse_step(ps);
}

bool parse_at_name(const struct parser *ps, const char *text) {
    return ps->now.kind == T_NAME && ps->now.n == strlen(text) &&
           memcmp(ps->now.p, text, ps->now.n) == 0;
}

/* Bounds the stack. Brackets and the height of the tree have limits of their own; one level of
 * either passes here up to three times. */
sumi_status parse_enter(struct parser *ps) {
    if (++ps->depth <= 4 * TPL_MAX_NESTING) return SUMI_OK;
    return parse_fail(ps, ps->now.line, SUMI_ERR_LIMIT, "nested over %d", TPL_MAX_NESTING);
}

sumi_status parse_node(struct parser *ps, enum node_kind kind, int line, struct node **out) {
    struct node *node;
    PARSE_NEW(ps, node, 1);
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->line = line;
    node->height = 1;
    *out = node;
    return SUMI_OK;
}

sumi_status parse_push(struct parser *ps, struct kids *k, struct node *kid) {
    if (k->n == k->cap) {
        struct node **more;
        int cap = k->cap ? 2 * k->cap : 4;
        PARSE_NEW(ps, more, cap);
        if (k->n) memcpy(more, k->v, (size_t)k->n * sizeof *more);
        k->v = more;
        k->cap = cap;
    }
    k->v[k->n++] = kid;
    return SUMI_OK;
}

sumi_status parse_close(struct parser *ps, struct node *node, const struct kids *k) {
    node->kids = k->v;
    node->n_kids = k->n;
    for (int i = 0; i < k->n; i++)
        if (k->v[i] && k->v[i]->height >= node->height)
            node->height = (uint16_t)(k->v[i]->height + 1);
    if (node->height <= TPL_MAX_NESTING) return SUMI_OK;
    return parse_fail(ps, node->line, SUMI_ERR_LIMIT, "nested over %d", TPL_MAX_NESTING);
}

sumi_status parse_str(struct parser *ps, const char *p, size_t n, const struct str **out) {
    char *copy;
    PARSE_NEW(ps, copy, n + 1);
    if (n) memcpy(copy, p, n);
    copy[n] = 0;
    *out = tpl_str_make(&ps->t->arena, copy, n, NULL, true);
    return *out ? SUMI_OK : NO_MEMORY(ps->err, sizeof **out);
}

static size_t hash_name(const char *p, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static void table_put(struct chat_template *t, struct name *name) {
    size_t at = hash_name(name->s->p, name->s->n);
    while (t->table[at & (t->table_size - 1)]) at++;
    t->table[at & (t->table_size - 1)] = name;
}

static sumi_status grow_names(struct parser *ps) {
    struct chat_template *t = ps->t;
    int cap = t->cap_names ? 2 * t->cap_names : 32;
    struct name **names, **table;
    PARSE_NEW(ps, names, cap);
    PARSE_NEW(ps, table, 4 * cap);
    if (t->n_names) memcpy(names, t->names, (size_t)t->n_names * sizeof *names);
    memset(table, 0, 4 * (size_t)cap * sizeof *table);
    t->names = names;
    t->cap_names = cap;
    t->table = table;
    t->table_size = 4 * (size_t)cap;
    for (int i = 0; i < t->n_names; i++) table_put(t, t->names[i]);
    return SUMI_OK;
}

struct name *template_name(const struct chat_template *t, const char *p, size_t n) {
    if (!t->table_size) return NULL;
    for (size_t at = hash_name(p, n);; at++) {
        struct name *name = t->table[at & (t->table_size - 1)];
        if (!name || str_is(name->s, p, n)) return name;
    }
}

sumi_status parse_name(struct parser *ps, const char *p, size_t n, struct name **out) {
    *out = template_name(ps->t, p, n);
    if (*out) return SUMI_OK;
    if (ps->t->n_names == ps->t->cap_names) TRY(grow_names(ps));
    PARSE_NEW(ps, *out, 1);
    **out = (struct name){.index = ps->t->n_names};
    TRY(parse_str(ps, p, n, &(*out)->s));
    ps->t->names[ps->t->n_names++] = *out;
    table_put(ps->t, *out);
    return SUMI_OK;
}

void parse_loaded(struct parser *ps, struct name *name) {
    struct frame *f = &ps->frame;
    name->read = true;
    if (str_is(name->s, "varargs", 7)) f->varargs = true;
    if (str_is(name->s, "kwargs", 6)) f->kwargs = true;
    if (str_is(name->s, "caller", 6)) f->caller = true;
}
