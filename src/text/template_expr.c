/* Expressions: a tree in, a value out. One small function per kind of node, reached through a
 * table, so that a level of nesting costs little stack. */
#include <string.h>

#include "text/template_eval.h"

static sumi_status undefined_fault(struct eval *ev, const struct value *v) {
    if (v->hint) return tpl_fail(ev, "'%.*s' is undefined", (int)v->hint->n, v->hint->p);
    return tpl_fail(ev, "an undefined value has no members");
}

static sumi_status ns_member(struct eval *ev, const struct ns *ns, const struct str *name,
                             struct value *out) {
    TRY(tpl_charge(ev, ns->n / 16));
    *out = v_undef(name);
    for (size_t i = 0; i < ns->n; i++)
        if (str_is(ns->pairs[i].key.s, name->p, name->n)) *out = ns->pairs[i].value;
    return SUMI_OK;
}

static sumi_status bind_method(struct eval *ev, struct value self, const struct method_info *info,
                               struct value *out) {
    struct method *method;
    TPL_NEW(ev, method, 1);
    *method = (struct method){self, info};
    *out = (struct value){.kind = V_METHOD, .method = method};
    return SUMI_OK;
}

sumi_status tpl_attr(struct eval *ev, const struct value *v, const struct str *name,
                     struct value *out) {
    const struct method_info *info = method_find(v, name);
    const struct value *member;
    if (info && (info->run || info->raw)) return bind_method(ev, *v, info, out);
    if (info) {
        *out = v_undef(name);
        return SUMI_OK;
    }
    switch (v->kind) {
    case V_UNDEF: return undefined_fault(ev, v);
    case V_DICT:
        TRY(tpl_charge(ev, tpl_dict_cost(v->dict)));
        member = tpl_dict_str(v->dict, name->p, name->n);
        *out = member ? *member : v_undef(name);
        return SUMI_OK;
    case V_NS: return ns_member(ev, v->ns, name, out);
    case V_LOOP: return tpl_loop_attr(ev, v->loop, name, out);
    case V_MACRO:
        *out = v->macro->node->kind == N_MACRO && str_is(name, "name", 4)
                   ? v_str(v->macro->node->name->s)
                   : v_undef(name);
        return SUMI_OK;
    default: *out = v_undef(name); return SUMI_OK;
    }
}

/* The item of a sequence; outside of it there is an undefined value. */
static sumi_status index_of(struct eval *ev, const struct value *v, int64_t i, struct value *out) {
    size_t length;
    TRY(tpl_length(ev, v, &length));
    int64_t n = (int64_t)length;
    if (i < 0) i += n;
    if (i < 0 || i >= n) {
        *out = v_undef(NULL);
        return SUMI_OK;
    }
    if (v->kind == V_STR) {
        if (v->s->chars != v->s->n) TRY(tpl_charge(ev, v->s->n / 64));
        size_t from = str_offset(v->s, (size_t)i);
        return tpl_sub(ev, v->s, from, str_offset(v->s, (size_t)i + 1) - from, out);
    }
    *out = v->kind == V_RANGE ? tpl_range_at(v->range, i) : v->list->v[i];
    return SUMI_OK;
}

sumi_status tpl_item(struct eval *ev, const struct value *v, const struct value *key,
                     struct value *out) {
    const struct value *member;
    switch (v->kind) {
    case V_UNDEF: return undefined_fault(ev, v);
    case V_DICT:
        TRY(tpl_charge(ev, tpl_dict_cost(v->dict)));
        member = tpl_dict_find(v->dict, key);
        if (member) {
            *out = *member;
            return SUMI_OK;
        }
        break;
    case V_STR:
    case V_LIST:
    case V_TUPLE:
    case V_RANGE:
        if (v_is_int(key)) return index_of(ev, v, v_int_of(key), out);
        break;
    default: break;
    }
    if (key->kind == V_STR) return tpl_attr(ev, v, key->s, out);
    *out = v_undef(NULL);
    return SUMI_OK;
}

static sumi_status eval_const(TPL_UNUSED struct eval *ev, const struct node *n, struct value *out) {
    *out = n->value;
    return SUMI_OK;
}

static sumi_status eval_name(struct eval *ev, const struct node *n, struct value *out) {
    return tpl_lookup(ev, n->name, out);
}

static sumi_status eval_items(struct eval *ev, const struct node *n, struct value *out) {
    struct value *items;
    const struct list *l;
    TPL_NEW(ev, items, n->n_kids);
    for (int i = 0; i < n->n_kids; i++) TRY(tpl_eval(ev, n->kids[i], &items[i]));
    TRY(tpl_new_list(ev, items, (size_t)n->n_kids, true, &l));
    *out = n->kind == N_LIST ? v_list(l) : v_tuple(l);
    return SUMI_OK;
}

static sumi_status eval_dict(struct eval *ev, const struct node *n, struct value *out) {
    struct pair *pairs;
    TPL_NEW(ev, pairs, n->n_kids / 2);
    for (int i = 0; i < n->n_kids / 2; i++) {
        TRY(tpl_eval(ev, n->kids[2 * i], &pairs[i].key));
        TRY(tpl_eval(ev, n->kids[2 * i + 1], &pairs[i].value));
    }
    return tpl_new_dict(ev, pairs, (size_t)n->n_kids / 2, true, out);
}

static sumi_status eval_attr(struct eval *ev, const struct node *n, struct value *out) {
    struct value object;
    TRY(tpl_eval(ev, n->kids[0], &object));
    return tpl_attr(ev, &object, n->attr, out);
}

static sumi_status eval_item(struct eval *ev, const struct node *n, struct value *out) {
    struct value object, key;
    TRY(tpl_eval(ev, n->kids[0], &object));
    TRY(tpl_eval(ev, n->kids[1], &key));
    return tpl_item(ev, &object, &key, out);
}

static sumi_status eval_slice(struct eval *ev, const struct node *n, struct value *out) {
    struct value object, part[3] = {{.kind = V_ABSENT}, {.kind = V_ABSENT}, {.kind = V_ABSENT}};
    TRY(tpl_eval(ev, n->kids[0], &object));
    for (int i = 0; i < 3; i++)
        if (n->kids[i + 1]) TRY(tpl_eval(ev, n->kids[i + 1], &part[i]));
    return tpl_slice(ev, &object, part, out);
}

/* Appends `*args` to the positional values. */
static sumi_status add_star(struct eval *ev, const struct node *n, struct vec *pos) {
    struct value v;
    const struct list *l;
    TRY(tpl_eval(ev, n, &v));
    TRY(tpl_collect(ev, &v, &l));
    for (size_t i = 0; i < l->n; i++) TRY(tpl_push(ev, pos, l->v[i]));
    return SUMI_OK;
}

/* Appends `**kwargs` to the named values; `extra` places are left free behind them. */
static sumi_status add_star2(struct eval *ev, const struct node *n, struct args *args,
                             size_t extra) {
    struct value v;
    struct pair *all;
    TRY(tpl_eval(ev, n, &v));
    if (v.kind != V_DICT) return tpl_fail(ev, "** needs a mapping, found %s", tpl_type_name(&v));
    TPL_NEW(ev, all, args->n_kw + v.dict->n + extra);
    if (args->n_kw) memcpy(all, args->kw, args->n_kw * sizeof *all);
    for (size_t i = 0; i < v.dict->n; i++) {
        const struct str *key;
        TRY(tpl_need_str(ev, &v.dict->pairs[i].key, "**", &key));
        for (size_t k = 0; k < args->n_kw; k++)
            if (str_is(all[k].key.s, key->p, key->n))
                return tpl_fail(ev, "two values for '%.*s'", (int)key->n, key->p);
        all[args->n_kw + i] = v.dict->pairs[i];
    }
    args->kw = all;
    args->n_kw += v.dict->n;
    return SUMI_OK;
}

sumi_status tpl_eval_args(struct eval *ev, const struct node *n, const struct value *caller,
                          struct args *out) {
    const struct call_args *a = &n->args;
    struct node **kid = n->kids + 1;
    size_t n_pos = (size_t)a->n_pos, n_kw = (size_t)a->n_kw, extra = caller ? 1 : 0;
    *out = (struct args){0};
    struct vec pos = {.cap = n_pos};
    struct pair *kw = NULL;
    if (n_pos) TPL_NEW(ev, pos.v, n_pos);
    for (; pos.n < n_pos; pos.n++) TRY(tpl_eval(ev, *kid++, &pos.v[pos.n]));
    if (n_kw || extra) TPL_NEW(ev, kw, n_kw + extra);
    for (size_t i = 0; i < n_kw; i++) {
        kw[i].key = v_str(a->kw[i]);
        TRY(tpl_eval(ev, *kid++, &kw[i].value));
    }
    out->kw = kw;
    out->n_kw = n_kw;
    if (a->star) TRY(add_star(ev, *kid++, &pos));
    out->pos = pos.v;
    out->n_pos = pos.n;
    if (a->star2) TRY(add_star2(ev, *kid, out, extra));
    if (!caller) return SUMI_OK;
    static const struct str name = {"caller", 6, 6, NULL, true};
    struct pair *last = (struct pair *)(uintptr_t)&out->kw[out->n_kw++];
    *last = (struct pair){v_str(&name), *caller};
    return SUMI_OK;
}

sumi_status tpl_eval_call(struct eval *ev, const struct node *n, const struct value *caller,
                          struct value *out) {
    struct value callee;
    struct args args;
    const struct node *target = n->kids[0];
    if (target->kind == N_ATTR) {
        /* A method called where it is named needs no object of its own. */
        TRY(tpl_eval(ev, target->kids[0], &callee));
        const struct method_info *info = method_find(&callee, target->attr);
        if (info) {
            struct method method = {callee, info};
            TRY(tpl_eval_args(ev, n, caller, &args));
            return tpl_call_method(ev, &method, &args, out);
        }
        TRY(tpl_attr(ev, &callee, target->attr, &callee));
    } else {
        TRY(tpl_eval(ev, target, &callee));
    }
    TRY(tpl_eval_args(ev, n, caller, &args));
    return tpl_call(ev, &callee, &args, out);
}

static sumi_status eval_call(struct eval *ev, const struct node *n, struct value *out) {
    return tpl_eval_call(ev, n, NULL, out);
}

static sumi_status eval_filter(struct eval *ev, const struct node *n, struct value *out) {
    struct value subject = ev->block;
    struct args args;
    if (n->kids[0]) TRY(tpl_eval(ev, n->kids[0], &subject));
    TRY(tpl_eval_args(ev, n, NULL, &args));
    return tpl_filter(ev, n->filter, &subject, &args, out);
}

static sumi_status eval_test(struct eval *ev, const struct node *n, struct value *out) {
    struct value subject;
    struct args args;
    bool passed;
    TRY(tpl_eval(ev, n->kids[0], &subject));
    TRY(tpl_eval_args(ev, n, NULL, &args));
    TRY(tpl_test(ev, n->test, &subject, &args, &passed));
    *out = v_bool(passed);
    return SUMI_OK;
}

static sumi_status eval_unary(struct eval *ev, const struct node *n, struct value *out) {
    struct value v;
    TRY(tpl_eval(ev, n->kids[0], &v));
    if (n->kind != N_NOT) return tpl_negate(ev, &v, n->kind == N_NEG, out);
    *out = v_bool(!tpl_truth(&v));
    return SUMI_OK;
}

/* The first operand that decides, as in Python. */
static sumi_status eval_logic(struct eval *ev, const struct node *n, struct value *out) {
    for (int i = 0; i < n->n_kids; i++) {
        TRY(tpl_eval(ev, n->kids[i], out));
        if (tpl_truth(out) == (n->kind == N_OR)) break;
    }
    return SUMI_OK;
}

/* Operands are evaluated first: printing one while another is open would mix captures. */
static sumi_status eval_concat(struct eval *ev, const struct node *n, struct value *out) {
    struct value *part;
    TPL_NEW(ev, part, n->n_kids);
    for (int i = 0; i < n->n_kids; i++) TRY(tpl_eval(ev, n->kids[i], &part[i]));
    size_t mark = tpl_mark(ev);
    for (int i = 0; i < n->n_kids; i++) TRY(tpl_print(ev, &part[i]));
    return tpl_take(ev, mark, out);
}

static sumi_status eval_math(struct eval *ev, const struct node *n, struct value *out) {
    struct value right;
    TRY(tpl_eval(ev, n->kids[0], out));
    for (int i = 1; i < n->n_kids; i++) {
        TRY(tpl_eval(ev, n->kids[i], &right));
        TRY(tpl_math(ev, n->ops[i - 1], out, &right, out));
    }
    return SUMI_OK;
}

/* a < b < c holds if both do; the chain stops where one does not. */
static sumi_status eval_compare(struct eval *ev, const struct node *n, struct value *out) {
    struct value left, right;
    bool holds = true;
    TRY(tpl_eval(ev, n->kids[0], &left));
    for (int i = 1; holds && i < n->n_kids; i++) {
        TRY(tpl_eval(ev, n->kids[i], &right));
        TRY(tpl_compare(ev, n->ops[i - 1], &left, &right, &holds));
        left = right;
    }
    *out = v_bool(holds);
    return SUMI_OK;
}

static sumi_status eval_cond(struct eval *ev, const struct node *n, struct value *out) {
    struct value test;
    TRY(tpl_eval(ev, n->kids[0], &test));
    const struct node *branch = n->kids[tpl_truth(&test) ? 1 : 2];
    if (branch) return tpl_eval(ev, branch, out);
    *out = v_undef(NULL);
    return SUMI_OK;
}

static sumi_status (*const evaluators[N_COUNT])(struct eval *, const struct node *,
                                                struct value *) = {
    [N_CONST] = eval_const,     [N_NAME] = eval_name,     [N_LIST] = eval_items,
    [N_TUPLE] = eval_items,     [N_DICT] = eval_dict,     [N_ATTR] = eval_attr,
    [N_ITEM] = eval_item,       [N_SLICE] = eval_slice,   [N_CALL] = eval_call,
    [N_FILTER] = eval_filter,   [N_TEST] = eval_test,     [N_NOT] = eval_unary,
    [N_NEG] = eval_unary,       [N_POS] = eval_unary,     [N_AND] = eval_logic,
    [N_OR] = eval_logic,        [N_CONCAT] = eval_concat, [N_MATH] = eval_math,
    [N_COMPARE] = eval_compare, [N_COND] = eval_cond,
};

sumi_status tpl_eval(struct eval *ev, const struct node *n, struct value *out) {
    int line = ev->line;
    ev->line = n->line;
    TRY(tpl_descend(ev));
    sumi_status status = evaluators[n->kind](ev, n, out);
    ev->level--;
    if (status == SUMI_OK) ev->line = line;
    return status;
}
