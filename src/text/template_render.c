/* A template and its variables in, text and the origin of its bytes out. Holds the limits: steps,
 * bytes, memory. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "text/template_eval.h"

#define DEFAULT_STEPS  50000000
#define DEFAULT_OUTPUT ((size_t)64 << 20)
#define DEFAULT_DEPTH  200
/* Values die with the rendering, so a loop that builds strings is bounded by this sum. */
#define MEMORY_BASE   ((size_t)64 << 20)
#define MEMORY_FACTOR 8
/* Nodes under evaluation at once, per unit of max_depth. The costliest paths take 230 bytes of
 * stack a level, so that the default fits into a thread's 256 kB. */
#define LEVELS_PER_DEPTH 3

static sumi_status fault(struct eval *ev, sumi_status code, const char *fmt, va_list ap) {
    char what[900];
    vsnprintf(what, sizeof what, fmt, ap);
    return fail_with(ev->err, code, "chat template, line %d: %s", ev->line, what);
}

sumi_status tpl_fail(struct eval *ev, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    sumi_status status = fault(ev, SUMI_ERR_FORMAT, fmt, ap);
    va_end(ap);
    return status;
}

sumi_status tpl_limit(struct eval *ev, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    sumi_status status = fault(ev, SUMI_ERR_LIMIT, fmt, ap);
    va_end(ap);
    return status;
}

sumi_status tpl_no_memory(struct eval *ev) {
    if (ev->arena.full)
        return tpl_limit(ev, "its values take over %zu bytes of memory", ev->arena.max);
    return NO_MEMORY(ev->err, ev->arena.used);
}

sumi_status tpl_charge(struct eval *ev, size_t steps) {
    if (steps <= (size_t)ev->steps) {
        ev->steps -= (int64_t)steps;
        return SUMI_OK;
    }
    return tpl_limit(ev, "it takes over %lld steps; is there an endless loop?",
                     (long long)ev->limits.max_steps);
}

sumi_status tpl_descend(struct eval *ev) {
    if (++ev->level > LEVELS_PER_DEPTH * ev->limits.max_depth)
        return tpl_limit(ev, "statements and expressions nested over %d",
                         LEVELS_PER_DEPTH * ev->limits.max_depth);
    return tpl_charge(ev, 1);
}

sumi_status tpl_repeat(struct eval *ev, const struct str *s, int64_t times) {
    size_t n;
    if (times <= 0 || !s->n) return SUMI_OK;
    if (!size_mul(s->n, (size_t)times, &n) || n > ev->limits.max_output)
        return tpl_limit(ev, "its output is over %zu bytes", ev->limits.max_output);
    for (int64_t i = 0; i < times; i++) TRY(tpl_put_str(ev, s, 0, s->n));
    return SUMI_OK;
}

static sumi_status put(struct eval *ev, const char *p, size_t n, const uint8_t *mask,
                       bool trusted) {
    struct buf *text = &ev->out->text, *origin = &ev->out->trusted;
    if (n > ev->limits.max_output || text->len > ev->limits.max_output - n)
        return tpl_limit(ev, "its output is over %zu bytes", ev->limits.max_output);
    if (!n) return SUMI_OK;
    TRY(tpl_charge(ev, 1 + n / 256));
    size_t from = origin->len;
    buf_put(text, p, n);
    buf_put(origin, mask ? (const void *)mask : p, n);
    if (text->failed || origin->failed) return NO_MEMORY(ev->err, n);
    if (!mask) memset(origin->data + from, trusted, n);
    return SUMI_OK;
}

sumi_status tpl_put(struct eval *ev, const char *p, size_t n, bool trusted) {
    return put(ev, p, n, NULL, trusted);
}

sumi_status tpl_put_str(struct eval *ev, const struct str *s, size_t from, size_t n) {
    return put(ev, s->p + from, n, s->mask ? s->mask + from : NULL, s->trusted);
}

void tpl_drop(struct eval *ev, size_t mark) {
    ev->out->text.len = mark;
    ev->out->trusted.len = mark;
}

sumi_status tpl_take(struct eval *ev, size_t mark, struct value *out) {
    size_t n = ev->out->text.len - mark;
    const char *text = n ? ev->out->text.data + mark : "";
    const char *origin = n ? ev->out->trusted.data + mark : "";
    char *copy, *mask = NULL;
    TPL_NEW(ev, copy, n);
    memcpy(copy, text, n);
    bool trusted = n && origin[0];
    if (n && memchr(origin, !trusted, n)) {
        TPL_NEW(ev, mask, n);
        memcpy(mask, origin, n);
    }
    tpl_drop(ev, mark);
    return tpl_str(ev, copy, n, (const uint8_t *)mask, n ? trusted : true, out);
}

static sumi_status start(struct eval *ev) {
    int n = ev->t->n_names;
    TPL_NEW(ev, ev->globals, n);
    TPL_NEW(ev, ev->global_known, n);
    memset(ev->global_known, 0, (size_t)n * sizeof *ev->global_known);
    ev->scope = tpl_scope_new(ev, NULL);
    if (!ev->scope) return tpl_no_memory(ev);
    return SUMI_OK;
}

sumi_status chat_template_render(const struct chat_template *t, struct json_object *variables,
                                 const struct template_limits *limits, struct template_output *out,
                                 sumi_error *err) {
    struct eval ev = {.t = t, .variables = variables, .out = out, .err = err, .line = 1};
    if (limits) ev.limits = *limits;
    if (ev.limits.max_steps <= 0) ev.limits.max_steps = DEFAULT_STEPS;
    if (ev.limits.max_output == 0) ev.limits.max_output = DEFAULT_OUTPUT;
    if (ev.limits.max_depth <= 0) ev.limits.max_depth = DEFAULT_DEPTH;
    ev.steps = ev.limits.max_steps;
    ev.arena.max = ev.limits.max_output > SIZE_MAX / MEMORY_FACTOR - MEMORY_BASE
                       ? SIZE_MAX
                       : MEMORY_BASE + MEMORY_FACTOR * ev.limits.max_output;
    sumi_status status = start(&ev);
    if (status == SUMI_OK) status = tpl_exec(&ev, t->root);
    arena_reset(&ev.arena);
    return status;
}
