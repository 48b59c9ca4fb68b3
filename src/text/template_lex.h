/* Tokens of a template: text between tags, and the names, constants and signs inside them. */
#ifndef SUMI_TEXT_TEMPLATE_LEX_H
#define SUMI_TEXT_TEMPLATE_LEX_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define TPL_MAX_NESTING 100

/* enumerator, description in messages */
#define TOKEN_LIST(X)                          \
    X(EOF, "end of template")                  \
    X(DATA, "text")                            \
    X(VAR_BEGIN, "begin of print statement")   \
    X(VAR_END, "end of print statement")       \
    X(BLOCK_BEGIN, "begin of statement block") \
    X(BLOCK_END, "end of statement block")     \
    X(NAME, "name")                            \
    X(STRING, "string")                        \
    X(INT, "integer")                          \
    X(FLOAT, "float")                          \
    X(ADD, "+")                                \
    X(SUB, "-")                                \
    X(MUL, "*")                                \
    X(DIV, "/")                                \
    X(FLOORDIV, "//")                          \
    X(MOD, "%")                                \
    X(POW, "**")                               \
    X(TILDE, "~")                              \
    X(EQ, "==")                                \
    X(NE, "!=")                                \
    X(LT, "<")                                 \
    X(LE, "<=")                                \
    X(GT, ">")                                 \
    X(GE, ">=")                                \
    X(ASSIGN, "=")                             \
    X(DOT, ".")                                \
    X(COMMA, ",")                              \
    X(COLON, ":")                              \
    X(SEMICOLON, ";")                          \
    X(PIPE, "|")                               \
    X(LPAREN, "(")                             \
    X(RPAREN, ")")                             \
    X(LBRACKET, "[")                           \
    X(RBRACKET, "]")                           \
    X(LBRACE, "{")                             \
    X(RBRACE, "}")

enum token_kind {
#define X(name, text) T_##name,
    TOKEN_LIST(X)
#undef X
};

struct token {
    enum token_kind kind;
    int line;
    const char *p; /* DATA, NAME: in the source; STRING: decoded, in the arena */
    size_t n;
    union {
        int64_t i;
        double d;
    };
};

struct lexer {
    const char *s; /* borrowed: valid UTF-8, newlines are \n */
    size_t n, pos;
    int line;
    enum { LEX_ROOT, LEX_VAR, LEX_BLOCK } state;
    bool line_starting;   /* the last tag ended its line */
    struct token held[2]; /* found together with the text before them */
    int n_held;
    char open[TPL_MAX_NESTING]; /* brackets to close */
    int n_open;
    struct arena *arena;
    sumi_error *err;
};

/* Errors: FORMAT, LIMIT (brackets nested too deep, integers over 64 bits), MEMORY. */
sumi_status lex_next(struct lexer *lx, struct token *out);
const char *token_text(enum token_kind kind);

#endif
