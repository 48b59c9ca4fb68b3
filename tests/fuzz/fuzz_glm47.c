/* Any bytes as a model's answer: the parser must neither crash nor say different things for
 * different cuts of the same text, and the arguments of a complete answer must be JSON. The first
 * bytes choose the options, the vocabulary and the cuts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/chat_tokens.h"
#include "base/json.h"
#include "chat/dialect.h"

static struct tokenizer *tagged, *plain;
static struct json_object *tools;

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

static void open_fixture(void) {
    static const char *const tags[] = {GLM_ROLES, GLM_TAGS};
    static const char text[] =
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"$defs\":{\"d\":{\"type\":\"object\","
        "\"properties\":{\"n\":{\"type\":\"integer\"},\"r\":{\"$ref\":\"#/$defs/d\"}}}},"
        "\"properties\":{\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},"
        "\"x\":{\"type\":\"number\"},\"b\":{\"type\":\"boolean\"},\"z\":{\"type\":\"null\"},"
        "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}},"
        "\"d\":{\"$ref\":\"#/$defs/d\"},\"e\":{\"enum\":[1,\"a\",null]}}}}},{\"name\":\"fg\"}]";
    tagged = byte_tokenizer(tags, sizeof tags / sizeof *tags);
    plain = byte_tokenizer(NULL, 0);
    must(tagged && plain && json_parse(&tools, text, sizeof text - 1, "tools", NULL) == SUMI_OK,
         "fixture");
}

/* Everything said, as one text. */
struct said {
    struct buf reasoning, content, calls, whole;
};

static void note(struct said *s, const struct delta *d, size_t n) {
    for (size_t i = 0; i < n; i++) {
        must(d[i].n > 0, "empty delta");
        struct buf *to = d[i].kind == DELTA_REASONING ? &s->reasoning
                         : d[i].kind == DELTA_CONTENT ? &s->content
                                                      : &s->calls;
        if (d[i].kind == DELTA_CALL_START) buf_printf(to, "\n%d ", d[i].call);
        buf_put(to, d[i].text, d[i].n);
        if (d[i].kind == DELTA_CALL_START) buf_putc(to, ' ');
    }
}

static void note_message(struct said *s, const struct answer_message *m, bool complete) {
    buf_put(&s->whole, m->reasoning, m->reasoning_len);
    buf_putc(&s->whole, '\n');
    buf_put(&s->whole, m->content, m->content_len);
    struct buf calls = {0};
    for (size_t i = 0; i < m->n_call; i++) {
        const struct answer_call *c = &m->call[i];
        buf_printf(&calls, "\n%zu ", i);
        buf_put(&calls, c->name, c->name_len);
        buf_putc(&calls, ' ');
        buf_put(&calls, c->arguments, c->arguments_len);
        struct json_object *v = NULL;
        if (!complete) continue;
        must(json_parse(&v, c->arguments, c->arguments_len, "arguments", NULL) == SUMI_OK,
             "arguments are JSON");
        must(json_is(v, json_type_object), "arguments are an object");
        json_object_put(v);
    }
    must(calls.len == s->calls.len && !memcmp(buf_text(&calls), buf_text(&s->calls), calls.len),
         "streamed calls are the whole ones");
    buf_reset(&calls);
}

/* Length of the piece at the start of the text: an added token, or bytes that hold none. */
static size_t next_piece(const struct tokenizer *t, const char *s, size_t n, unsigned cut,
                         int32_t *id) {
    const int32_t *ids;
    size_t n_added = tokenizer_added(t, &ids), limit = cut ? 1 + cut % 7 : n;
    for (size_t at = 0; at < n && at < limit; at++) {
        for (size_t i = 0; i < n_added; i++) {
            size_t len;
            const char *text = tokenizer_bytes(t, ids[i], &len);
            if (n - at < len || memcmp(s + at, text, len) != 0) continue;
            *id = at ? -1 : ids[i];
            return at ? at : len;
        }
    }
    *id = -1;
    return limit < n ? limit : n;
}

static void play(struct said *s, const struct tokenizer *t, const struct answer_options *o,
                 const char *text, size_t n, bool complete, unsigned cut) {
    struct answer *a;
    struct answer_message m;
    const struct delta *d;
    size_t n_delta;
    must(answer_open(&a, t, o, NULL) == SUMI_OK, "open");
    for (size_t at = 0; at < n;) {
        struct piece p = {.text = text + at};
        p.n = next_piece(t, text + at, n - at, cut, &p.id);
        if (cut) cut = (cut * 1103515245u + 12345u) | 1;
        at += p.n;
        must(answer_push(a, &p, 1, &d, &n_delta, NULL) == SUMI_OK, "push");
        note(s, d, n_delta);
    }
    must(answer_finish(a, complete, &d, &n_delta, NULL) == SUMI_OK, "finish");
    note(s, d, n_delta);
    must(answer_message(a, &m, NULL) == SUMI_OK, "message");
    note_message(s, &m, complete);
    answer_close(a);
}

static void forget(struct said *s) {
    buf_reset(&s->reasoning);
    buf_reset(&s->content);
    buf_reset(&s->calls);
    buf_reset(&s->whole);
}

static void same(struct buf *a, struct buf *b, const char *what) {
    must(a->len == b->len && !memcmp(buf_text(a), buf_text(b), a->len), what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!tools) open_fixture();
    if (size < 3 || size > 4096) return 0;
    const struct dialect *glm = dialect_find("glm47");
    struct tokenizer *t = data[0] & 1 ? tagged : plain;
    static const int32_t open[] = {'<', 't', 'h', 'i', 'n', 'k', '>'};
    int32_t think = tokenizer_find(tagged, "<think>", 7);
    struct answer_options o = {.reasoning = data[0] & 2 ? NULL : glm,
                               .tools = data[0] & 4 ? NULL : glm,
                               .tool_list = data[0] & 8 ? NULL : tools,
                               .drop_calls = data[0] & 16,
                               .single_call = data[0] & 32,
                               .thinking = !(data[0] & 64)};
    bool complete = data[1] & 1;
    if (data[1] & 2) {
        o.prompt = data[0] & 1 ? &think : open;
        o.n_prompt = data[0] & 1 ? 1 : 7;
    }
    struct said whole = {0}, cut = {0};
    const char *text = (const char *)data + 3;
    play(&whole, t, &o, text, size - 3, complete, 0);
    play(&cut, t, &o, text, size - 3, complete, 1u + data[2]);
    same(&whole.reasoning, &cut.reasoning, "reasoning does not depend on cuts");
    same(&whole.content, &cut.content, "content does not depend on cuts");
    same(&whole.calls, &cut.calls, "calls do not depend on cuts");
    same(&whole.whole, &cut.whole, "the whole form does not depend on cuts");
    forget(&whole);
    forget(&cut);
    return 0;
}
