/* Reasoning, content and calls flow in from a dialect; deltas and the whole message flow out. It
 * knows the rules of the API, not the syntax of any model. */
#include "chat/collect.h"

#include <string.h>

#include "base/mem.h"

bool chat_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void chat_strip(const char **s, size_t *n) {
    while (*n && chat_is_space((*s)[*n - 1])) --*n;
    while (*n && chat_is_space(**s)) {
        ++*s;
        --*n;
    }
}

bool chat_is_blank(const char *s, size_t n) {
    chat_strip(&s, &n);
    return n == 0;
}

void collect_reset(struct collect *c) {
    for (size_t i = 0; i < c->n_call; i++) {
        buf_reset(&c->call[i].name);
        buf_reset(&c->call[i].arguments);
    }
    mem_free(c->call);
    mem_free(c->delta);
    mem_free(c->span);
    mem_free(c->whole_call);
    buf_reset(&c->reasoning);
    buf_reset(&c->content);
    buf_reset(&c->held);
    buf_reset(&c->whole);
    *c = (struct collect){0};
}

/* The array with room for one more element, or NULL and sticky failure when memory is short. */
static void *grown(struct collect *c, void *items, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return items;
    size_t more = *cap ? *cap * 2 : 8;
    void *p = mem_resize(items, more, size);
    if (p) *cap = more;
    else c->failed = true;
    return p;
}

/* Appends to the buffer that the kind of delta belongs to. */
static void put(struct collect *c, enum delta_kind kind, struct buf *to, const char *s, size_t n) {
    int32_t call = kind >= DELTA_CALL_START ? (int32_t)c->n_call - 1 : 0;
    size_t at = to->len;
    buf_put(to, s, n);
    if (to->failed) c->failed = true;
    if (c->failed || !n) return;
    struct collect_span *last = c->n_span ? &c->span[c->n_span - 1] : NULL;
    if (last && last->kind == kind && last->call == call) {
        last->n += n;
        return;
    }
    struct collect_span *span = grown(c, c->span, c->n_span, &c->span_cap, sizeof *span);
    if (!span) return;
    c->span = span;
    span[c->n_span++] = (struct collect_span){.kind = kind, .call = call, .at = at, .n = n};
}

static void hold(struct collect *c, const char *s, size_t n) {
    buf_put(&c->held, s, n);
    if (c->held.failed) c->failed = true;
}

/* Writes what was held, then s, and holds the last `keep` bytes of s. */
static void put_held(struct collect *c, enum delta_kind kind, const char *s, size_t n,
                     size_t keep) {
    struct buf *to = kind == DELTA_REASONING ? &c->reasoning : &c->content;
    put(c, kind, to, buf_text(&c->held), c->held.len);
    buf_clear(&c->held);
    put(c, kind, to, s, n - keep);
    hold(c, s + n - keep, keep);
}

void collect_reasoning(struct collect *c, const char *s, size_t n) {
    size_t end = n;
    while (end && chat_is_space(s[end - 1])) end--;
    if (end) put_held(c, DELTA_REASONING, s, n, n - end);
    else hold(c, s, n);
}

void collect_end_reasoning(struct collect *c) {
    buf_clear(&c->held);
    c->content_begun = false;
}

void collect_content(struct collect *c, const char *s, size_t n) {
    if (!c->content_begun && chat_is_blank(s, n)) {
        hold(c, s, n);
        return;
    }
    c->content_begun = true;
    put_held(c, DELTA_CONTENT, s, n, 0);
}

void collect_end_content(struct collect *c) {
    buf_clear(&c->held);
    c->content_begun = false;
}

void collect_implied_reasoning(struct collect *c) {
    collect_end_content(c);
    c->n_implied = c->content.len;
}

void collect_call(struct collect *c, const char *name, size_t n) {
    c->call_shown = !c->drop_calls && !(c->single_call && c->n_call);
    if (!c->call_shown) return;
    struct collected_call *call = grown(c, c->call, c->n_call, &c->call_cap, sizeof *call);
    if (!call) {
        c->call_shown = false;
        return;
    }
    c->call = call;
    call += c->n_call++;
    *call = (struct collected_call){0};
    put(c, DELTA_CALL_START, &call->name, name, n);
}

void collect_arguments(struct collect *c, const char *s, size_t n) {
    if (c->call_shown) put(c, DELTA_CALL_ARGS, &c->call[c->n_call - 1].arguments, s, n);
}

void collect_end(struct collect *c) {
    if (!c->n_call) put_held(c, DELTA_CONTENT, "", 0, 0);
    collect_end_content(c);
}

static const char *span_text(struct collect *c, const struct collect_span *s) {
    switch (s->kind) {
    case DELTA_REASONING: return buf_text(&c->reasoning) + s->at;
    case DELTA_CONTENT: return buf_text(&c->content) + s->at;
    case DELTA_CALL_START: return buf_text(&c->call[s->call].name) + s->at;
    default: return buf_text(&c->call[s->call].arguments) + s->at;
    }
}

static sumi_status out_of_memory(sumi_error *err) {
    return fail_with(err, SUMI_ERR_MEMORY, "out of memory while an answer was parsed");
}

sumi_status collect_deltas(struct collect *c, const struct delta **out, size_t *n,
                           sumi_error *err) {
    *out = NULL;
    *n = 0;
    if (c->failed) return out_of_memory(err);
    if (!c->n_span) return SUMI_OK;
    struct delta *list = mem_resize(c->delta, c->n_span, sizeof *list);
    if (!list) return out_of_memory(err);
    c->delta = list;
    for (size_t i = 0; i < c->n_span; i++) {
        const struct collect_span *s = &c->span[i];
        list[i] =
            (struct delta){.kind = s->kind, .call = s->call, .text = span_text(c, s), .n = s->n};
    }
    *out = list;
    *n = c->n_span;
    return SUMI_OK;
}

void collect_clear_deltas(struct collect *c) {
    c->n_span = 0;
}

static sumi_status whole_reasoning(struct collect *c, const char **text, size_t *n,
                                   sumi_error *err) {
    *text = buf_text(&c->reasoning);
    *n = c->reasoning.len;
    if (!c->n_implied) return SUMI_OK;
    size_t end = c->n_implied;
    while (end && chat_is_space(c->content.data[end - 1])) end--;
    buf_clear(&c->whole);
    buf_put(&c->whole, c->content.data, end);
    buf_put(&c->whole, *text, *n);
    if (c->whole.failed) return NO_MEMORY(err, end + *n);
    *text = buf_text(&c->whole);
    *n = c->whole.len;
    return SUMI_OK;
}

static sumi_status whole_calls(struct collect *c, struct answer_message *out, sumi_error *err) {
    if (!c->n_call) return SUMI_OK;
    struct answer_call *list = mem_resize(c->whole_call, c->n_call, sizeof *list);
    if (!list) return NO_MEMORY(err, c->n_call * sizeof *list);
    c->whole_call = list;
    for (size_t i = 0; i < c->n_call; i++) {
        struct collected_call *call = &c->call[i];
        list[i] = (struct answer_call){.name = buf_text(&call->name),
                                       .name_len = call->name.len,
                                       .arguments = buf_text(&call->arguments),
                                       .arguments_len = call->arguments.len};
    }
    out->call = list;
    out->n_call = c->n_call;
    return SUMI_OK;
}

sumi_status collect_message(struct collect *c, bool strip_content, struct answer_message *out,
                            sumi_error *err) {
    *out = (struct answer_message){0};
    if (c->failed) return out_of_memory(err);
    TRY(whole_reasoning(c, &out->reasoning, &out->reasoning_len, err));
    TRY(whole_calls(c, out, err));
    out->content = buf_text(&c->content) + c->n_implied;
    out->content_len = c->content.len - c->n_implied;
    if (out->n_call && strip_content) chat_strip(&out->content, &out->content_len);
    if (!out->reasoning_len) out->reasoning = NULL;
    if (!out->content_len) out->content = NULL;
    return SUMI_OK;
}
