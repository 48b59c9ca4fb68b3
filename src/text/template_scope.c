/* Variables: the scopes of statements, the input behind them, jinja2's globals last. */
#include <string.h>

#include "text/template_eval.h"

struct scope *tpl_scope_new(struct eval *ev, struct scope *outer) {
    struct scope *s = arena_alloc(&ev->arena, 1, sizeof *s);
    if (s) *s = (struct scope){.outer = outer};
    return s;
}

sumi_status tpl_set(struct eval *ev, const struct name *name, struct value v) {
    struct scope *s = ev->scope;
    TRY(tpl_charge(ev, s->n / 16));
    for (size_t i = 0; i < s->n; i++) {
        if (s->vars[i].name != name) continue;
        s->vars[i].value = v;
        return SUMI_OK;
    }
    if (s->n == s->cap) {
        struct binding *more;
        size_t cap = s->cap ? 2 * s->cap : 4;
        TPL_NEW(ev, more, cap);
        if (s->n) memcpy(more, s->vars, s->n * sizeof *more);
        s->vars = more;
        s->cap = cap;
    }
    s->vars[s->n++] = (struct binding){name, v};
    return SUMI_OK;
}

/* A variable of the input, converted once. */
static sumi_status input(struct eval *ev, const struct name *name, struct value *out) {
    struct value *known = &ev->globals[name->index];
    if (!ev->global_known[name->index]) {
        struct json_object *o = NULL;
        *known = (struct value){.kind = V_ABSENT};
        if (json_object_get_type(ev->variables) == json_type_object &&
            json_object_object_get_ex(ev->variables, name->s->p, &o))
            TRY(tpl_from_json(ev, o, 0, known));
        ev->global_known[name->index] = true;
    }
    *out = *known;
    return SUMI_OK;
}

sumi_status tpl_lookup(struct eval *ev, const struct name *name, struct value *out) {
    size_t walked = 0;
    for (const struct scope *s = ev->scope; s; s = s->outer) {
        for (size_t i = 0; i < s->n; i++) {
            if (s->vars[i].name != name) continue;
            *out = s->vars[i].value;
            if (out->kind == V_ABSENT) *out = v_undef(name->s);
            return tpl_charge(ev, (walked + i) / 16);
        }
        walked += s->n + 1;
    }
    TRY(tpl_charge(ev, walked / 16));
    TRY(input(ev, name, out));
    if (out->kind == V_ABSENT && !tpl_function(name->s, out)) *out = v_undef(name->s);
    return SUMI_OK;
}

sumi_status tpl_ns_set(struct eval *ev, struct ns *ns, const struct str *key, struct value v) {
    if (key->n && key->p[0] == '_')
        return tpl_fail(ev, "a namespace cannot hold '%.*s': the name starts with an underscore",
                        (int)key->n, key->p);
    TRY(tpl_charge(ev, ns->n / 16));
    for (size_t i = 0; i < ns->n; i++) {
        if (!str_is(ns->pairs[i].key.s, key->p, key->n)) continue;
        ns->pairs[i].value = v;
        return SUMI_OK;
    }
    if (ns->n == ns->cap) {
        struct pair *more;
        size_t cap = ns->cap ? 2 * ns->cap : 4;
        TPL_NEW(ev, more, cap);
        if (ns->n) memcpy(more, ns->pairs, ns->n * sizeof *more);
        ns->pairs = more;
        ns->cap = cap;
    }
    ns->pairs[ns->n++] = (struct pair){v_str(key), v};
    return SUMI_OK;
}
