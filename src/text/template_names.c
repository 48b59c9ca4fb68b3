/* Which variables a body hides. jinja2 binds names before it runs: a body that sets a name before
 * it reads it, where no outer body knows that name, has a variable of its own from its first line
 * on. Inner bodies (loops, macros, captures) that read the name earlier find it undefined, even if
 * the input has a variable of that name. This pass walks the tree in jinja2's order and lists such
 * names at the body's block; everything else is left to the lookup through the scopes. */
#include <string.h>

#include "text/template_ast.h"

struct body {
    const struct body *outer;
    struct node *block; /* NULL: a scope without statements */
    int branches;       /* enclosing conditions within the body */
};

/* What has been met of a name in a body. */
struct met {
    const struct body *body;
    const struct name *name;
    bool known;      /* read, set or a parameter in the body itself */
    bool read_below; /* read by an inner body before that */
};

struct hidden {
    struct hidden *next;
    const struct body *body;
    const struct name *name;
};

struct pass {
    struct arena arena; /* of this pass */
    struct arena *tree;
    struct met *met; /* [size] open addressing */
    size_t size, n;
    struct hidden *hidden; /* candidates */
    sumi_error *err;
};

#define PASS_NEW(ps, p, count)                                                \
    do {                                                                      \
        (p) = arena_alloc(&(ps)->arena, (size_t)(count), sizeof *(p));        \
        if (!(p)) return NO_MEMORY((ps)->err, (size_t)(count) * sizeof *(p)); \
    } while (0)

static struct met *slot(const struct pass *ps, const struct body *body, const struct name *name) {
    uint64_t h = ((uint64_t)(uintptr_t)body >> 4) * 0x9E3779B97F4A7C15u;
    h = (h ^ (uint64_t)name->index) * 0x9E3779B97F4A7C15u;
    for (size_t at = (size_t)(h >> 32);; at++) {
        struct met *m = &ps->met[at & (ps->size - 1)];
        if (!m->body || (m->body == body && m->name == name)) return m;
    }
}

static sumi_status grow(struct pass *ps) {
    struct met *old = ps->met;
    size_t n = ps->size;
    ps->size = n ? 2 * n : 64;
    PASS_NEW(ps, ps->met, ps->size);
    memset(ps->met, 0, ps->size * sizeof *ps->met);
    for (size_t i = 0; i < n; i++)
        if (old[i].body) *slot(ps, old[i].body, old[i].name) = old[i];
    return SUMI_OK;
}

static sumi_status meet(struct pass *ps, const struct body *body, const struct name *name,
                        struct met **out) {
    if (2 * ps->n >= ps->size) TRY(grow(ps));
    *out = slot(ps, body, name);
    if ((*out)->body) return SUMI_OK;
    **out = (struct met){.body = body, .name = name};
    ps->n++;
    return SUMI_OK;
}

static sumi_status loaded(struct pass *ps, const struct body *body, const struct name *name) {
    struct met *m;
    TRY(meet(ps, body, name, &m));
    m->known = true;
    for (body = body->outer; body; body = body->outer) {
        TRY(meet(ps, body, name, &m));
        if (!m->known) m->read_below = true;
    }
    return SUMI_OK;
}

/* A parameter, or a name set under a condition, hides nothing before it is set. */
static sumi_status known(struct pass *ps, const struct body *body, const struct name *name) {
    struct met *m;
    TRY(meet(ps, body, name, &m));
    m->known = true;
    return SUMI_OK;
}

static sumi_status stored(struct pass *ps, const struct body *body, const struct name *name) {
    struct met *m;
    struct hidden *h;
    TRY(meet(ps, body, name, &m));
    bool candidate = !m->known && m->read_below && !body->branches;
    m->known = true;
    if (!candidate) return SUMI_OK;
    PASS_NEW(ps, h, 1);
    *h = (struct hidden){ps->hidden, body, name};
    ps->hidden = h;
    return SUMI_OK;
}

static sumi_status targets(struct pass *ps, const struct body *body, const struct node *n,
                           bool parameter) {
    if (n->kind == N_NS_REF) return loaded(ps, body, n->name);
    if (n->kind == N_NAME) return (parameter ? known : stored)(ps, body, n->name);
    for (int i = 0; i < n->n_kids; i++) TRY(targets(ps, body, n->kids[i], parameter));
    return SUMI_OK;
}

static sumi_status walk(struct pass *ps, struct body *body, struct node *n);

static sumi_status walk_kids(struct pass *ps, struct body *body, const struct node *n, int from,
                             int to) {
    for (int i = from; i < to; i++)
        if (n->kids[i]) TRY(walk(ps, body, n->kids[i]));
    return SUMI_OK;
}

static sumi_status enter(struct pass *ps, const struct body *outer, struct node *block,
                         struct body **out) {
    PASS_NEW(ps, *out, 1);
    **out = (struct body){.outer = outer, .block = block};
    return SUMI_OK;
}

static sumi_status walk_for(struct pass *ps, struct body *body, struct node *n) {
    struct body *inner;
    TRY(walk(ps, body, n->kids[1]));
    for (int i = 2; i <= 4; i++) { /* the condition, the body, the else part */
        if (!n->kids[i]) continue;
        TRY(enter(ps, body, i == 2 ? NULL : n->kids[i], &inner));
        if (i < 4) TRY(targets(ps, inner, n->kids[0], true));
        TRY(walk(ps, inner, n->kids[i]));
    }
    return SUMI_OK;
}

static sumi_status walk_macro(struct pass *ps, struct body *body, struct node *n) {
    struct body *inner;
    int defaults_end = 1 + n->params.n_default;
    if (n->kind == N_MACRO) TRY(stored(ps, body, n->name));
    else TRY(walk(ps, body, n->kids[n->n_kids - 1]));
    TRY(enter(ps, body, n->kids[0], &inner));
    for (int i = 0; i < n->params.n; i++) TRY(known(ps, inner, n->params.names[i]));
    TRY(walk_kids(ps, inner, n, 1, defaults_end));
    return walk(ps, inner, n->kids[0]);
}

static sumi_status walk_capture(struct pass *ps, struct body *body, struct node *n) {
    struct body *inner;
    bool set = n->kind == N_SET_BLOCK;
    if (!set) TRY(walk(ps, body, n->kids[0]));
    TRY(enter(ps, body, n->kids[1], &inner));
    TRY(walk(ps, inner, n->kids[1]));
    if (!set) return SUMI_OK;
    if (n->kids[2]) TRY(walk(ps, inner, n->kids[2]));
    return targets(ps, body, n->kids[0], false); /* what is captured may read the name before */
}

static sumi_status walk_with(struct pass *ps, struct body *body, struct node *n) {
    struct body *inner;
    int last = n->n_kids - 1;
    for (int i = 1; i < last; i += 2) TRY(walk(ps, body, n->kids[i]));
    TRY(enter(ps, body, n->kids[last], &inner));
    for (int i = 0; i < last; i += 2) TRY(targets(ps, inner, n->kids[i], true));
    return walk(ps, inner, n->kids[last]);
}

static sumi_status walk_if(struct pass *ps, struct body *body, struct node *n) {
    TRY(walk(ps, body, n->kids[0]));
    body->branches++;
    TRY(walk_kids(ps, body, n, 1, n->n_kids));
    body->branches--;
    return SUMI_OK;
}

static sumi_status walk(struct pass *ps, struct body *body, struct node *n) {
    struct body *inner;
    switch (n->kind) {
    case N_NAME: return loaded(ps, body, n->name);
    case N_SET: TRY(walk(ps, body, n->kids[1])); return targets(ps, body, n->kids[0], false);
    case N_IF: return walk_if(ps, body, n);
    case N_FOR: return walk_for(ps, body, n);
    case N_MACRO:
    case N_CALL_BLOCK: return walk_macro(ps, body, n);
    case N_SET_BLOCK:
    case N_FILTER_BLOCK: return walk_capture(ps, body, n);
    case N_WITH: return walk_with(ps, body, n);
    case N_SCOPE: TRY(enter(ps, body, n->kids[0], &inner)); return walk(ps, inner, n->kids[0]);
    default: return walk_kids(ps, body, n, 0, n->n_kids);
    }
}

/* A candidate stays if no outer body knows the name. */
static sumi_status hide(struct pass *ps, const struct hidden *h) {
    for (const struct body *b = h->body->outer; b; b = b->outer)
        if (slot(ps, b, h->name)->known) return SUMI_OK;
    struct names *list = &h->body->block->hidden;
    if ((list->n & (list->n - 1)) == 0) { /* full at powers of two */
        const struct name **more =
            arena_alloc(ps->tree, list->n ? 2 * (size_t)list->n : 1, sizeof *more);
        if (!more) return NO_MEMORY(ps->err, sizeof *more);
        if (list->n) memcpy(more, list->v, (size_t)list->n * sizeof *more);
        list->v = more;
    }
    list->v[list->n++] = h->name;
    return SUMI_OK;
}

static sumi_status run(struct pass *ps, struct node *root) {
    struct body *body;
    TRY(enter(ps, NULL, root, &body));
    TRY(walk(ps, body, root));
    for (const struct hidden *h = ps->hidden; h; h = h->next) TRY(hide(ps, h));
    return SUMI_OK;
}

sumi_status template_bind(struct chat_template *t, struct node *root, sumi_error *err) {
    struct pass ps = {.tree = &t->arena, .err = err};
    sumi_status status = run(&ps, root);
    arena_reset(&ps.arena);
    return status;
}
