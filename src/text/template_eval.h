/* One rendering: its state, and what the parts of the evaluator offer each other. */
#ifndef SUMI_TEXT_TEMPLATE_EVAL_H
#define SUMI_TEXT_TEMPLATE_EVAL_H

#include "text/template_ast.h"

struct eval {
    const struct chat_template *t;
    struct json_object *variables;
    struct template_limits limits; /* no zeros left, except `now` */
    struct template_output *out;   /* captures are pushed behind the text so far, see tpl_take */
    struct arena arena;
    sumi_error *err;
    int64_t steps; /* left */
    int level;     /* nested nodes under evaluation */
    int calls;     /* nested macro calls */
    int line;      /* of the node under evaluation */
    struct scope *scope;
    struct value block; /* the text that a filter without subject works on */
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
    struct value *globals; /* [n_names] input variables, converted when first read */
    bool *global_known;    /* [n_names] */
};

/* Variables of a scope. ABSENT marks one that hides an outer one but is not set. */
struct binding {
    const struct name *name;
    struct value value;
};
struct scope {
    struct scope *outer;
    struct binding *vars;
    size_t n, cap;
    bool captured; /* a macro was defined in it or below: it cannot be reused */
};

struct args {
    const struct value *pos;
    size_t n_pos;
    const struct pair *kw; /* keys are strings */
    size_t n_kw;
};

struct iter {
    struct value of;
    size_t at; /* items or bytes done */
};

/* A list that grows. */
struct vec {
    struct value *v;
    size_t n, cap;
};

#define TPL_UNUSED __attribute__((unused)) /* parameters of functions that stand in tables */

#define TPL_NEW(ev, p, count)                                          \
    do {                                                               \
        (p) = arena_alloc(&(ev)->arena, (size_t)(count), sizeof *(p)); \
        if (!(p)) return tpl_no_memory(ev);                            \
    } while (0)

/* template_render.c: faults, limits, output */
sumi_status tpl_fail(struct eval *ev, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
sumi_status tpl_limit(struct eval *ev, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
sumi_status tpl_no_memory(struct eval *ev);
sumi_status tpl_charge(struct eval *ev, size_t steps);
sumi_status tpl_descend(struct eval *ev); /* one level and one step; pair with ev->level-- */
sumi_status tpl_put(struct eval *ev, const char *p, size_t n, bool trusted);
sumi_status tpl_put_str(struct eval *ev, const struct str *s, size_t from, size_t n);
sumi_status tpl_repeat(struct eval *ev, const struct str *s, int64_t times);
static inline size_t tpl_mark(const struct eval *ev) {
    return ev->out->text.len;
}
/* What was put since the mark becomes a string value and leaves the output. */
sumi_status tpl_take(struct eval *ev, size_t mark, struct value *out);
void tpl_drop(struct eval *ev, size_t mark);

/* template_value.c, template_seq.c */
sumi_status tpl_str(struct eval *ev, const char *p, size_t n, const uint8_t *mask, bool trusted,
                    struct value *out);
sumi_status tpl_from_json(struct eval *ev, struct json_object *o, int depth, struct value *out);
sumi_status tpl_new_list(struct eval *ev, const struct value *v, size_t n, bool trusted,
                         const struct list **out); /* v is kept */
sumi_status tpl_push(struct eval *ev, struct vec *vec, struct value v);
sumi_status tpl_pair(struct eval *ev, struct value a, struct value b, bool trusted,
                     struct value *out);
sumi_status tpl_gen(struct eval *ev, const struct list *l, struct value *out);
/* pairs are kept; a repeated key keeps its place and the last value. */
sumi_status tpl_new_dict(struct eval *ev, struct pair *pairs, size_t n, bool trusted,
                         struct value *out);
bool tpl_origin(const struct value *v); /* of a container's punctuation */

/* template_seq.c */
sumi_status tpl_iter(struct eval *ev, const struct value *v, struct iter *it);
sumi_status tpl_next(struct eval *ev, struct iter *it, struct value *out, bool *more);
sumi_status tpl_collect(struct eval *ev, const struct value *v, const struct list **out);
sumi_status tpl_length(struct eval *ev, const struct value *v, size_t *out);
bool tpl_has_length(const struct value *v);
sumi_status tpl_slice(struct eval *ev, const struct value *v, const struct value part[3],
                      struct value *out);
struct value tpl_range_at(const struct range *r, int64_t i);
bool tpl_is_iterable(const struct value *v);

/* template_compare.c */
sumi_status tpl_equal(struct eval *ev, const struct value *a, const struct value *b, bool *out);
sumi_status tpl_order(struct eval *ev, const struct value *a, const struct value *b, int *out);
sumi_status tpl_compare(struct eval *ev, int op, const struct value *a, const struct value *b,
                        bool *out);
sumi_status tpl_contains(struct eval *ev, const struct value *item, const struct value *in,
                         bool *out);
sumi_status tpl_sort(struct eval *ev, struct value *v, const struct value *keys, size_t n,
                     bool reverse);

/* template_arith.c */
sumi_status tpl_math(struct eval *ev, int op, const struct value *a, const struct value *b,
                     struct value *out);
sumi_status tpl_negate(struct eval *ev, const struct value *v, bool minus, struct value *out);

/* template_print.c: put the text of a value */
sumi_status tpl_print(struct eval *ev, const struct value *v); /* str() */
sumi_status tpl_repr(struct eval *ev, const struct value *v, bool trusted, int depth);
sumi_status tpl_to_str(struct eval *ev, const struct value *v, const struct str **out);
sumi_status tpl_put_double(struct eval *ev, double d, bool json, bool trusted);

/* template_json.c */
sumi_status tpl_json(struct eval *ev, const struct value *v, const struct value *options,
                     struct value *out);

/* template_string.c */
sumi_status tpl_sub(struct eval *ev, const struct str *s, size_t from, size_t n,
                    struct value *out); /* bytes */
sumi_status tpl_concat(struct eval *ev, const struct str *a, const struct str *b,
                       struct value *out);
enum side { SIDE_LEFT = 1, SIDE_RIGHT = 2, SIDE_BOTH = 3 };
sumi_status tpl_strip(struct eval *ev, const struct str *s, const struct str *chars, enum side side,
                      struct value *out);
/* sep NULL: white space; max < 0: no limit. */
sumi_status tpl_split(struct eval *ev, const struct str *s, const struct str *sep, int64_t max,
                      bool from_right, struct value *out);
sumi_status tpl_splitlines(struct eval *ev, const struct str *s, bool keep, struct value *out);
sumi_status tpl_replace(struct eval *ev, const struct str *s, const struct str *old,
                        const struct str *with, int64_t max, struct value *out);
sumi_status tpl_join(struct eval *ev, const struct str *sep, const struct value *items, bool strict,
                     struct value *out);
/* Position in bytes at or after `from`, or SIZE_MAX. */
size_t tpl_find(const struct str *s, size_t from, size_t to, const struct str *what);
size_t tpl_find_last(const struct str *s, size_t from, size_t to, const struct str *what);
enum case_kind { CASE_UPPER, CASE_LOWER, CASE_CAPITAL, CASE_TITLE, CASE_TITLE_FILTER, CASE_SWAP };
sumi_status tpl_case(struct eval *ev, const struct str *s, enum case_kind kind, struct value *out);
/* Adds `n` fill characters, share / 2 of them on the left. */
sumi_status tpl_pad(struct eval *ev, const struct str *s, const struct str *with, int64_t n,
                    int share, struct value *out);
sumi_status tpl_is_case(struct eval *ev, const struct str *s, bool upper, bool *out);

/* template_format.c */
sumi_status tpl_percent(struct eval *ev, const struct str *format, const struct value *arg,
                        struct value *out);
sumi_status tpl_format(struct eval *ev, const struct str *format, const struct args *args,
                       struct value *out);

/* template_time.c */
sumi_status tpl_strftime(struct eval *ev, const struct str *format, struct value *out);

/* template_expr.c */
sumi_status tpl_eval(struct eval *ev, const struct node *n, struct value *out);
/* caller, if not NULL, goes with the call as one more keyword argument. */
sumi_status tpl_eval_args(struct eval *ev, const struct node *n, const struct value *caller,
                          struct args *out);
sumi_status tpl_eval_call(struct eval *ev, const struct node *n, const struct value *caller,
                          struct value *out);
/* `out` may be `v`. */
sumi_status tpl_attr(struct eval *ev, const struct value *v, const struct str *name,
                     struct value *out);
sumi_status tpl_item(struct eval *ev, const struct value *v, const struct value *key,
                     struct value *out);

/* template_call.c */
sumi_status tpl_call(struct eval *ev, const struct value *callee, const struct args *args,
                     struct value *out);
/* Positional and keyword arguments to the parameters named in `params` ("a b c"); those not given
 * are ABSENT. The first `needed` must be given. */
sumi_status tpl_bind(struct eval *ev, const char *what, const char *params, size_t needed,
                     const struct args *args, struct value *out);
sumi_status tpl_need_int(struct eval *ev, const struct value *v, const char *what, int64_t *out);
sumi_status tpl_need_str(struct eval *ev, const struct value *v, const char *what,
                         const struct str **out);
bool tpl_is_callable(const struct value *v);

/* template_scope.c */
struct scope *tpl_scope_new(struct eval *ev, struct scope *outer);
sumi_status tpl_set(struct eval *ev, const struct name *name, struct value v);
sumi_status tpl_lookup(struct eval *ev, const struct name *name, struct value *out);
sumi_status tpl_ns_set(struct eval *ev, struct ns *ns, const struct str *key, struct value v);

/* template_exec.c */
sumi_status tpl_exec(struct eval *ev, const struct node *n);
sumi_status tpl_call_macro(struct eval *ev, const struct macro *m, const struct args *args,
                           struct value *out);

/* template_loop.c */
sumi_status tpl_for(struct eval *ev, const struct node *n);
sumi_status tpl_assign(struct eval *ev, const struct node *target, struct value v);
sumi_status tpl_loop_attr(struct eval *ev, struct loop *l, const struct str *name,
                          struct value *out);
sumi_status tpl_loop_call(struct eval *ev, struct loop *l, const struct args *args,
                          struct value *out);
sumi_status tpl_loop_cycle(struct eval *ev, const struct value *self, const struct args *args,
                           struct value *out);
sumi_status tpl_loop_changed(struct eval *ev, const struct value *self, const struct args *args,
                             struct value *out);

/* Filters, tests, methods, functions by name. */
#define MAX_PARAMS 6
struct filter {
    const char *name;
    const char *params; /* behind the subject; NULL: `raw` takes the arguments as they are */
    size_t needed;
    sumi_status (*bound)(struct eval *ev, const struct value *v, const struct value *arg,
                         struct value *out);
    sumi_status (*raw)(struct eval *ev, const struct value *v, const struct args *args,
                       struct value *out);
};
struct test {
    const char *name;
    int n_args;
    sumi_status (*run)(struct eval *ev, const struct value *v, const struct value *arg, bool *out);
};
const struct filter *filter_find(const struct str *name);
const struct test *test_find(const struct str *name);
bool filter_refused(const struct str *name);        /* jinja2 has it, this engine does not */
const char *method_refused(const struct str *name); /* NULL, or the name */
const char *function_refused(const struct str *name);
extern const struct filter seq_filters[], text_filters[]; /* end with a NULL name */
sumi_status tpl_filter(struct eval *ev, const struct filter *f, const struct value *v,
                       const struct args *args, struct value *out);
sumi_status tpl_test(struct eval *ev, const struct test *t, const struct value *v,
                     const struct args *args, bool *out);

/* template_method.c: methods of strings, dicts, lists and tuples. A method that would change its
 * object exists, but jinja2's sandbox makes it undefined: it has no `run`. */
struct method_info {
    const char *name;
    unsigned types;     /* 1 << enum value_kind, or-ed */
    const char *params; /* NULL: `raw` takes the arguments as they are */
    size_t needed;
    sumi_status (*run)(struct eval *ev, const struct value *self, const struct value *arg,
                       struct value *out);
    sumi_status (*raw)(struct eval *ev, const struct value *self, const struct args *args,
                       struct value *out);
};
const struct method_info *method_find(const struct value *self, const struct str *name);
sumi_status tpl_call_method(struct eval *ev, const struct method *m, const struct args *args,
                            struct value *out);
/* template_strmethod.c */
extern const struct method_info str_methods[];
extern const size_t n_str_methods;

/* template_function.c */
bool tpl_function(const struct str *name, struct value *out);
sumi_status tpl_call_function(struct eval *ev, int id, const struct args *args, struct value *out);

#endif
