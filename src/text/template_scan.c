/* What a template tells about itself before it runs: whether it walks the parts of a message's
 * content. Follows names from `messages` through assignments, loops and macro calls, without
 * regard to scopes. */
#include <string.h>

#include "text/template_eval.h"

enum role { IS_MESSAGES = 1, IS_MESSAGE = 2, IS_CONTENT = 4 };

struct scan {
    uint8_t *roles; /* [n_names] what a variable of that name may hold, of enum role */
    bool changed, found;
};

static bool is_key(const struct node *n, const char *key) {
    if (n->kind == N_ATTR) return str_is(n->attr, key, strlen(key));
    return n->kind == N_ITEM && n->kids[1]->kind == N_CONST && n->kids[1]->value.kind == V_STR &&
           str_is(n->kids[1]->value.s, key, strlen(key));
}

/* `message.get('content')`. */
static bool is_get(const struct node *n, const char *key) {
    return n->kind == N_CALL && n->kids[0]->kind == N_ATTR && str_is(n->kids[0]->attr, "get", 3) &&
           n->args.n_pos && n->kids[1]->kind == N_CONST && n->kids[1]->value.kind == V_STR &&
           str_is(n->kids[1]->value.s, key, strlen(key));
}

static unsigned role_of(const struct scan *s, const struct node *n) {
    unsigned roles = 0;
    if (!n) return 0;
    switch (n->kind) {
    case N_NAME: return s->roles[n->name->index];
    case N_FILTER: return role_of(s, n->kids[0]);
    case N_SLICE: return role_of(s, n->kids[0]) & (IS_MESSAGES | IS_CONTENT);
    case N_COND: return role_of(s, n->kids[1]) | role_of(s, n->kids[2]);
    case N_OR:
    case N_AND:
        for (int i = 0; i < n->n_kids; i++) roles |= role_of(s, n->kids[i]);
        return roles;
    case N_ATTR:
    case N_ITEM:
        roles = role_of(s, n->kids[0]);
        if (roles & IS_MESSAGE && is_key(n, "content")) return IS_CONTENT;
        return n->kind == N_ITEM && roles & IS_MESSAGES ? IS_MESSAGE : 0;
    case N_CALL:
        return is_get(n, "content") && role_of(s, n->kids[0]->kids[0]) & IS_MESSAGE ? IS_CONTENT
                                                                                    : 0;
    default: return 0;
    }
}

static void give_role(struct scan *s, const struct name *name, unsigned roles) {
    uint8_t *have = &s->roles[name->index];
    if ((*have | roles) == *have) return;
    *have = (uint8_t)(*have | roles);
    s->changed = true;
}

/* The arguments of a call to the parameters of the macro of that name. */
static void pass_arguments(struct scan *s, const struct node *call) {
    const struct node *macro = call->kids[0]->name->macro;
    for (int i = 0; macro && i < macro->params.n && i < call->args.n_pos; i++)
        give_role(s, macro->params.names[i], role_of(s, call->kids[1 + i]));
}

static void visit(struct scan *s, const struct node *n) {
    if (n->kind == N_SET && n->kids[0]->kind == N_NAME)
        give_role(s, n->kids[0]->name, role_of(s, n->kids[1]));
    if (n->kind == N_FOR) {
        unsigned roles = role_of(s, n->kids[1]);
        if (roles & IS_MESSAGES && n->kids[0]->kind == N_NAME)
            give_role(s, n->kids[0]->name, IS_MESSAGE);
        if (roles & IS_CONTENT) s->found = true;
    }
    if (n->kind == N_CALL && n->kids[0]->kind == N_NAME) pass_arguments(s, n);
    for (int i = 0; i < n->n_kids; i++)
        if (n->kids[i]) visit(s, n->kids[i]);
}

/* Enough for content that goes through several variables before their assignments in the text. */
#define ROUNDS 8

sumi_status template_scan(struct chat_template *t, sumi_error *err) {
    struct scan s = {.changed = true};
    const struct name *messages = template_name(t, "messages", 8);
    if (!messages) return SUMI_OK;
    s.roles = arena_alloc(&t->arena, (size_t)t->n_names, 1);
    if (!s.roles) return NO_MEMORY(err, t->n_names);
    memset(s.roles, 0, (size_t)t->n_names);
    s.roles[messages->index] = IS_MESSAGES;
    for (int i = 0; i < ROUNDS && s.changed && !s.found; i++) {
        s.changed = false;
        visit(&s, t->root);
    }
    t->wants_parts = s.found;
    return SUMI_OK;
}
