/* Values of a template: what Python's objects are to jinja2. Everything lives in the arena of one
 * rendering (constants in that of the template) and is immutable, except namespaces, iterators and
 * the variables of a scope. */
#ifndef SUMI_TEXT_TEMPLATE_VALUE_H
#define SUMI_TEXT_TEMPLATE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct node;
struct scope;

/* enumerator, Python's name of the type */
#define KIND_LIST(X)                                                                       \
    X(ABSENT, "absent") /* an argument that was not given */                               \
    X(UNDEF, "Undefined")                                                                  \
    X(NONE, "NoneType")                                                                    \
    X(BOOL, "bool")                                                                        \
    X(INT, "int")                                                                          \
    X(BIG, "int") /* an integer of the input over 63 bits: its digits */                   \
    X(FLOAT, "float")                                                                      \
    X(STR, "str")                                                                          \
    X(LIST, "list")                                                                        \
    X(TUPLE, "tuple")                                                                      \
    X(DICT, "dict")                                                                        \
    X(VIEW, "dict view") /* keys(), values(), items() */                                   \
    X(GEN, "generator")  /* what lazy filters return: can be walked once, has no length */ \
    X(RANGE, "range")                                                                      \
    X(NS, "Namespace")                                                                     \
    X(LOOP, "LoopContext")                                                                 \
    X(MACRO, "Macro")                                                                      \
    X(METHOD, "builtin_function_or_method")                                                \
    X(FUNCTION, "function")                                                                \
    X(JOINER, "Joiner")

enum value_kind {
#define X(name, text) V_##name,
    KIND_LIST(X)
#undef X
};

/* A string and the origin of its bytes. A trust boundary never lies inside a character. */
struct str {
    const char *p;       /* valid UTF-8, not NUL-terminated */
    size_t n;            /* bytes */
    size_t chars;        /* code points */
    const uint8_t *mask; /* [n] 1: from the template, or NULL: all bytes as `trusted` */
    bool trusted;
};

enum view_kind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

struct value {
    enum value_kind kind : 8;
    uint8_t sub; /* BOOL: truth; VIEW: enum view_kind; FUNCTION: enum function_id */
    union {
        int64_t i;
        double d;
        const struct str *s;     /* STR, BIG */
        const struct list *list; /* LIST, TUPLE, VIEW */
        const struct dict *dict;
        struct gen *gen;
        const struct range *range;
        struct ns *ns;
        struct loop *loop;
        const struct macro *macro;
        const struct method *method;
        const struct str *hint; /* UNDEF: its name, for messages; may be NULL */
        struct joiner *joiner;
    };
};

/* `trusted` of a container is the origin of the punctuation and the numbers when it is printed. */
struct list {
    const struct value *v;
    size_t n;
    bool trusted;
};

struct pair {
    struct value key, value;
};

struct dict {
    const struct pair *pairs; /* in insertion order */
    size_t n;
    const uint32_t *index; /* [n] numbers of the pairs by ascending key; NULL: not sorted */
    bool trusted;
};

struct gen {
    const struct list *list;
    size_t next;
};

struct range {
    int64_t start, stop, step; /* as given; absolute values below 2^62 */
    int64_t n;                 /* items */
};

struct ns {
    struct pair *pairs;
    size_t n, cap;
};

struct macro {
    const struct node *node; /* N_MACRO, N_CALL_BLOCK */
    struct scope *scope;     /* where it was defined */
};

struct method {
    struct value self;
    const struct method_info *info; /* template_method.c */
};

struct joiner {
    struct value separator;
    bool used;
};

static inline struct value v_none(void) {
    return (struct value){.kind = V_NONE};
}
static inline struct value v_undef(const struct str *hint) {
    return (struct value){.kind = V_UNDEF, .hint = hint};
}
static inline struct value v_bool(bool b) {
    return (struct value){.kind = V_BOOL, .sub = b};
}
static inline struct value v_int(int64_t i) {
    return (struct value){.kind = V_INT, .i = i};
}
static inline struct value v_float(double d) {
    return (struct value){.kind = V_FLOAT, .d = d};
}
static inline struct value v_str(const struct str *s) {
    return (struct value){.kind = V_STR, .s = s};
}
static inline struct value v_list(const struct list *l) {
    return (struct value){.kind = V_LIST, .list = l};
}
static inline struct value v_tuple(const struct list *l) {
    return (struct value){.kind = V_TUPLE, .list = l};
}

/* An int or a bool, as Python's int. */
static inline bool v_is_int(const struct value *v) {
    return v->kind == V_INT || v->kind == V_BOOL;
}
static inline int64_t v_int_of(const struct value *v) {
    return v->kind == V_BOOL ? v->sub : v->i;
}
static inline bool v_is_number(const struct value *v) {
    return v_is_int(v) || v->kind == V_FLOAT;
}
static inline double v_double_of(const struct value *v) {
    return v->kind == V_FLOAT ? v->d : (double)v_int_of(v);
}

/* A string value over memory that outlives it; NULL when memory is short. */
struct str *tpl_str_make(struct arena *a, const char *p, size_t n, const uint8_t *mask,
                         bool trusted);
static inline bool str_is(const struct str *s, const char *text, size_t n) {
    return s->n == n && __builtin_memcmp(s->p, text, n) == 0;
}
/* The origin of one byte. */
static inline bool str_trust(const struct str *s, size_t i) {
    return s->mask ? s->mask[i] : s->trusted;
}
size_t str_offset(const struct str *s, size_t chars); /* bytes of the first `chars` code points */

const char *tpl_type_name(const struct value *v);
/* Python's bool(). */
bool tpl_truth(const struct value *v);
/* Value of a key, or NULL. A key that is no scalar is never found. */
const struct value *tpl_dict_find(const struct dict *d, const struct value *key);
static inline size_t tpl_dict_cost(const struct dict *d) { /* steps of finding a key */
    return d->index ? 0 : d->n / 16;
}
const struct value *tpl_dict_str(const struct dict *d, const char *key, size_t n);

#endif
