/* The global functions: range, dict, namespace, joiner, and transformers' raise_exception and
 * strftime_now. */
#include <string.h>

#include "base/utf8.h"
#include "text/template_eval.h"

#define MAX_RANGE 100000 /* jinja2's sandbox */
#define MAX_BOUND ((int64_t)1 << 62)

enum function_id { F_RANGE, F_DICT, F_NAMESPACE, F_JOINER, F_RAISE, F_STRFTIME };

static const struct {
    const char *name;
    enum function_id id;
} functions[] = {
    {"range", F_RANGE},           {"dict", F_DICT},
    {"namespace", F_NAMESPACE},   {"joiner", F_JOINER},
    {"raise_exception", F_RAISE}, {"strftime_now", F_STRFTIME},
};

bool tpl_function(const struct str *name, struct value *out) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!str_is(name, functions[i].name, strlen(functions[i].name))) continue;
        *out = (struct value){.kind = V_FUNCTION, .sub = (uint8_t)functions[i].id};
        return true;
    }
    return false;
}

const char *function_refused(const struct str *name) {
    static const char *const refused[] = {"cycler", "lipsum", "self", "super"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (str_is(name, refused[i], strlen(refused[i]))) return refused[i];
    return NULL;
}

static sumi_status call_range(struct eval *ev, const struct args *args, struct value *out) {
    struct range *r;
    int64_t part[3] = {0, 0, 1};
    if (args->n_kw || args->n_pos < 1 || args->n_pos > 3)
        return tpl_fail(ev, "range takes one to three integers");
    for (size_t i = 0; i < args->n_pos; i++) {
        TRY(tpl_need_int(ev, &args->pos[i], "range", &part[i]));
        if (part[i] > MAX_BOUND || part[i] < -MAX_BOUND)
            return tpl_limit(ev, "range: an integer over 62 bits");
    }
    if (args->n_pos == 1) {
        part[1] = part[0];
        part[0] = 0;
    }
    if (part[2] == 0) return tpl_fail(ev, "range: a step of 0");
    int64_t span = part[2] > 0 ? part[1] - part[0] : part[0] - part[1];
    int64_t step = part[2] > 0 ? part[2] : -part[2];
    int64_t n = span > 0 ? (span - 1) / step + 1 : 0;
    if (n > MAX_RANGE) return tpl_limit(ev, "a range of over %d items", MAX_RANGE);
    TPL_NEW(ev, r, 1);
    *r = (struct range){.start = part[0], .stop = part[1], .step = part[2], .n = n};
    *out = (struct value){.kind = V_RANGE, .range = r};
    return SUMI_OK;
}

/* dict(mapping or pairs, **members), also what a namespace starts with. */
static sumi_status call_dict(struct eval *ev, const struct args *args, struct value *out) {
    const struct list *items = NULL;
    const struct dict *from = NULL;
    size_t n = 0;
    if (args->n_pos > 1) return tpl_fail(ev, "dict takes at most one positional argument");
    if (args->n_pos && args->pos[0].kind == V_DICT) from = args->pos[0].dict;
    else if (args->n_pos) TRY(tpl_collect(ev, &args->pos[0], &items));
    struct pair *pairs;
    TPL_NEW(ev, pairs, (from ? from->n : items ? items->n : 0) + args->n_kw);
    for (; from && n < from->n; n++) pairs[n] = from->pairs[n];
    for (; items && n < items->n; n++) {
        const struct list *two;
        TRY(tpl_collect(ev, &items->v[n], &two));
        if (two->n != 2) return tpl_fail(ev, "dict: expected pairs, found %zu items", two->n);
        pairs[n] = (struct pair){two->v[0], two->v[1]};
    }
    for (size_t i = 0; i < args->n_kw; i++) pairs[n++] = args->kw[i];
    return tpl_new_dict(ev, pairs, n, from ? from->trusted : true, out);
}

static sumi_status call_namespace(struct eval *ev, const struct args *args, struct value *out) {
    struct value members;
    struct ns *ns;
    TRY(call_dict(ev, args, &members));
    TPL_NEW(ev, ns, 1);
    *ns = (struct ns){0};
    for (size_t i = 0; i < members.dict->n; i++) {
        const struct pair *p = &members.dict->pairs[i];
        const struct str *key;
        TRY(tpl_need_str(ev, &p->key, "namespace", &key));
        TRY(tpl_ns_set(ev, ns, key, p->value));
    }
    *out = (struct value){.kind = V_NS, .ns = ns};
    return SUMI_OK;
}

static sumi_status call_joiner(struct eval *ev, const struct args *args, struct value *out) {
    struct value separator;
    struct joiner *joiner;
    TRY(tpl_bind(ev, "joiner", "sep", 0, args, &separator));
    if (separator.kind == V_ABSENT) TRY(tpl_str(ev, ", ", 2, NULL, true, &separator));
    TPL_NEW(ev, joiner, 1);
    *joiner = (struct joiner){.separator = separator};
    *out = (struct value){.kind = V_JOINER, .joiner = joiner};
    return SUMI_OK;
}

sumi_status tpl_call_function(struct eval *ev, int id, const struct args *args, struct value *out) {
    struct value v;
    const struct str *s;
    switch ((enum function_id)id) {
    case F_RANGE: return call_range(ev, args, out);
    case F_DICT: return call_dict(ev, args, out);
    case F_NAMESPACE: return call_namespace(ev, args, out);
    case F_JOINER: return call_joiner(ev, args, out);
    case F_RAISE:
        TRY(tpl_bind(ev, "raise_exception", "message", 1, args, &v));
        TRY(tpl_to_str(ev, &v, &s));
        return fail_with(ev->err, SUMI_ERR_ARG, "%.*s",
                         (int)utf8_valid_prefix(s->p, s->n < 1000 ? s->n : 1000), s->p);
    case F_STRFTIME:
        TRY(tpl_bind(ev, "strftime_now", "format", 1, args, &v));
        TRY(tpl_need_str(ev, &v, "strftime_now", &s));
        return tpl_strftime(ev, s, out);
    }
    return tpl_fail(ev, "an unknown function");
}
