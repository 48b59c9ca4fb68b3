/* Plays a text through the answer parser in different cuts and gathers what a client would see. */
#ifndef SUMI_TESTS_ANSWER_PLAY_H
#define SUMI_TESTS_ANSWER_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "chat/dialect.h"
#include "chat_tokens.h"
#include "text/stream.h"

enum cut { CUT_WHOLE, CUT_CHARACTERS, CUT_TOKENS, CUT_RANDOM, N_CUT };

enum { MAX_CALLS = 16 };

struct heard {
    struct buf reasoning, content;
    struct buf name[MAX_CALLS], arguments[MAX_CALLS];
    int n_call;
    int n_delta;
    int n_reasoning_token;
    struct buf whole; /* "reasoning|content|name arguments|..." of the whole-response form */
};

static inline void heard_reset(struct heard *h) {
    buf_reset(&h->reasoning);
    buf_reset(&h->content);
    buf_reset(&h->whole);
    for (int i = 0; i < MAX_CALLS; i++) {
        buf_reset(&h->name[i]);
        buf_reset(&h->arguments[i]);
    }
    *h = (struct heard){0};
}

static inline void hear(struct heard *h, const struct delta *d, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_true(d[i].n > 0);
        h->n_delta++;
        if (i) assert_false(d[i].kind == d[i - 1].kind && d[i].call == d[i - 1].call);
        switch (d[i].kind) {
        case DELTA_REASONING: buf_put(&h->reasoning, d[i].text, d[i].n); break;
        case DELTA_CONTENT: buf_put(&h->content, d[i].text, d[i].n); break;
        case DELTA_CALL_START:
            assert_int_equal(d[i].call, h->n_call);
            assert_true(h->n_call < MAX_CALLS);
            buf_put(&h->name[h->n_call++], d[i].text, d[i].n);
            break;
        case DELTA_CALL_ARGS:
            assert_int_equal(d[i].call, h->n_call - 1);
            buf_put(&h->arguments[d[i].call], d[i].text, d[i].n);
            break;
        }
    }
}

static inline void whole_form(struct heard *h, struct answer *a) {
    struct answer_message m;
    sumi_error err = {0};
    assert_int_equal(answer_message(a, &m, &err), SUMI_OK);
    assert_true(!m.reasoning == !m.reasoning_len && !m.content == !m.content_len);
    buf_puts(&h->whole, m.reasoning ? "" : "null");
    buf_put(&h->whole, m.reasoning, m.reasoning_len);
    buf_puts(&h->whole, m.content ? "|" : "|null");
    buf_put(&h->whole, m.content, m.content_len);
    for (size_t i = 0; i < m.n_call; i++) {
        buf_putc(&h->whole, '|');
        buf_put(&h->whole, m.call[i].name, m.call[i].name_len);
        buf_putc(&h->whole, ' ');
        buf_put(&h->whole, m.call[i].arguments, m.call[i].arguments_len);
    }
    assert_int_equal(m.n_call, answer_calls(a));
}

static inline void push(struct answer *a, struct heard *h, const struct piece *p, size_t n) {
    const struct delta *d;
    size_t n_delta;
    sumi_error err = {0};
    assert_int_equal(answer_push(a, p, n, &d, &n_delta, &err), SUMI_OK);
    hear(h, d, n_delta);
}

/* Bytes of the next text piece of s[0..n), which holds no added token. */
static inline size_t text_cut(const char *s, size_t n, enum cut cut) {
    if (cut == CUT_WHOLE) return n;
    size_t want = cut == CUT_RANDOM ? 1 + (size_t)(rand() % 9) : 1, k = 0;
    while (k < n && want--) {
        uint32_t c;
        int len = utf8_decode(s + k, n - k, &c);
        k += len ? (size_t)len : 1;
    }
    return k;
}

static inline void push_ids(struct answer *a, struct heard *h, const struct tokenizer *t,
                            const struct ids *ids) {
    struct stream *s;
    const struct piece *p;
    size_t n;
    int stopped;
    sumi_error err = {0};
    assert_int_equal(stream_open(&s, t, &(struct stream_options){0}, &err), SUMI_OK);
    for (size_t i = 0; i < ids->n; i++) {
        answer_count_token(a, ids->data[i]);
        assert_int_equal(stream_push(s, ids->data[i], &p, &n, &stopped, &err), SUMI_OK);
        push(a, h, p, n);
    }
    assert_int_equal(stream_finish(s, &p, &n, &err), SUMI_OK);
    push(a, h, p, n);
    stream_close(s);
}

/* The pieces of one added token, or of a run of text. */
static inline void push_text(struct answer *a, struct heard *h, const struct tokenizer *t,
                             const struct ids *ids, enum cut cut) {
    struct buf text = {0};
    for (size_t i = 0; i < ids->n;) {
        if (tokenizer_is_added(t, ids->data[i])) {
            buf_clear(&text);
            tokenizer_decode(t, ids->data + i, 1, false, &text);
            push(a, h, &(struct piece){ids->data[i], text.data, text.len}, 1);
            i++;
            continue;
        }
        size_t end = i;
        while (end < ids->n && !tokenizer_is_added(t, ids->data[end])) end++;
        buf_clear(&text);
        tokenizer_decode(t, ids->data + i, end - i, false, &text);
        for (size_t at = 0, k; at < text.len; at += k) {
            k = text_cut(text.data + at, text.len - at, cut);
            push(a, h, &(struct piece){-1, text.data + at, k}, 1);
        }
        i = end;
    }
    buf_reset(&text);
}

/* All pieces of the answer in one push, as when one step yields many tokens. */
static inline void push_at_once(struct answer *a, struct heard *h, const struct tokenizer *t,
                                const struct ids *ids) {
    struct piece *list = calloc(ids->n + 1, sizeof *list);
    struct buf *text = calloc(ids->n + 1, sizeof *text);
    size_t n = 0;
    for (size_t i = 0; i < ids->n; n++) {
        size_t end = i + 1;
        bool added = tokenizer_is_added(t, ids->data[i]);
        while (!added && end < ids->n && !tokenizer_is_added(t, ids->data[end])) end++;
        tokenizer_decode(t, ids->data + i, end - i, false, &text[n]);
        list[n] = (struct piece){added ? ids->data[i] : -1, text[n].data, text[n].len};
        i = end;
    }
    push(a, h, list, n);
    for (size_t i = 0; i < n; i++) buf_reset(&text[i]);
    free(text);
    free(list);
}

static inline void encode(const struct tokenizer *t, const char *s, size_t n, struct ids *out) {
    sumi_error err = {0};
    assert_int_equal(tokenizer_encode(t, s, n, NULL, true, out, &err), SUMI_OK);
}

/* Plays text[0..n), in which the added tokens of t are recognised. */
static inline void play(struct heard *h, const struct tokenizer *t,
                        const struct answer_options *options, const char *text, size_t n,
                        bool complete, enum cut cut) {
    struct answer *a;
    const struct delta *d;
    size_t n_delta;
    sumi_error err = {0};
    struct ids ids = {0};
    encode(t, text, n, &ids);
    assert_int_equal(answer_open(&a, t, options, &err), SUMI_OK);
    if (cut == CUT_TOKENS) push_ids(a, h, t, &ids);
    else if (cut == CUT_WHOLE) push_at_once(a, h, t, &ids);
    else push_text(a, h, t, &ids, cut);
    h->n_reasoning_token = answer_reasoning_tokens(a);
    assert_int_equal(answer_finish(a, complete, &d, &n_delta, &err), SUMI_OK);
    hear(h, d, n_delta);
    whole_form(h, a);
    answer_close(a);
    mem_free(ids.data);
}

#endif
