/* Calls: arguments to parameters, and who is called. */
#include <string.h>

#include "text/template_eval.h"

/* The word of that number in a blank-separated list; NULL behind the last. */
static const char *word(const char *list, size_t i, size_t *n) {
    for (;; i--) {
        *n = strcspn(list, " ");
        if (!*n) return NULL;
        if (!i) return list;
        list += *n + (list[*n] == ' ');
    }
}

sumi_status tpl_bind(struct eval *ev, const char *what, const char *params, size_t needed,
                     const struct args *args, struct value *out) {
    size_t n_params = 0, n;
    const char *name;
    for (; (name = word(params, n_params, &n)) != NULL; n_params++)
        out[n_params] =
            n_params < args->n_pos ? args->pos[n_params] : (struct value){.kind = V_ABSENT};
    if (args->n_pos > n_params)
        return tpl_fail(ev, "%s takes at most %zu arguments, found %zu", what, n_params,
                        args->n_pos);
    for (size_t k = 0; k < args->n_kw; k++) {
        const struct str *key = args->kw[k].key.s;
        size_t i = 0;
        while ((name = word(params, i, &n)) != NULL && !str_is(key, name, n)) i++;
        if (!name) return tpl_fail(ev, "%s takes no argument '%.*s'", what, (int)key->n, key->p);
        if (out[i].kind != V_ABSENT)
            return tpl_fail(ev, "%s: two values for '%.*s'", what, (int)n, name);
        out[i] = args->kw[k].value;
    }
    for (size_t i = 0; i < needed; i++) {
        if (out[i].kind != V_ABSENT) continue;
        name = word(params, i, &n);
        return tpl_fail(ev, "%s needs the argument '%.*s'", what, (int)n, name);
    }
    return SUMI_OK;
}

sumi_status tpl_need_int(struct eval *ev, const struct value *v, const char *what, int64_t *out) {
    if (!v_is_int(v))
        return tpl_fail(ev, "%s: expected an integer, found %s", what, tpl_type_name(v));
    *out = v_int_of(v);
    return SUMI_OK;
}

sumi_status tpl_need_str(struct eval *ev, const struct value *v, const char *what,
                         const struct str **out) {
    if (v->kind != V_STR)
        return tpl_fail(ev, "%s: expected a string, found %s", what, tpl_type_name(v));
    *out = v->s;
    return SUMI_OK;
}

bool tpl_is_callable(const struct value *v) {
    switch (v->kind) {
    case V_UNDEF:
    case V_MACRO:
    case V_METHOD:
    case V_FUNCTION:
    case V_LOOP:
    case V_JOINER: return true;
    default: return false;
    }
}

/* Nothing the first time, the separator afterwards. */
static sumi_status call_joiner(struct eval *ev, struct joiner *joiner, struct value *out) {
    bool used = joiner->used;
    joiner->used = true;
    if (!used) return tpl_str(ev, "", 0, NULL, true, out);
    *out = joiner->separator;
    return SUMI_OK;
}

sumi_status tpl_call(struct eval *ev, const struct value *callee, const struct args *args,
                     struct value *out) {
    switch (callee->kind) {
    case V_MACRO: return tpl_call_macro(ev, callee->macro, args, out);
    case V_METHOD: return tpl_call_method(ev, callee->method, args, out);
    case V_FUNCTION: return tpl_call_function(ev, callee->sub, args, out);
    case V_LOOP: return tpl_loop_call(ev, callee->loop, args, out);
    case V_JOINER: return call_joiner(ev, callee->joiner, out);
    case V_UNDEF:
        if (callee->hint)
            return tpl_fail(ev, "'%.*s' is undefined and cannot be called", (int)callee->hint->n,
                            callee->hint->p);
        return tpl_fail(ev, "an undefined value cannot be called");
    default: return tpl_fail(ev, "a %s cannot be called", tpl_type_name(callee));
    }
}
