/* The for statement, its `loop` object, and assignment to targets. */
#include <string.h>

#include "text/template_eval.h"

struct loop {
    const struct node *node;
    struct scope *outer; /* where the statement stands */
    struct iter it;
    bool filtered; /* the statement's condition is still to be applied to what `it` gives */
    int64_t index0;
    int64_t length; /* -1: not known */
    int depth0;
    struct value current, before;
    struct value after; /* read ahead of its turn; ABSENT: not yet */
    bool ended;         /* reading ahead met the end */
    const struct list *last_changed;
};

static sumi_status unpack(struct eval *ev, const struct node *target, const struct value *v) {
    struct iter it = {0};
    struct value item;
    bool more;
    TRY(tpl_iter(ev, v, &it));
    for (int i = 0;; i++) {
        TRY(tpl_next(ev, &it, &item, &more));
        if (more == (i == target->n_kids))
            return tpl_fail(ev, "unpacking: expected %d values, found %s", target->n_kids,
                            more ? "more" : "fewer");
        if (!more) return SUMI_OK;
        TRY(tpl_assign(ev, target->kids[i], item));
    }
}

sumi_status tpl_assign(struct eval *ev, const struct node *target, struct value v) {
    struct value ns;
    if (target->kind == N_NAME) return tpl_set(ev, target->name, v);
    if (target->kind == N_TUPLE) return unpack(ev, target, &v);
    TRY(tpl_lookup(ev, target->name, &ns));
    if (ns.kind != V_NS)
        return tpl_fail(ev, "'%.*s' is no namespace, its members cannot be set",
                        (int)target->name->s->n, target->name->s->p);
    return tpl_ns_set(ev, ns.ns, target->attr, v);
}

/* Whether an item passes the condition of `for ... if`. */
static sumi_status passes(struct eval *ev, struct loop *l, const struct value *item, bool *out) {
    struct scope *saved = ev->scope;
    struct value test;
    ev->scope = tpl_scope_new(ev, l->outer);
    if (!ev->scope) return tpl_no_memory(ev);
    TRY(tpl_assign(ev, l->node->kids[0], *item));
    TRY(tpl_eval(ev, l->node->kids[2], &test));
    ev->scope = saved;
    *out = tpl_truth(&test);
    return SUMI_OK;
}

static sumi_status pull(struct eval *ev, struct loop *l, struct value *out, bool *more) {
    for (bool pass = false; !pass;) {
        TRY(tpl_next(ev, &l->it, out, more));
        if (!*more) return SUMI_OK;
        pass = true;
        if (l->filtered) TRY(passes(ev, l, out, &pass));
    }
    return SUMI_OK;
}

static sumi_status peek(struct eval *ev, struct loop *l) {
    bool more;
    if (l->after.kind != V_ABSENT || l->ended) return SUMI_OK;
    TRY(pull(ev, l, &l->after, &more));
    if (more) return SUMI_OK;
    l->after.kind = V_ABSENT;
    l->ended = true;
    return SUMI_OK;
}

static sumi_status advance(struct eval *ev, struct loop *l, bool *more) {
    struct value next = l->after;
    *more = next.kind != V_ABSENT;
    l->after.kind = V_ABSENT;
    if (!*more && !l->ended) TRY(pull(ev, l, &next, more));
    if (!*more) return SUMI_OK;
    l->index0++;
    l->before = l->current;
    l->current = next;
    return SUMI_OK;
}

/* A condition hides the length, so the rest of the items is drawn. */
static sumi_status length_of(struct eval *ev, struct loop *l) {
    size_t n;
    if (l->length >= 0) return SUMI_OK;
    if (!l->filtered && tpl_has_length(&l->it.of)) {
        TRY(tpl_length(ev, &l->it.of, &n));
        l->length = (int64_t)n;
        return SUMI_OK;
    }
    struct vec rest = {0};
    const struct list *list;
    for (bool more = true;;) {
        struct value item;
        TRY(pull(ev, l, &item, &more));
        if (!more) break;
        TRY(tpl_push(ev, &rest, item));
    }
    TRY(tpl_new_list(ev, rest.v, rest.n, true, &list));
    l->it = (struct iter){.of = v_list(list)};
    l->filtered = false;
    l->length = (int64_t)rest.n + l->index0 + 1 + (l->after.kind != V_ABSENT);
    return SUMI_OK;
}

sumi_status tpl_loop_attr(struct eval *ev, struct loop *l, const struct str *name,
                          struct value *out) {
    *out = v_undef(name);
    if (str_is(name, "index0", 6)) *out = v_int(l->index0);
    else if (str_is(name, "index", 5)) *out = v_int(l->index0 + 1);
    else if (str_is(name, "first", 5)) *out = v_bool(l->index0 == 0);
    else if (str_is(name, "depth0", 6)) *out = v_int(l->depth0);
    else if (str_is(name, "depth", 5)) *out = v_int(l->depth0 + 1);
    else if (str_is(name, "previtem", 8)) {
        if (l->index0 > 0) *out = l->before;
    } else if (str_is(name, "nextitem", 8)) {
        TRY(peek(ev, l));
        if (!l->ended) *out = l->after;
    } else if (str_is(name, "last", 4)) {
        TRY(peek(ev, l));
        *out = v_bool(l->ended);
    } else if (str_is(name, "length", 6) || str_is(name, "revindex", 8) ||
               str_is(name, "revindex0", 9)) {
        TRY(length_of(ev, l));
        *out = v_int(name->n == 6   ? l->length
                     : name->n == 8 ? l->length - l->index0
                                    : l->length - l->index0 - 1);
    }
    return SUMI_OK;
}

sumi_status tpl_loop_cycle(struct eval *ev, const struct value *self, const struct args *args,
                           struct value *out) {
    if (!args->n_pos || args->n_kw) return tpl_fail(ev, "loop.cycle takes one or more values");
    *out = args->pos[(size_t)self->loop->index0 % args->n_pos];
    return SUMI_OK;
}

sumi_status tpl_loop_changed(struct eval *ev, const struct value *self, const struct args *args,
                             struct value *out) {
    struct loop *l = self->loop;
    struct value before = v_none(), now;
    const struct list *list;
    bool same = false;
    if (args->n_kw) return tpl_fail(ev, "loop.changed takes values only");
    TRY(tpl_new_list(ev, args->pos, args->n_pos, true, &list));
    now = v_tuple(list);
    if (l->last_changed) before = v_tuple(l->last_changed);
    TRY(tpl_equal(ev, &before, &now, &same));
    if (!same) l->last_changed = list;
    *out = v_bool(!same);
    return SUMI_OK;
}

/* One turn of the body in a scope that is reused unless a macro holds on to it. *complete is false
 * when the body left by break or continue. */
static sumi_status run_body(struct eval *ev, struct loop *l, const struct name *loop_name,
                            struct scope **scope, bool *complete) {
    *complete = false;
    if (!*scope || (*scope)->captured) {
        *scope = tpl_scope_new(ev, l->outer);
        if (!*scope) return tpl_no_memory(ev);
    }
    (*scope)->n = 0;
    ev->scope = *scope;
    TRY(tpl_assign(ev, l->node->kids[0], l->current));
    if (loop_name) TRY(tpl_set(ev, loop_name, (struct value){.kind = V_LOOP, .loop = l}));
    TRY(tpl_exec(ev, l->node->kids[3]));
    *complete = ev->flow == FLOW_ON;
    return SUMI_OK;
}

/* The loop over an iterable. As in jinja2, the else part runs unless some turn was complete. */
static sumi_status run(struct eval *ev, const struct node *n, struct scope *outer,
                       const struct value *iterable, int depth0) {
    const struct name *loop_name = template_name(ev->t, "loop", 4);
    struct scope *saved = ev->scope, *scope = NULL;
    struct loop *l;
    bool any = false, more;
    TPL_NEW(ev, l, 1);
    *l = (struct loop){.node = n,
                       .outer = outer,
                       .filtered = n->kids[2] != NULL,
                       .index0 = -1,
                       .length = -1,
                       .depth0 = depth0};
    TRY(tpl_iter(ev, iterable, &l->it));
    for (bool stop = false; !stop;) {
        bool complete = false;
        ev->scope = outer;
        TRY(advance(ev, l, &more));
        if (!more) break;
        TRY(run_body(ev, l, loop_name, &scope, &complete));
        any |= complete;
        stop = ev->flow == FLOW_BREAK;
        ev->flow = FLOW_ON;
    }
    if (!any && n->kids[4]) {
        ev->scope = tpl_scope_new(ev, outer);
        if (!ev->scope) return tpl_no_memory(ev);
        TRY(tpl_exec(ev, n->kids[4]));
    }
    ev->scope = saved;
    return SUMI_OK;
}

sumi_status tpl_for(struct eval *ev, const struct node *n) {
    struct value iterable;
    TRY(tpl_eval(ev, n->kids[1], &iterable));
    return run(ev, n, ev->scope, &iterable, 0);
}

sumi_status tpl_loop_call(struct eval *ev, struct loop *l, const struct args *args,
                          struct value *out) {
    struct value iterable;
    size_t mark = tpl_mark(ev);
    if (!l->node->flag) return tpl_fail(ev, "the loop is not marked 'recursive'");
    TRY(tpl_bind(ev, "loop", "iterable", 1, args, &iterable));
    if (++ev->calls > ev->limits.max_depth)
        return tpl_limit(ev, "loops nested over %d", ev->limits.max_depth);
    TRY(run(ev, l->node, l->outer, &iterable, l->depth0 + 1));
    ev->calls--;
    return tpl_take(ev, mark, out);
}
