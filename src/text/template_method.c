/* The methods of dicts, lists and tuples, and how any method is found and called. */
#include <string.h>

#include "text/template_eval.h"

typedef const struct value *arg_t;

#define METHOD(name)                                                                      \
    static sumi_status name(TPL_UNUSED struct eval *ev, arg_t self, TPL_UNUSED arg_t arg, \
                            struct value *out)

static sumi_status view(struct eval *ev, const struct dict *d, enum view_kind kind,
                        struct value *out) {
    struct value *items;
    const struct list *l;
    TRY(tpl_charge(ev, d->n));
    TPL_NEW(ev, items, d->n);
    for (size_t i = 0; i < d->n; i++) {
        const struct pair *p = &d->pairs[i];
        if (kind == VIEW_ITEMS) TRY(tpl_pair(ev, p->key, p->value, d->trusted, &items[i]));
        else items[i] = kind == VIEW_KEYS ? p->key : p->value;
    }
    TRY(tpl_new_list(ev, items, d->n, d->trusted, &l));
    *out = (struct value){.kind = V_VIEW, .sub = (uint8_t)kind, .list = l};
    return SUMI_OK;
}
METHOD(m_keys) {
    return view(ev, self->dict, VIEW_KEYS, out);
}
METHOD(m_values) {
    return view(ev, self->dict, VIEW_VALUES, out);
}
METHOD(m_items) {
    return view(ev, self->dict, VIEW_ITEMS, out);
}

METHOD(m_get) {
    if (arg[0].kind == V_LIST || arg[0].kind == V_DICT)
        return tpl_fail(ev, "a %s cannot be a dict key", tpl_type_name(&arg[0]));
    TRY(tpl_charge(ev, tpl_dict_cost(self->dict)));
    const struct value *v = tpl_dict_find(self->dict, &arg[0]);
    *out = v ? *v : arg[1].kind == V_ABSENT ? v_none() : arg[1];
    return SUMI_OK;
}

/* Values do not change, so a copy is the value. */
METHOD(m_copy) {
    *out = *self;
    return SUMI_OK;
}

METHOD(m_count) {
    int64_t n = 0;
    for (size_t i = 0; i < self->list->n; i++) {
        bool same;
        TRY(tpl_equal(ev, &self->list->v[i], arg, &same));
        n += same;
    }
    *out = v_int(n);
    return SUMI_OK;
}

METHOD(m_index) {
    for (size_t i = 0; i < self->list->n; i++) {
        bool same;
        TRY(tpl_equal(ev, &self->list->v[i], arg, &same));
        if (!same) continue;
        *out = v_int((int64_t)i);
        return SUMI_OK;
    }
    return tpl_fail(ev, "index: the value is not in the list");
}

#define DICT (1u << V_DICT)
#define LIST (1u << V_LIST)
#define SEQ  (1u << V_LIST | 1u << V_TUPLE)

static const struct method_info methods[] = {
    {"get", DICT, "key default", 1, m_get, NULL},
    {"items", DICT, "", 0, m_items, NULL},
    {"keys", DICT, "", 0, m_keys, NULL},
    {"values", DICT, "", 0, m_values, NULL},
    {"copy", DICT | LIST, "", 0, m_copy, NULL},
    {"index", SEQ, "value", 1, m_index, NULL},
    {"count", SEQ, "value", 1, m_count, NULL},
    {"cycle", 1u << V_LOOP, NULL, 0, NULL, tpl_loop_cycle},
    {"changed", 1u << V_LOOP, NULL, 0, NULL, tpl_loop_changed},
    {"clear", DICT | LIST, "", 0, NULL, NULL},
    {"pop", DICT | LIST, "", 0, NULL, NULL},
    {"popitem", DICT, "", 0, NULL, NULL},
    {"setdefault", DICT, "", 0, NULL, NULL},
    {"update", DICT, "", 0, NULL, NULL},
    {"append", LIST, "", 0, NULL, NULL},
    {"extend", LIST, "", 0, NULL, NULL},
    {"insert", LIST, "", 0, NULL, NULL},
    {"remove", LIST, "", 0, NULL, NULL},
    {"reverse", LIST, "", 0, NULL, NULL},
    {"sort", LIST, "", 0, NULL, NULL},
};

const char *method_refused(const struct str *name) {
    static const char *const refused[] = {
        "casefold",     "encode",    "expandtabs", "format_map", "fromkeys",
        "isidentifier", "istitle",   "maketrans",  "translate",  "isprintable",
        "zfill",        "bit_count", "bit_length", "hex",        "is_integer",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (str_is(name, refused[i], strlen(refused[i]))) return refused[i];
    return NULL;
}

const struct method_info *method_find(const struct value *self, const struct str *name) {
    bool text = self->kind == V_STR;
    const struct method_info *table = text ? str_methods : methods;
    size_t n = text ? n_str_methods : sizeof methods / sizeof *methods;
    for (size_t i = 0; i < n; i++)
        if (table[i].types >> self->kind & 1 && str_is(name, table[i].name, strlen(table[i].name)))
            return &table[i];
    return NULL;
}

sumi_status tpl_call_method(struct eval *ev, const struct method *m, const struct args *args,
                            struct value *out) {
    struct value arg[MAX_PARAMS];
    if (m->info->raw) return m->info->raw(ev, &m->self, args, out);
    if (!m->info->run)
        return tpl_fail(ev, "%s() would change a %s, which templates must not", m->info->name,
                        tpl_type_name(&m->self));
    TRY(tpl_bind(ev, m->info->name, m->info->params, m->info->needed, args, arg));
    return m->info->run(ev, &m->self, arg, out);
}
