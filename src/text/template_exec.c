/* Statements: their effect on output and variables. Macros run here. */
#include <string.h>

#include "text/template_eval.h"

/* A body with variables of its own. */
static sumi_status exec_inner(struct eval *ev, const struct node *body) {
    struct scope *outer = ev->scope;
    ev->scope = tpl_scope_new(ev, outer);
    if (!ev->scope) return tpl_no_memory(ev);
    TRY(tpl_exec(ev, body));
    ev->scope = outer;
    return SUMI_OK;
}

static sumi_status exec_block(struct eval *ev, const struct node *n) {
    for (int i = 0; i < n->hidden.n; i++)
        TRY(tpl_set(ev, n->hidden.v[i], (struct value){.kind = V_ABSENT}));
    for (int i = 0; i < n->n_kids && ev->flow == FLOW_ON; i++) TRY(tpl_exec(ev, n->kids[i]));
    return SUMI_OK;
}

static sumi_status exec_text(struct eval *ev, const struct node *n) {
    return tpl_put_str(ev, n->value.s, 0, n->value.s->n);
}

static sumi_status exec_print(struct eval *ev, const struct node *n) {
    for (int i = 0; i < n->n_kids; i++) {
        struct value v;
        TRY(tpl_eval(ev, n->kids[i], &v));
        TRY(tpl_print(ev, &v));
    }
    return SUMI_OK;
}

static sumi_status exec_if(struct eval *ev, const struct node *n) {
    int i = 0;
    for (; i + 1 < n->n_kids; i += 2) {
        struct value test;
        TRY(tpl_eval(ev, n->kids[i], &test));
        if (tpl_truth(&test)) return tpl_exec(ev, n->kids[i + 1]);
    }
    return i < n->n_kids ? tpl_exec(ev, n->kids[i]) : SUMI_OK;
}

static sumi_status exec_set(struct eval *ev, const struct node *n) {
    struct value v;
    TRY(tpl_eval(ev, n->kids[1], &v));
    return tpl_assign(ev, n->kids[0], v);
}

/* Runs the body with its output captured, and the filter over it. *done is false when the body
 * left by break or continue: then there is no value. */
static sumi_status capture(struct eval *ev, const struct node *body, const struct node *filter,
                           struct value *out, bool *done) {
    struct scope *outer = ev->scope;
    size_t mark = tpl_mark(ev);
    *done = false;
    ev->scope = tpl_scope_new(ev, outer);
    if (!ev->scope) return tpl_no_memory(ev);
    TRY(tpl_exec(ev, body));
    *done = ev->flow == FLOW_ON;
    if (!*done) tpl_drop(ev, mark);
    else {
        TRY(tpl_take(ev, mark, out));
        struct value block = ev->block;
        ev->block = *out;
        if (filter) TRY(tpl_eval(ev, filter, out));
        ev->block = block;
    }
    ev->scope = outer;
    return SUMI_OK;
}

static sumi_status exec_set_block(struct eval *ev, const struct node *n) {
    struct value v;
    bool done = false;
    TRY(capture(ev, n->kids[1], n->kids[2], &v, &done));
    return done ? tpl_assign(ev, n->kids[0], v) : SUMI_OK;
}

static sumi_status exec_filter_block(struct eval *ev, const struct node *n) {
    struct value v;
    bool done = false;
    TRY(capture(ev, n->kids[1], n->kids[0], &v, &done));
    return done ? tpl_print(ev, &v) : SUMI_OK;
}

/* The values are read outside of the new scope. */
static sumi_status exec_with(struct eval *ev, const struct node *n) {
    struct scope *outer = ev->scope, *inner = tpl_scope_new(ev, outer);
    if (!inner) return tpl_no_memory(ev);
    for (int i = 0; i + 1 < n->n_kids; i += 2) {
        struct value v;
        ev->scope = outer;
        TRY(tpl_eval(ev, n->kids[i + 1], &v));
        ev->scope = inner;
        TRY(tpl_assign(ev, n->kids[i], v));
    }
    ev->scope = inner;
    TRY(tpl_exec(ev, n->kids[n->n_kids - 1]));
    ev->scope = outer;
    return SUMI_OK;
}

static sumi_status exec_scope(struct eval *ev, const struct node *n) {
    return exec_inner(ev, n->kids[0]);
}

static sumi_status new_macro(struct eval *ev, const struct node *n, struct value *out) {
    struct macro *m;
    TPL_NEW(ev, m, 1);
    *m = (struct macro){n, ev->scope};
    for (struct scope *s = ev->scope; s && !s->captured; s = s->outer) s->captured = true;
    *out = (struct value){.kind = V_MACRO, .macro = m};
    return SUMI_OK;
}

static sumi_status exec_macro(struct eval *ev, const struct node *n) {
    struct value macro;
    TRY(new_macro(ev, n, &macro));
    return tpl_set(ev, n->name, macro);
}

static sumi_status exec_call_block(struct eval *ev, const struct node *n) {
    struct value caller, v;
    TRY(new_macro(ev, n, &caller));
    TRY(tpl_eval_call(ev, n->kids[n->n_kids - 1], &caller, &v));
    return tpl_print(ev, &v);
}

static sumi_status exec_break(struct eval *ev, TPL_UNUSED const struct node *n) {
    ev->flow = FLOW_BREAK;
    return SUMI_OK;
}

static sumi_status exec_continue(struct eval *ev, TPL_UNUSED const struct node *n) {
    ev->flow = FLOW_CONTINUE;
    return SUMI_OK;
}

static sumi_status (*const executors[N_COUNT])(struct eval *, const struct node *) = {
    [N_BLOCK] = exec_block,
    [N_TEXT] = exec_text,
    [N_PRINT] = exec_print,
    [N_IF] = exec_if,
    [N_FOR] = tpl_for,
    [N_SET] = exec_set,
    [N_SET_BLOCK] = exec_set_block,
    [N_FILTER_BLOCK] = exec_filter_block,
    [N_WITH] = exec_with,
    [N_SCOPE] = exec_scope,
    [N_MACRO] = exec_macro,
    [N_CALL_BLOCK] = exec_call_block,
    [N_BREAK] = exec_break,
    [N_CONTINUE] = exec_continue,
};

sumi_status tpl_exec(struct eval *ev, const struct node *n) {
    ev->line = n->line;
    TRY(tpl_descend(ev));
    TRY(executors[n->kind](ev, n));
    ev->level--;
    return SUMI_OK;
}

static sumi_status set_special(struct eval *ev, const char *text, struct value v) {
    const struct name *name = template_name(ev->t, text, strlen(text));
    return name ? tpl_set(ev, name, v) : SUMI_OK;
}

/* The keyword arguments that no parameter took: to `kwargs`, and `caller` to itself. */
static sumi_status take_keywords(struct eval *ev, const struct params *p, const struct args *args,
                                 const bool *taken) {
    static const struct str hint = {"caller", 6, 6, NULL, true};
    struct value caller = v_undef(&hint), rest;
    struct pair *left;
    size_t n = 0;
    TPL_NEW(ev, left, args->n_kw);
    for (size_t i = 0; i < args->n_kw; i++) {
        if (taken[i]) continue;
        if (p->caller && str_is(args->kw[i].key.s, "caller", 6)) caller = args->kw[i].value;
        else left[n++] = args->kw[i];
    }
    if (n && !p->kwargs)
        return tpl_fail(ev, "the macro takes no argument '%.*s'", (int)left[0].key.s->n,
                        left[0].key.s->p);
    if (p->caller) TRY(set_special(ev, "caller", caller));
    if (!p->kwargs) return SUMI_OK;
    TRY(tpl_new_dict(ev, left, n, true, &rest));
    return set_special(ev, "kwargs", rest);
}

static sumi_status take_positional(struct eval *ev, const struct params *p,
                                   const struct args *args) {
    size_t n = (size_t)p->n, more = args->n_pos > n ? args->n_pos - n : 0;
    const struct list *l;
    if (more && !p->varargs)
        return tpl_fail(ev, "the macro takes at most %zu arguments, found %zu", n, args->n_pos);
    if (!p->varargs) return SUMI_OK;
    TRY(tpl_new_list(ev, more ? args->pos + n : NULL, more, true, &l));
    return set_special(ev, "varargs", v_tuple(l));
}

/* Sets the parameters in the current scope: those given, then the defaults, which may read the
 * others. */
static sumi_status set_params(struct eval *ev, const struct node *n, const struct args *args) {
    const struct params *p = &n->params;
    bool *taken, *set;
    TPL_NEW(ev, taken, args->n_kw);
    TPL_NEW(ev, set, p->n);
    memset(taken, 0, args->n_kw);
    for (int i = 0; i < p->n; i++) {
        set[i] = (size_t)i < args->n_pos;
        struct value v = set[i] ? args->pos[i] : (struct value){.kind = V_ABSENT};
        for (size_t k = 0; !set[i] && k < args->n_kw; k++) {
            const struct str *key = args->kw[k].key.s;
            if (!str_is(p->names[i]->s, key->p, key->n)) continue;
            v = args->kw[k].value;
            taken[k] = set[i] = true;
        }
        TRY(tpl_set(ev, p->names[i], v));
    }
    TRY(take_keywords(ev, p, args, taken));
    TRY(take_positional(ev, p, args));
    for (int i = 0; i < p->n; i++) {
        struct value v = v_undef(p->names[i]->s);
        int k = i - (p->n - p->n_default);
        if (set[i]) continue;
        if (k >= 0) TRY(tpl_eval(ev, n->kids[1 + k], &v));
        TRY(tpl_set(ev, p->names[i], v));
    }
    return SUMI_OK;
}

sumi_status tpl_call_macro(struct eval *ev, const struct macro *m, const struct args *args,
                           struct value *out) {
    struct scope *outer = ev->scope;
    size_t mark = tpl_mark(ev);
    if (++ev->calls > ev->limits.max_depth)
        return tpl_limit(ev, "macros nested over %d", ev->limits.max_depth);
    ev->scope = tpl_scope_new(ev, m->scope);
    if (!ev->scope) return tpl_no_memory(ev);
    TRY(set_params(ev, m->node, args));
    TRY(tpl_exec(ev, m->node->kids[0]));
    ev->scope = outer;
    ev->calls--;
    return tpl_take(ev, mark, out);
}
