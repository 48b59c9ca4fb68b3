/* Tokens in, expression trees out: operators, constants, tuples. Follows jinja2's grammar, in which
 * `~` binds tighter than `+` and tuples need no parentheses. Decides nothing about values. */
#include <string.h>

#include "text/template_ast.h"

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

sumi_status parse_literal(struct parser *ps, struct value v, struct node **out) {
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

sumi_status parse_primary(struct parser *ps, struct node **out) {
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
