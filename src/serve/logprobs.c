/* Tokens with their logprobs in, JSON out. */
#include "serve/logprobs.h"

#include <json-c/json.h>
#include <math.h>

#include "base/jsonw.h"

static void put_logprob(struct buf *out, float x) {
    json_put_double(out, x < -9999.0f || !isfinite(x) ? -9999.0 : (double)x);
}

void logprobs_token_text(const struct logprobs_style *s, int32_t id, struct buf *out) {
    if (s->as_ids) buf_printf(out, "token_id:%d", id);
    else tokenizer_decode(s->tokenizer, &id, 1, false, out);
}

static bool is_listed(const struct token_list *list, int32_t id) {
    for (size_t i = 0; i < list->n; i++)
        if (list->id[i] == id) return true;
    return false;
}

/* Whether the i-th entry (the sampled token is 0) belongs into a list of `width` best ones. */
static bool shown(const struct logprobs_style *s, const struct token_event *e, size_t i,
                  int32_t width) {
    if (s->listed && s->listed->n) return is_listed(s->listed, e->top[i].id);
    return (int64_t)i < width;
}

static void put_member(const struct logprobs_style *s, int32_t id, float logprob, struct buf *out) {
    struct buf text = {0};
    logprobs_token_text(s, id, &text);
    buf_puts(out, "{\"token\":");
    json_put_string(out, buf_text(&text), text.len);
    buf_puts(out, ",\"logprob\":");
    put_logprob(out, logprob);
    buf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; i < text.len; i++)
        buf_printf(out, "%s%u", i ? "," : "", (unsigned)(unsigned char)text.data[i]);
    buf_putc(out, ']');
    if (text.failed) out->failed = true;
    buf_reset(&text);
}

void logprobs_put_chat(const struct logprobs_style *s, const struct token_event *e,
                       struct buf *list) {
    bool first = true;
    if (list->len) buf_putc(list, ',');
    put_member(s, e->id, e->n_top ? e->top[0].logprob : 0, list);
    buf_puts(list, ",\"top_logprobs\":[");
    for (size_t i = 0; i < e->n_top; i++) {
        if (!shown(s, e, i, s->k)) continue;
        if (!first) buf_putc(list, ',');
        first = false;
        put_member(s, e->top[i].id, e->top[i].logprob, list);
        buf_putc(list, '}');
    }
    buf_puts(list, "]}");
}

static size_t count_chars(const char *s, size_t n) {
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)s[i] & 0xC0) != 0x80;
    return chars;
}

/* Object of token text to logprob. Different tokens may show the same text: such keys merge, which
 * is why it goes through a real object. */
static void put_top(const struct logprobs_style *s, const struct token_event *e, struct buf *out) {
    struct json_object *top = json_object_new_object();
    struct buf key = {0}, number = {0};
    if (!top) out->failed = true;
    for (size_t i = 0; top && i < e->n_top; i++) {
        if (!shown(s, e, i, s->k + 1)) continue;
        buf_clear(&key);
        buf_clear(&number);
        logprobs_token_text(s, e->top[i].id, &key);
        if (json_object_object_get_ex(top, buf_text(&key), NULL)) continue;
        put_logprob(&number, e->top[i].logprob);
        struct json_object *x =
            json_object_new_double_s((double)e->top[i].logprob, buf_text(&number));
        if (!x || json_object_object_add(top, buf_text(&key), x) != 0) out->failed = true;
    }
    json_put_value(out, top, false);
    if (key.failed || number.failed) out->failed = true;
    json_object_put(top);
    buf_reset(&key);
    buf_reset(&number);
}

void logprobs_put_lists(const struct logprobs_style *s, const struct token_event *e,
                        struct logprobs_lists *l) {
    struct buf text = {0};
    const char *comma = l->token.len ? "," : "";
    logprobs_token_text(s, e->id, &text);
    buf_printf(&l->offset, "%s%zu", comma, l->chars);
    buf_puts(&l->token, comma);
    json_put_string(&l->token, buf_text(&text), text.len);
    buf_puts(&l->logprob, comma);
    buf_puts(&l->top, comma);
    if (e->n_top) {
        put_logprob(&l->logprob, e->top[0].logprob);
        put_top(s, e, &l->top);
    } else {
        buf_puts(&l->logprob, "null");
        buf_puts(&l->top, "null");
    }
    l->chars += count_chars(buf_text(&text), text.len);
    if (text.failed) l->token.failed = true;
    buf_reset(&text);
}

static void put_list(struct buf *out, const char *name, struct buf *list) {
    buf_printf(out, "\"%s\":[", name);
    buf_put(out, buf_text(list), list->len);
    buf_putc(out, ']');
    if (list->failed) out->failed = true;
    buf_clear(list);
}

void logprobs_write_lists(struct logprobs_lists *l, struct buf *out) {
    buf_putc(out, '{');
    put_list(out, "text_offset", &l->offset);
    buf_putc(out, ',');
    put_list(out, "token_logprobs", &l->logprob);
    buf_putc(out, ',');
    put_list(out, "tokens", &l->token);
    buf_putc(out, ',');
    put_list(out, "top_logprobs", &l->top);
    buf_putc(out, '}');
}

void logprobs_reset_lists(struct logprobs_lists *l) {
    buf_reset(&l->offset);
    buf_reset(&l->logprob);
    buf_reset(&l->token);
    buf_reset(&l->top);
    l->chars = 0;
}

void logprobs_write_prompt(const struct logprobs_style *s, const struct token_event *e, size_t n,
                           struct buf *out) {
    struct buf text = {0};
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(out, ',');
        if (!e[i].n_top) {
            buf_puts(out, "null");
            continue;
        }
        buf_putc(out, '{');
        for (size_t k = 0; k < e[i].n_top; k++) {
            const struct token_logprob *t = &e[i].top[k];
            buf_printf(out, "%s\"%d\":{\"logprob\":", k ? "," : "", t->id);
            put_logprob(out, t->logprob);
            buf_printf(out, ",\"rank\":%d,\"decoded_token\":", t->rank);
            buf_clear(&text);
            logprobs_token_text(s, t->id, &text);
            json_put_string(out, buf_text(&text), text.len);
            buf_putc(out, '}');
        }
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
    if (text.failed) out->failed = true;
    buf_reset(&text);
}
