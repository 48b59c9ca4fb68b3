/* A parsed template as a tree, and the parser's state. */
#ifndef SUMI_TEXT_TEMPLATE_AST_H
#define SUMI_TEXT_TEMPLATE_AST_H

#include "text/template.h"
#include "text/template_lex.h"
#include "text/template_value.h"

/* What kids[] holds, by kind. Kids marked ? may be NULL.
 *   CONST                       (value)
 *   NAME                        (name)
 *   LIST, TUPLE                 items
 *   DICT                        key, value, key, value, ...
 *   ATTR                        object                            (name)
 *   ITEM                        object, subscript
 *   SLICE                       object, start?, stop?, step?
 *   CALL, FILTER, TEST          callee or subject?, positional..., keyword..., *args?, **kwargs?
 *                               (args; a FILTER without subject filters a block)
 *   NOT, NEG, POS               operand
 *   AND, OR, CONCAT             operands
 *   MATH, COMPARE               operands                          (ops[n_kids - 1])
 *   COND                        test, then, else?
 *   NS_REF                      assignment target a.b             (name, attr)
 *   BLOCK                       statements                        (hidden)
 *   PRINT                       expressions
 *   TEXT                        (value)
 *   IF                          test, body, test, body, ..., else?
 *   FOR                         target, iterable, filter?, body, else?    (flag: recursive)
 *   SET                         target, expression
 *   SET_BLOCK                   target, body, filter?
 *   FILTER_BLOCK                filter, body
 *   WITH                        target, value, target, value, ..., body
 *   SCOPE                       body
 *   MACRO                       body, defaults...                 (name, params)
 *   CALL_BLOCK                  body, defaults..., call           (params)
 *   BREAK, CONTINUE             nothing */
enum node_kind {
    N_CONST,
    N_NAME,
    N_LIST,
    N_TUPLE,
    N_DICT,
    N_ATTR,
    N_ITEM,
    N_SLICE,
    N_CALL,
    N_FILTER,
    N_TEST,
    N_NOT,
    N_NEG,
    N_POS,
    N_AND,
    N_OR,
    N_CONCAT,
    N_MATH,
    N_COMPARE,
    N_COND,
    N_NS_REF,
    N_BLOCK,
    N_PRINT,
    N_TEXT,
    N_IF,
    N_FOR,
    N_SET,
    N_SET_BLOCK,
    N_FILTER_BLOCK,
    N_WITH,
    N_SCOPE,
    N_MACRO,
    N_CALL_BLOCK,
    N_BREAK,
    N_CONTINUE,
    N_COUNT
};

/* An identifier; equal names are one object. Its text is NUL-terminated. */
struct name {
    const struct str *s;
    int index;                /* 0 .. n_names - 1 */
    bool read;                /* stands somewhere as a variable that is read */
    const struct node *macro; /* the last macro of that name, or NULL */
};

struct call_args {
    int n_pos, n_kw;
    const struct str **kw; /* [n_kw] */
    bool star, star2;      /* *args, **kwargs */
};

struct params {
    int n, n_default;             /* the last n_default have a default */
    const struct name **names;    /* [n] */
    bool varargs, kwargs, caller; /* the body uses these special names */
};

struct names {
    const struct name **v;
    int n;
};

struct node {
    enum node_kind kind : 8;
    bool flag;
    uint16_t height; /* levels of nodes below, this one included */
    int line;
    int n_kids;
    struct node **kids;
    const struct name *name;
    union {
        struct value value;
        const struct str *attr;
        const uint8_t *ops; /* enum token_kind, T_NAME for `in`, T_STRING for `not in` */
        struct params params;
        struct names hidden; /* BLOCK: template_names.c */
        struct {
            struct call_args args;
            union {
                const struct filter *filter;
                const struct test *test;
            };
        };
    };
};

struct chat_template {
    struct arena arena; /* holds everything below */
    const struct node *root;
    struct name **names; /* by index */
    int n_names, cap_names;
    struct name **table; /* [table_size] open addressing by hash of the text */
    size_t table_size;   /* a power of two, over 2 * n_names */
    bool wants_parts;
};

/* Where a body of statements stands: what `break` may leave, whose special names are used. */
struct frame {
    int loops; /* enclosing for statements that break reaches */
    bool varargs, kwargs, caller;
};

struct parser {
    struct lexer lx;
    struct token now, ahead;
    bool has_ahead;
    struct chat_template *t;
    sumi_error *err;
    int tag_line; /* of the innermost open statement */
    int depth;    /* recursion */
    int in_for;   /* enclosing for statements, where `loop` cannot be set */
    struct frame frame;
};

#define PARSE_NEW(ps, p, count)                                               \
    do {                                                                      \
        (p) = arena_alloc(&(ps)->t->arena, (size_t)(count), sizeof *(p));     \
        if (!(p)) return NO_MEMORY((ps)->err, (size_t)(count) * sizeof *(p)); \
    } while (0)

/* The kids of a node while their number is not known. */
struct kids {
    struct node **v;
    int n, cap;
};

sumi_status parse_fail(struct parser *ps, int line, sumi_status code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
sumi_status parse_step(struct parser *ps); /* to the next token */
sumi_status parse_peek(struct parser *ps); /* fills ps->ahead */
sumi_status parse_expect(struct parser *ps, enum token_kind kind);
sumi_status parse_expected(struct parser *ps, const char *what); /* fails: found another token */
bool parse_at_name(const struct parser *ps, const char *text);
sumi_status parse_enter(struct parser *ps); /* one level of recursion; pair with ps->depth-- */

sumi_status parse_node(struct parser *ps, enum node_kind kind, int line, struct node **out);
sumi_status parse_push(struct parser *ps, struct kids *k, struct node *kid);
/* Gives the kids to the node and checks the height. */
sumi_status parse_close(struct parser *ps, struct node *node, const struct kids *k);
sumi_status parse_name(struct parser *ps, const char *p, size_t n, struct name **out);
sumi_status parse_str(struct parser *ps, const char *p, size_t n, const struct str **out);
void parse_loaded(struct parser *ps, struct name *name);

/* An expression; with `cond`, an inline if may follow. */
sumi_status parse_expr(struct parser *ps, bool cond, struct node **out);
/* One or more expressions; a comma makes a tuple. `end`, if not NULL, is a name that ends it. */
sumi_status parse_tuple(struct parser *ps, bool cond, bool parenthesised, const char *end,
                        struct node **out);
sumi_status parse_target(struct parser *ps, const char *end, bool namespaces, struct node **out);
sumi_status parse_primary(struct parser *ps, struct node **out);
sumi_status parse_literal(struct parser *ps, struct value v, struct node **out);
sumi_status parse_postfix(struct parser *ps, struct node **out); /* .name [item] (call) */
sumi_status parse_call(struct parser *ps, struct node **out);
sumi_status parse_test(struct parser *ps, struct node **out); /* at `is` */
sumi_status parse_filters(struct parser *ps, bool inline_start, struct node **out);
sumi_status parse_body(struct parser *ps, struct node **out); /* the whole template */

/* Fills the lists of hidden names at the blocks. */
sumi_status template_bind(struct chat_template *t, struct node *root, sumi_error *err);
/* Sets what the tree says about itself: chat_template.wants_parts. */
sumi_status template_scan(struct chat_template *t, sumi_error *err);
struct name *template_name(const struct chat_template *t, const char *p, size_t n); /* or NULL */

#endif
