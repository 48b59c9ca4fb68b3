/* A chat template as a whole: source in, tree out, and what is known about it. */
#include "text/template.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/template_eval.h"

#define MAX_SOURCE ((size_t)1 << 20)

/* jinja2 reads \r\n and \r as \n, and leaves out the last line break. */
static sumi_status copy_source(struct chat_template *t, const char *source, size_t n,
                               struct lexer *lx, sumi_error *err) {
    char *copy = arena_alloc(&t->arena, n, 1);
    if (!copy) return NO_MEMORY(err, n);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (source[i] == '\r' && i + 1 < n && source[i + 1] == '\n') continue;
        copy[k++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (k && copy[k - 1] == '\n') k--;
    *lx = (struct lexer){
        .s = copy, .n = k, .line = 1, .line_starting = true, .arena = &t->arena, .err = err};
    return SUMI_OK;
}

static sumi_status parse(struct chat_template *t, const char *source, size_t n, sumi_error *err) {
    struct parser ps = {.t = t, .err = err};
    struct node *root;
    TRY(copy_source(t, source, n, &ps.lx, err));
    TRY(parse_step(&ps));
    TRY(parse_body(&ps, &root));
    TRY(template_bind(t, root, err));
    t->root = root;
    return template_scan(t, err);
}

sumi_status chat_template_parse(struct chat_template **out, const char *source, size_t n,
                                sumi_error *err) {
    *out = NULL;
    if (n > MAX_SOURCE)
        return fail_with(err, SUMI_ERR_LIMIT, "chat template: %zu bytes, the limit is %zu", n,
                         MAX_SOURCE);
    size_t valid = utf8_valid_prefix(source, n);
    if (valid < n)
        return fail_with(err, SUMI_ERR_FORMAT, "chat template: invalid UTF-8 at byte %zu", valid);
    struct chat_template *t = mem_zero(1, sizeof *t);
    if (!t) return NO_MEMORY(err, sizeof *t);
    sumi_status status = parse(t, source, n, err);
    if (status == SUMI_OK) *out = t;
    else chat_template_close(t);
    return status;
}

void chat_template_close(struct chat_template *t) {
    if (!t) return;
    arena_reset(&t->arena);
    mem_free(t);
}

bool chat_template_wants_parts(const struct chat_template *t) {
    return t->wants_parts;
}

bool chat_template_reads(const struct chat_template *t, const char *name) {
    const struct name *known = template_name(t, name, strlen(name));
    return known && known->read;
}
