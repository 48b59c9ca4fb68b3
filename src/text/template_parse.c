/* Tokens in, expression trees out. Follows jinja2's grammar: its precedences (`~` binds tighter
 * than `+`), its filters and tests as postfixes, its tuples without parentheses. Decides nothing
 * about values; refuses constructs that this engine does not have, by name. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/template_ast.h"
#include "text/template_eval.h"
#include "text/template_text.h"

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

/* Left-associative binary operators; a higher level binds tighter. `not` stands between AND and
 * COMPARE. */
enum level { L_OR, L_AND, L_NOT, L_COMPARE, L_ADD, L_CONCAT, L_MUL, L_POW, L_NONE };

/* The operator at the current token: its level, its node kind, its code in ops[]. */
static sumi_status operator_at(struct parser *ps, enum level *level, enum node_kind *kind,
                               uint8_t *op) {
    *level = L_NONE;
    *op = (uint8_t)ps->now.kind;
    switch (ps->now.kind) {
    case T_ADD:
    case T_SUB: *level = L_ADD, *kind = N_MATH; break;
    case T_TILDE: *level = L_CONCAT, *kind = N_CONCAT; break;
    case T_MUL:
    case T_DIV:
    case T_FLOORDIV:
    case T_MOD: *level = L_MUL, *kind = N_MATH; break;
    case T_POW: *level = L_POW, *kind = N_MATH; break;
    case T_EQ:
    case T_NE:
    case T_LT:
    case T_LE:
    case T_GT:
    case T_GE: *level = L_COMPARE, *kind = N_COMPARE; break;
    case T_NAME:
        if (parse_at_name(ps, "or")) *level = L_OR, *kind = N_OR;
        else if (parse_at_name(ps, "and")) *level = L_AND, *kind = N_AND;
        else if (parse_at_name(ps, "in")) *level = L_COMPARE, *kind = N_COMPARE;
        else if (parse_at_name(ps, "not")) {
            TRY(parse_peek(ps));
            if (ps->ahead.kind == T_NAME && ps->ahead.n == 2 && !memcmp(ps->ahead.p, "in", 2))
                *level = L_COMPARE, *kind = N_COMPARE, *op = T_STRING;
        }
        break;
    default: break;
    }
    return SUMI_OK;
}

static sumi_status parse_unary(struct parser *ps, bool filters, struct node **out);

static sumi_status parse_ops(struct parser *ps, enum level min, struct node **out);

/* A chain of operators of one level, whose first operand is there: one node with all operands, so
 * that a long sum is not a deep tree. */
static sumi_status parse_chain(struct parser *ps, enum level level, enum node_kind kind,
                               struct node **out) {
    struct kids kids = {0};
    struct buf ops = {0}; /* freed below; PARSE_NEW copies it */
    sumi_status status = SUMI_OK;
    struct node *node, *operand = *out;
    int line = ps->now.line;
    TRY_OUT(parse_push(ps, &kids, operand));
    for (;;) {
        enum level next;
        enum node_kind k = kind;
        uint8_t op;
        TRY_OUT(operator_at(ps, &next, &k, &op));
        if (next != level) break;
        buf_putc(&ops, (char)op);
        TRY_OUT(parse_step(ps));
        if (op == T_STRING) TRY_OUT(parse_step(ps));
        TRY_OUT(parse_ops(ps, (enum level)(level + 1), &operand));
        TRY_OUT(parse_push(ps, &kids, operand));
    }
    TRY_OUT(parse_node(ps, kind, line, &node));
    if (kind == N_MATH || kind == N_COMPARE) {
        uint8_t *copy = ops.failed ? NULL : arena_alloc(&ps->t->arena, ops.len, 1);
        if (copy) memcpy(copy, ops.data, ops.len);
        else status = NO_MEMORY(ps->err, ops.len);
        node->ops = copy;
    }
    if (status == SUMI_OK) status = parse_close(ps, node, &kids);
    *out = node;
out:
    buf_reset(&ops);
    return status;
}

static sumi_status parse_prefix(struct parser *ps, enum node_kind kind, struct node **out) {
    struct node *node, *operand;
    TRY(parse_node(ps, kind, ps->now.line, &node));
    TRY(parse_step(ps));
    TRY(kind == N_NOT ? parse_ops(ps, L_NOT, &operand) : parse_unary(ps, false, &operand));
    struct kids kids = {0};
    TRY(parse_push(ps, &kids, operand));
    *out = node;
    return parse_close(ps, node, &kids);
}

static sumi_status parse_ops(struct parser *ps, enum level min, struct node **out) {
    TRY(parse_enter(ps));
    if (min <= L_NOT && parse_at_name(ps, "not")) TRY(parse_prefix(ps, N_NOT, out));
    else TRY(parse_unary(ps, true, out));
    for (;;) {
        enum level level;
        enum node_kind kind = N_CONST;
        uint8_t op;
        TRY(operator_at(ps, &level, &kind, &op));
        if (level == L_NONE || level < min) break;
        TRY(parse_chain(ps, level, kind, out));
    }
    ps->depth--;
    return SUMI_OK;
}

sumi_status parse_expr(struct parser *ps, bool cond, struct node **out) {
    TRY(parse_enter(ps));
    TRY(parse_ops(ps, L_OR, out));
    while (cond && parse_at_name(ps, "if")) {
        struct node *node, *test, *other = NULL;
        struct kids kids = {0};
        TRY(parse_node(ps, N_COND, ps->now.line, &node));
        TRY(parse_step(ps));
        TRY(parse_ops(ps, L_OR, &test));
        if (parse_at_name(ps, "else")) {
            TRY(parse_step(ps));
            TRY(parse_expr(ps, true, &other));
        }
        TRY(parse_push(ps, &kids, test));
        TRY(parse_push(ps, &kids, *out));
        TRY(parse_push(ps, &kids, other));
        TRY(parse_close(ps, node, &kids));
        *out = node;
    }
    ps->depth--;
    return SUMI_OK;
}

sumi_status parse_tuple(struct parser *ps, bool cond, bool parenthesised, const char *end,
                        struct node **out) {
    struct kids kids = {0};
    bool tuple = false;
    int line = ps->now.line;
    for (;;) {
        if (kids.n) TRY(parse_expect(ps, T_COMMA));
        enum token_kind k = ps->now.kind;
        if (k == T_VAR_END || k == T_BLOCK_END || k == T_RPAREN || (end && parse_at_name(ps, end)))
            break;
        TRY(parse_expr(ps, cond, out));
        TRY(parse_push(ps, &kids, *out));
        if (ps->now.kind != T_COMMA) break;
        tuple = true;
    }
    if (kids.n && !tuple) return SUMI_OK;
    if (!kids.n && !parenthesised) return parse_expected(ps, "an expression");
    TRY(parse_node(ps, N_TUPLE, line, out));
    return parse_close(ps, *out, &kids);
}

static sumi_status parse_literal(struct parser *ps, struct value v, struct node **out) {
    TRY(parse_node(ps, N_CONST, ps->now.line, out));
    (*out)->value = v;
    return parse_step(ps);
}

/* Neighbouring string constants are one. */
static sumi_status parse_string(struct parser *ps, struct node **out) {
    struct buf text = {0};
    sumi_status status = parse_node(ps, N_CONST, ps->now.line, out);
    while (status == SUMI_OK && ps->now.kind == T_STRING) {
        buf_put(&text, ps->now.p, ps->now.n);
        status = parse_step(ps);
    }
    const struct str *s = NULL;
    if (status == SUMI_OK && text.failed) status = NO_MEMORY(ps->err, text.len);
    if (status == SUMI_OK) status = parse_str(ps, buf_text(&text), text.len, &s);
    if (status == SUMI_OK) (*out)->value = v_str(s);
    buf_reset(&text);
    return status;
}

static sumi_status parse_items(struct parser *ps, enum node_kind kind, enum token_kind end,
                               struct node **out) {
    struct kids kids = {0};
    struct node *item;
    TRY(parse_node(ps, kind, ps->now.line, out));
    TRY(parse_step(ps));
    while (ps->now.kind != end) {
        if (kids.n) TRY(parse_expect(ps, T_COMMA));
        if (ps->now.kind == end) break;
        TRY(parse_expr(ps, true, &item));
        TRY(parse_push(ps, &kids, item));
        if (kind != N_DICT) continue;
        TRY(parse_expect(ps, T_COLON));
        TRY(parse_expr(ps, true, &item));
        TRY(parse_push(ps, &kids, item));
    }
    TRY(parse_step(ps));
    return parse_close(ps, *out, &kids);
}

static sumi_status parse_variable(struct parser *ps, struct node **out) {
    struct name *name;
    TRY(parse_node(ps, N_NAME, ps->now.line, out));
    TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
    (*out)->name = name;
    if (str_is(name->s, "self", 4))
        return parse_fail(ps, (*out)->line, SUMI_ERR_UNSUPPORTED, "'self' is not supported");
    parse_loaded(ps, name);
    return parse_step(ps);
}

static sumi_status parse_primary(struct parser *ps, struct node **out) {
    switch (ps->now.kind) {
    case T_NAME:
        if (parse_at_name(ps, "true") || parse_at_name(ps, "True"))
            return parse_literal(ps, v_bool(true), out);
        if (parse_at_name(ps, "false") || parse_at_name(ps, "False"))
            return parse_literal(ps, v_bool(false), out);
        if (parse_at_name(ps, "none") || parse_at_name(ps, "None"))
            return parse_literal(ps, v_none(), out);
        return parse_variable(ps, out);
    case T_STRING: return parse_string(ps, out);
    case T_INT: return parse_literal(ps, v_int(ps->now.i), out);
    case T_FLOAT: return parse_literal(ps, v_float(ps->now.d), out);
    case T_LPAREN:
        TRY(parse_step(ps));
        TRY(parse_tuple(ps, true, true, NULL, out));
        return parse_expect(ps, T_RPAREN);
    case T_LBRACKET: return parse_items(ps, N_LIST, T_RBRACKET, out);
    case T_LBRACE: return parse_items(ps, N_DICT, T_RBRACE, out);
    default: return parse_expected(ps, "an expression");
    }
}

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

static sumi_status parse_call(struct parser *ps, struct node **out) {
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

static sumi_status parse_postfix(struct parser *ps, struct node **out) {
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
static sumi_status parse_test(struct parser *ps, struct node **out) {
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

static sumi_status parse_unary(struct parser *ps, bool filters, struct node **out) {
    TRY(parse_enter(ps));
    if (ps->now.kind == T_SUB) TRY(parse_prefix(ps, N_NEG, out));
    else if (ps->now.kind == T_ADD) TRY(parse_prefix(ps, N_POS, out));
    else TRY(parse_primary(ps, out));
    TRY(parse_postfix(ps, out));
    while (filters) {
        if (ps->now.kind == T_PIPE) TRY(parse_filters(ps, false, out));
        else if (parse_at_name(ps, "is")) TRY(parse_test(ps, out));
        else if (ps->now.kind == T_LPAREN) TRY(parse_call(ps, out));
        else break;
    }
    ps->depth--;
    return SUMI_OK;
}
