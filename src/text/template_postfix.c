/* What follows a value: subscripts, calls, filters, tests. What this engine does not have is
 * refused here, by name. */
#include <string.h>

#include "text/template_ast.h"
#include "text/template_eval.h"

#define MAX_KEYWORDS 100

/* The arguments of a call, a filter or a test, behind kids that are there already. */
static sumi_status parse_args(struct parser *ps, struct node *node, struct kids *kids) {
    struct call_args *args = &node->args;
    struct node *arg, *star = NULL, *star2 = NULL;
    struct kids keyword = {0};
    int line = ps->now.line, cap = 0;
    TRY(parse_expect(ps, T_LPAREN));
    for (bool first = true; ps->now.kind != T_RPAREN; first = false) {
        if (!first) TRY(parse_expect(ps, T_COMMA));
        if (ps->now.kind == T_RPAREN) break;
        enum token_kind k = ps->now.kind;
        TRY(parse_peek(ps));
        bool named = k == T_NAME && ps->ahead.kind == T_ASSIGN;
        if (star2 || (star && k == T_MUL) ||
            (k != T_MUL && k != T_POW && !named && (star || args->n_kw)))
            return parse_fail(ps, line, SUMI_ERR_FORMAT, "wrong order of arguments");
        if (named) {
            if (args->n_kw == MAX_KEYWORDS)
                return parse_fail(ps, line, SUMI_ERR_LIMIT, "over %d keyword arguments",
                                  MAX_KEYWORDS);
            if (args->n_kw == cap) {
                const struct str **more;
                cap = cap ? 2 * cap : 4;
                PARSE_NEW(ps, more, cap);
                if (args->n_kw) memcpy(more, args->kw, (size_t)args->n_kw * sizeof *more);
                args->kw = more;
            }
            struct name *name;
            TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
            for (int i = 0; i < args->n_kw; i++)
                if (args->kw[i] == name->s)
                    return parse_fail(ps, line, SUMI_ERR_FORMAT, "keyword '%.*s' is repeated",
                                      (int)name->s->n, name->s->p);
            args->kw[args->n_kw++] = name->s;
            TRY(parse_step(ps));
        }
        if (named || k == T_MUL || k == T_POW) TRY(parse_step(ps));
        TRY(parse_expr(ps, true, &arg));
        if (named) TRY(parse_push(ps, &keyword, arg));
        else if (k == T_MUL) star = arg;
        else if (k == T_POW) star2 = arg;
        else {
            TRY(parse_push(ps, kids, arg));
            args->n_pos++;
        }
    }
    for (int i = 0; i < keyword.n; i++) TRY(parse_push(ps, kids, keyword.v[i]));
    args->star = star != NULL;
    args->star2 = star2 != NULL;
    if (star) TRY(parse_push(ps, kids, star));
    if (star2) TRY(parse_push(ps, kids, star2));
    return parse_step(ps);
}

sumi_status parse_call(struct parser *ps, struct node **out) {
    struct node *node, *callee = *out;
    struct kids kids = {0};
    TRY(parse_node(ps, N_CALL, ps->now.line, &node));
    const char *refused = callee->kind == N_ATTR   ? method_refused(callee->attr)
                          : callee->kind == N_NAME ? function_refused(callee->name->s)
                                                   : NULL;
    if (refused)
        return parse_fail(ps, node->line, SUMI_ERR_UNSUPPORTED, "'%s()' is not supported", refused);
    TRY(parse_push(ps, &kids, callee));
    TRY(parse_args(ps, node, &kids));
    *out = node;
    return parse_close(ps, node, &kids);
}

/* One part of a subscript: an expression or a slice, whose parts go to kids[1..3]. */
static sumi_status parse_bracket(struct parser *ps, struct node **out) {
    struct node *node, *part[3] = {0};
    struct kids kids = {0};
    int n = 0;
    bool slice = false;
    TRY(parse_node(ps, N_ITEM, ps->now.line, &node));
    TRY(parse_push(ps, &kids, *out));
    TRY(parse_step(ps));
    while (ps->now.kind != T_RBRACKET) {
        if (ps->now.kind == T_COMMA)
            return parse_fail(ps, node->line, SUMI_ERR_UNSUPPORTED,
                              "a subscript with a comma is not supported");
        if (ps->now.kind == T_COLON) {
            slice = true;
            if (++n > 2) return parse_expected(ps, "']'");
            TRY(parse_step(ps));
        } else if (part[n]) {
            return parse_expected(ps, "']'");
        } else {
            TRY(parse_expr(ps, true, &part[n]));
        }
    }
    if (!slice && !part[0]) return parse_expected(ps, "a subscript");
    if (slice) node->kind = N_SLICE;
    for (int i = 0; i < (slice ? 3 : 1); i++) TRY(parse_push(ps, &kids, part[i]));
    *out = node;
    TRY(parse_step(ps));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_dot(struct parser *ps, struct node **out) {
    struct node *node, *index;
    struct kids kids = {0};
    TRY(parse_node(ps, N_ATTR, ps->now.line, &node));
    TRY(parse_push(ps, &kids, *out));
    TRY(parse_step(ps));
    if (ps->now.kind == T_INT) {
        node->kind = N_ITEM;
        TRY(parse_literal(ps, v_int(ps->now.i), &index));
        TRY(parse_push(ps, &kids, index));
    } else if (ps->now.kind == T_NAME) {
        struct name *name;
        TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
        node->attr = name->s;
        TRY(parse_step(ps));
    } else {
        return parse_expected(ps, "name or number");
    }
    *out = node;
    return parse_close(ps, node, &kids);
}

sumi_status parse_postfix(struct parser *ps, struct node **out) {
    for (;;) {
        if (ps->now.kind == T_DOT) TRY(parse_dot(ps, out));
        else if (ps->now.kind == T_LBRACKET) TRY(parse_bracket(ps, out));
        else if (ps->now.kind == T_LPAREN) TRY(parse_call(ps, out));
        else return SUMI_OK;
    }
}

/* A filter or test by name; dotted names exist in the grammar only. */
static sumi_status callable_name(struct parser *ps, struct node *node) {
    struct name *name;
    if (ps->now.kind != T_NAME) return parse_expected(ps, "name");
    TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
    bool filter = node->kind == N_FILTER;
    if (filter) node->filter = filter_find(name->s);
    else node->test = test_find(name->s);
    if (!(filter ? (const void *)node->filter : (const void *)node->test)) {
        bool known = filter && filter_refused(name->s);
        return parse_fail(ps, ps->now.line, known ? SUMI_ERR_UNSUPPORTED : SUMI_ERR_FORMAT,
                          known ? "the %s '%.*s' is not supported" : "no %s is named '%.*s'",
                          filter ? "filter" : "test", (int)name->s->n, name->s->p);
    }
    return parse_step(ps);
}

sumi_status parse_filters(struct parser *ps, bool inline_start, struct node **out) {
    while (inline_start || ps->now.kind == T_PIPE) {
        struct node *node;
        struct kids kids = {0};
        if (!inline_start) TRY(parse_step(ps));
        inline_start = false;
        TRY(parse_node(ps, N_FILTER, ps->now.line, &node));
        TRY(parse_push(ps, &kids, *out));
        TRY(callable_name(ps, node));
        if (ps->now.kind == T_LPAREN) TRY(parse_args(ps, node, &kids));
        *out = node;
        TRY(parse_close(ps, node, &kids));
    }
    return SUMI_OK;
}

/* `is [not] name`, its argument with or without parentheses. */
sumi_status parse_test(struct parser *ps, struct node **out) {
    struct node *node, *arg;
    struct kids kids = {0};
    TRY(parse_step(ps));
    TRY(parse_node(ps, N_TEST, ps->now.line, &node));
    bool negated = parse_at_name(ps, "not");
    if (negated) TRY(parse_step(ps));
    TRY(parse_push(ps, &kids, *out));
    TRY(callable_name(ps, node));
    enum token_kind k = ps->now.kind;
    if (k == T_LPAREN) {
        TRY(parse_args(ps, node, &kids));
    } else if ((k >= T_NAME && k <= T_FLOAT) || k == T_LBRACKET || k == T_LBRACE) {
        if (parse_at_name(ps, "is"))
            return parse_fail(ps, node->line, SUMI_ERR_FORMAT, "'is' cannot follow a test");
        if (!parse_at_name(ps, "else") && !parse_at_name(ps, "or") && !parse_at_name(ps, "and")) {
            TRY(parse_primary(ps, &arg));
            TRY(parse_postfix(ps, &arg));
            TRY(parse_push(ps, &kids, arg));
            node->args.n_pos = 1;
        }
    }
    *out = node;
    TRY(parse_close(ps, node, &kids));
    if (!negated) return SUMI_OK;
    struct kids inner = {0};
    TRY(parse_push(ps, &inner, node));
    TRY(parse_node(ps, N_NOT, node->line, out));
    return parse_close(ps, *out, &inner);
}
