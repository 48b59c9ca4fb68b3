/* Tags in, statement trees out. */
#include <string.h>

#include "text/template_ast.h"
#include "text/template_eval.h"
#include "text/template_text.h"

static sumi_status parse_until(struct parser *ps, const char *const *ends, struct node **out);

/* The name `loop` is taken inside a for statement, wherever in it the assignment stands. */
static sumi_status check_target(struct parser *ps, const struct node *target) {
    if (target->kind == N_NAME && ps->in_for && str_is(target->name->s, "loop", 4))
        return parse_fail(ps, target->line, SUMI_ERR_FORMAT,
                          "'loop' cannot be set inside a for statement");
    for (int i = 0; i < target->n_kids; i++) TRY(check_target(ps, target->kids[i]));
    return SUMI_OK;
}

static sumi_status parse_target_item(struct parser *ps, bool namespaces, struct node **out) {
    struct name *name;
    int line = ps->now.line;
    if (ps->now.kind == T_LPAREN) {
        TRY(parse_enter(ps));
        TRY(parse_step(ps));
        TRY(parse_target(ps, NULL, namespaces, out));
        ps->depth--;
        return parse_expect(ps, T_RPAREN);
    }
    if (ps->now.kind != T_NAME || parse_at_name(ps, "true") || parse_at_name(ps, "false") ||
        parse_at_name(ps, "none") || parse_at_name(ps, "True") || parse_at_name(ps, "False") ||
        parse_at_name(ps, "None"))
        return parse_expected(ps, "a name to assign to");
    TRY(parse_node(ps, N_NAME, line, out));
    TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
    (*out)->name = name;
    TRY(parse_step(ps));
    if (!namespaces || ps->now.kind != T_DOT) return SUMI_OK;
    TRY(parse_step(ps));
    if (ps->now.kind != T_NAME) return parse_expected(ps, "name");
    (*out)->kind = N_NS_REF;
    parse_loaded(ps, name);
    TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
    (*out)->attr = name->s;
    return parse_step(ps);
}

/* Names, possibly in a tuple, possibly `a.b`. */
sumi_status parse_target(struct parser *ps, const char *end, bool namespaces, struct node **out) {
    struct kids kids = {0};
    bool tuple = false;
    int line = ps->now.line;
    for (;;) {
        if (kids.n) TRY(parse_expect(ps, T_COMMA));
        if (kids.n && (ps->now.kind == T_RPAREN || ps->now.kind == T_BLOCK_END ||
                       (end && parse_at_name(ps, end))))
            break;
        TRY(parse_target_item(ps, namespaces, out));
        TRY(parse_push(ps, &kids, *out));
        if (ps->now.kind != T_COMMA) break;
        tuple = true;
    }
    if (!tuple) return SUMI_OK;
    TRY(parse_node(ps, N_TUPLE, line, out));
    return parse_close(ps, *out, &kids);
}

/* Enters a body with variables of its own; leave_frame puts the outer one back. */
static struct frame enter_frame(struct parser *ps, bool function) {
    struct frame outer = ps->frame;
    ps->frame = (struct frame){.loops = function ? 0 : outer.loops};
    return outer;
}

static void leave_frame(struct parser *ps, struct frame outer) {
    outer.varargs |= ps->frame.varargs;
    outer.kwargs |= ps->frame.kwargs;
    outer.caller |= ps->frame.caller;
    ps->frame = outer;
}

/* The body of a statement up to one of the tags in ends, whose name is the current token then. */
static sumi_status parse_block(struct parser *ps, const char *const *ends, struct node **out) {
    if (ps->now.kind == T_COLON) TRY(parse_step(ps));
    TRY(parse_expect(ps, T_BLOCK_END));
    return parse_until(ps, ends, out);
}

/* As parse_block with a single end tag, which is consumed. */
static sumi_status parse_last_block(struct parser *ps, const char *end, struct node **out) {
    const char *const ends[] = {end, NULL};
    TRY(parse_block(ps, ends, out));
    return parse_step(ps);
}

static sumi_status parse_if(struct parser *ps, struct node *node) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct kids kids = {0};
    struct node *kid;
    for (bool last = false; !last;) {
        TRY(parse_tuple(ps, false, false, NULL, &kid));
        TRY(parse_push(ps, &kids, kid));
        TRY(parse_block(ps, ends, &kid));
        TRY(parse_push(ps, &kids, kid));
        last = !parse_at_name(ps, "elif");
        bool other = parse_at_name(ps, "else");
        TRY(parse_step(ps));
        if (other) {
            TRY(parse_last_block(ps, "endif", &kid));
            TRY(parse_push(ps, &kids, kid));
        }
    }
    return parse_close(ps, node, &kids);
}

static sumi_status parse_for(struct parser *ps, struct node *node) {
    static const char *const ends[] = {"else", "endfor", NULL};
    struct node *target, *iterable, *filter = NULL, *body, *other = NULL;
    struct kids kids = {0};
    TRY(parse_target(ps, "in", false, &target));
    if (!parse_at_name(ps, "in")) return parse_expected(ps, "'in'");
    TRY(parse_step(ps));
    TRY(parse_tuple(ps, false, false, "recursive", &iterable));
    struct frame outer = enter_frame(ps, false);
    ps->in_for++;
    TRY(check_target(ps, target));
    if (parse_at_name(ps, "if")) {
        TRY(parse_step(ps));
        TRY(parse_expr(ps, true, &filter));
    }
    node->flag = parse_at_name(ps, "recursive");
    if (node->flag) TRY(parse_step(ps));
    ps->frame.loops++;
    TRY(parse_block(ps, ends, &body));
    ps->frame.loops--;
    bool has_else = parse_at_name(ps, "else");
    TRY(parse_step(ps));
    if (node->flag) ps->frame.loops = 0; /* its else part cannot leave an outer loop */
    if (has_else) TRY(parse_last_block(ps, "endfor", &other));
    ps->in_for--;
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, target));
    TRY(parse_push(ps, &kids, iterable));
    TRY(parse_push(ps, &kids, filter));
    TRY(parse_push(ps, &kids, body));
    TRY(parse_push(ps, &kids, other));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_set(struct parser *ps, struct node *node) {
    struct node *target, *kid, *filter = NULL;
    struct kids kids = {0};
    TRY(parse_target(ps, NULL, true, &target));
    TRY(parse_push(ps, &kids, target));
    if (ps->now.kind == T_ASSIGN) {
        TRY(parse_step(ps));
        TRY(parse_tuple(ps, true, false, NULL, &kid));
        TRY(parse_push(ps, &kids, kid));
        TRY(check_target(ps, target));
        return parse_close(ps, node, &kids);
    }
    node->kind = N_SET_BLOCK;
    TRY(check_target(ps, target));
    struct frame outer = enter_frame(ps, false);
    TRY(parse_filters(ps, false, &filter));
    TRY(parse_last_block(ps, "endset", &kid));
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, kid));
    TRY(parse_push(ps, &kids, filter));
    return parse_close(ps, node, &kids);
}

/* The parameters of a macro, in the macro's own frame; defaults go behind kids[0]. */
static sumi_status parse_params(struct parser *ps, struct node *node, struct kids *kids) {
    struct params *params = &node->params;
    int cap = 0;
    TRY(parse_expect(ps, T_LPAREN));
    while (ps->now.kind != T_RPAREN) {
        struct name *name;
        if (params->n) TRY(parse_expect(ps, T_COMMA));
        if (ps->now.kind != T_NAME) return parse_expected(ps, "name");
        if (params->n == TPL_MAX_NESTING)
            return parse_fail(ps, node->line, SUMI_ERR_LIMIT, "over %d parameters",
                              TPL_MAX_NESTING);
        if (params->n == cap) {
            const struct name **more;
            cap = cap ? 2 * cap : 4;
            PARSE_NEW(ps, more, cap);
            if (params->n) memcpy(more, params->names, (size_t)params->n * sizeof *more);
            params->names = more;
        }
        TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
        for (int i = 0; i < params->n; i++)
            if (params->names[i] == name)
                return parse_fail(ps, node->line, SUMI_ERR_FORMAT, "parameter '%.*s' is repeated",
                                  (int)name->s->n, name->s->p);
        params->names[params->n++] = name;
        TRY(parse_step(ps));
        if (ps->now.kind == T_ASSIGN) {
            struct node *value;
            TRY(parse_step(ps));
            TRY(parse_expr(ps, true, &value));
            TRY(parse_push(ps, kids, value));
            params->n_default++;
        } else if (params->n_default) {
            return parse_fail(ps, node->line, SUMI_ERR_FORMAT,
                              "a parameter without default follows one with a default");
        }
    }
    return parse_step(ps);
}

/* A parameter of that name hides the special one. */
static void settle_special(struct parser *ps, struct params *params) {
    params->varargs = ps->frame.varargs;
    params->kwargs = ps->frame.kwargs;
    params->caller = ps->frame.caller;
    for (int i = 0; i < params->n; i++) {
        const struct str *s = params->names[i]->s;
        if (str_is(s, "varargs", 7)) params->varargs = false;
        if (str_is(s, "kwargs", 6)) params->kwargs = false;
        if (str_is(s, "caller", 6)) params->caller = false;
    }
}

static sumi_status parse_macro(struct parser *ps, struct node *node) {
    struct name *name;
    struct kids kids = {0};
    if (ps->now.kind != T_NAME) return parse_expected(ps, "name");
    TRY(parse_name(ps, ps->now.p, ps->now.n, &name));
    node->name = name;
    name->macro = node;
    TRY(parse_step(ps));
    struct frame outer = enter_frame(ps, true);
    TRY(parse_push(ps, &kids, NULL));
    TRY(parse_params(ps, node, &kids));
    TRY(parse_last_block(ps, "endmacro", &kids.v[0]));
    settle_special(ps, &node->params);
    leave_frame(ps, outer);
    return parse_close(ps, node, &kids);
}

static sumi_status parse_call_block(struct parser *ps, struct node *node) {
    struct kids kids = {0};
    struct node *call;
    struct frame outer = enter_frame(ps, true);
    TRY(parse_push(ps, &kids, NULL));
    if (ps->now.kind == T_LPAREN) TRY(parse_params(ps, node, &kids));
    struct frame own = ps->frame;
    ps->frame = outer;
    TRY(parse_expr(ps, true, &call));
    outer = ps->frame;
    ps->frame = own;
    if (call->kind != N_CALL)
        return parse_fail(ps, node->line, SUMI_ERR_FORMAT, "a call block needs a call");
    TRY(parse_last_block(ps, "endcall", &kids.v[0]));
    settle_special(ps, &node->params);
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, call));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_filter_block(struct parser *ps, struct node *node) {
    struct node *filter = NULL, *body;
    struct kids kids = {0};
    TRY(parse_filters(ps, true, &filter));
    struct frame outer = enter_frame(ps, false);
    TRY(parse_last_block(ps, "endfilter", &body));
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, filter));
    TRY(parse_push(ps, &kids, body));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_with(struct parser *ps, struct node *node) {
    struct kids kids = {0};
    struct node *kid;
    while (ps->now.kind != T_BLOCK_END && ps->now.kind != T_COLON) {
        if (kids.n) TRY(parse_expect(ps, T_COMMA));
        TRY(parse_target(ps, NULL, false, &kid));
        TRY(parse_push(ps, &kids, kid));
        TRY(parse_expect(ps, T_ASSIGN));
        TRY(parse_expr(ps, true, &kid));
        TRY(parse_push(ps, &kids, kid));
    }
    struct frame outer = enter_frame(ps, false);
    TRY(parse_last_block(ps, "endwith", &kid));
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, kid));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_print(struct parser *ps, struct node *node) {
    struct kids kids = {0};
    struct node *kid;
    while (ps->now.kind != T_BLOCK_END) {
        if (kids.n) TRY(parse_expect(ps, T_COMMA));
        TRY(parse_expr(ps, true, &kid));
        TRY(parse_push(ps, &kids, kid));
    }
    return parse_close(ps, node, &kids);
}

/* `{% generation %}` only marks text for training; its body is a scope of its own. */
static sumi_status parse_generation(struct parser *ps, struct node *node) {
    struct kids kids = {0};
    struct node *body;
    struct frame outer = enter_frame(ps, true);
    TRY(parse_last_block(ps, "endgeneration", &body));
    leave_frame(ps, outer);
    TRY(parse_push(ps, &kids, body));
    return parse_close(ps, node, &kids);
}

static sumi_status parse_jump(struct parser *ps, struct node *node) {
    if (ps->frame.loops) return SUMI_OK;
    return parse_fail(ps, node->line, SUMI_ERR_FORMAT, "break or continue outside of a for");
}

static const struct {
    const char *tag;
    enum node_kind kind;
    sumi_status (*parse)(struct parser *ps, struct node *node);
} statements[] = {
    {"if", N_IF, parse_if},
    {"for", N_FOR, parse_for},
    {"set", N_SET, parse_set},
    {"macro", N_MACRO, parse_macro},
    {"call", N_CALL_BLOCK, parse_call_block},
    {"filter", N_FILTER_BLOCK, parse_filter_block},
    {"with", N_WITH, parse_with},
    {"print", N_PRINT, parse_print},
    {"generation", N_SCOPE, parse_generation},
    {"break", N_BREAK, parse_jump},
    {"continue", N_CONTINUE, parse_jump},
};

static sumi_status parse_statement(struct parser *ps, struct node **out) {
    static const char *const refused[] = {"block",      "extends", "include", "import", "from",
                                          "autoescape", "do",      "trans",   "debug"};
    int line = ps->tag_line = ps->now.line;
    if (ps->now.kind != T_NAME) return parse_expected(ps, "the name of a tag");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!parse_at_name(ps, statements[i].tag)) continue;
        TRY(parse_node(ps, statements[i].kind, line, out));
        TRY(parse_step(ps));
        TRY(statements[i].parse(ps, *out));
        return parse_expect(ps, T_BLOCK_END);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (parse_at_name(ps, refused[i]))
            return parse_fail(ps, line, SUMI_ERR_UNSUPPORTED, "the tag '%s' is not supported",
                              refused[i]);
    return parse_fail(ps, line, SUMI_ERR_FORMAT, "unexpected tag '%.*s'",
                      (int)(ps->now.n < 100 ? ps->now.n : 100), ps->now.p);
}

static sumi_status parse_text(struct parser *ps, struct node **out) {
    const struct str *s;
    TRY(parse_node(ps, N_TEXT, ps->now.line, out));
    TRY(parse_str(ps, ps->now.p, ps->now.n, &s));
    (*out)->value = v_str(s);
    return parse_step(ps);
}

static sumi_status parse_output(struct parser *ps, struct node **out) {
    struct kids kids = {0};
    struct node *value, *node;
    TRY(parse_node(ps, N_PRINT, ps->now.line, &node));
    TRY(parse_step(ps));
    TRY(parse_tuple(ps, true, false, NULL, &value));
    TRY(parse_push(ps, &kids, value));
    *out = node;
    TRY(parse_expect(ps, T_VAR_END));
    return parse_close(ps, node, &kids);
}

/* Statements up to a tag in ends (NULL: up to the end of the template). */
static sumi_status parse_until(struct parser *ps, const char *const *ends, struct node **out) {
    struct kids kids = {0};
    struct node *kid;
    int line = ps->tag_line;
    TRY(parse_enter(ps));
    for (;; ps->tag_line = line) {
        if (ps->now.kind == T_EOF) {
            if (!ends) break;
            return parse_fail(ps, ps->now.line, SUMI_ERR_FORMAT,
                              "end of template; the tag of line %d is not closed, '%s' is missing",
                              line,
                              ends[0] && ends[1] && ends[2] ? ends[2]
                              : ends[1]                     ? ends[1]
                                                            : ends[0]);
        }
        if (ps->now.kind == T_DATA) TRY(parse_text(ps, &kid));
        else if (ps->now.kind == T_VAR_BEGIN) TRY(parse_output(ps, &kid));
        else {
            TRY(parse_expect(ps, T_BLOCK_BEGIN));
            bool end = false;
            for (int i = 0; ends && ends[i]; i++) end |= parse_at_name(ps, ends[i]);
            if (end) break;
            TRY(parse_statement(ps, &kid));
        }
        TRY(parse_push(ps, &kids, kid));
    }
    ps->depth--;
    TRY(parse_node(ps, N_BLOCK, line, out));
    return parse_close(ps, *out, &kids);
}

sumi_status parse_body(struct parser *ps, struct node **out) {
    return parse_until(ps, NULL, out);
}
