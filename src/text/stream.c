/* In: token ids of one answer. Out: pieces of valid text as soon as nothing can change them any
 * more. Knows no markers and no protocol. */
#include "text/stream.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/stop.h"

/* Part of the held text; those with id -1 never stand side by side. */
struct segment {
    int32_t id;
    size_t start, end;
};

struct stream {
    const struct tokenizer *t;
    bool include_stop, skip_special, done;
    size_t min_tokens, n_token;
    struct stop_set stops;
    size_t *stop_len; /* [n_stop] owned */
    int32_t state;    /* of the stop search */
    char tail[3];     /* an incomplete character, its first n_primed bytes from the prompt */
    size_t n_tail, n_primed;
    struct buf text;      /* decoded; the first `released` bytes were given out by the last call */
    struct buf scratch;   /* tail and new bytes together */
    struct segment *part; /* [n_part] owned: covers text */
    struct piece *piece;  /* [part_cap] owned */
    size_t n_part, part_cap, released;
};

sumi_status stream_open(struct stream **out, const struct tokenizer *t,
                        const struct stream_options *options, sumi_error *err) {
    *out = NULL;
    for (size_t i = 0; i < options->n_stop; i++)
        if (!options->stop_len[i] || !utf8_valid(options->stop[i], options->stop_len[i]))
            return fail_param(err, SUMI_ERR_ARG, "stop",
                              "stop string %zu is empty or not valid UTF-8", i);
    struct stream *s = mem_zero(1, sizeof *s);
    if (!s) return NO_MEMORY(err, sizeof *s);
    s->t = t;
    s->include_stop = options->include_stop;
    s->skip_special = options->skip_special;
    s->min_tokens = options->min_tokens;
    s->stop_len = mem_alloc(options->n_stop * sizeof *s->stop_len);
    sumi_status status =
        s->stop_len ? stop_open(&s->stops, options->stop, options->stop_len, options->n_stop, err)
                    : NO_MEMORY(err, options->n_stop * sizeof *s->stop_len);
    if (status != SUMI_OK) {
        stream_close(s);
        return status;
    }
    if (options->n_stop)
        memcpy(s->stop_len, options->stop_len, options->n_stop * sizeof *s->stop_len);
    *out = s;
    return SUMI_OK;
}

void stream_close(struct stream *s) {
    if (!s) return;
    stop_close(&s->stops);
    mem_free(s->stop_len);
    buf_reset(&s->text);
    buf_reset(&s->scratch);
    mem_free(s->part);
    mem_free(s->piece);
    mem_free(s);
}

static bool is_silent(const struct stream *s, int32_t id) {
    return s->skip_special && tokenizer_is_special(s->t, id);
}

/* Only what an incomplete last character of the prompt leaves can matter: its last three bytes. */
void stream_prime(struct stream *s, const int32_t *prompt, size_t n) {
    char last[3];
    size_t have = 0;
    while (n > 0 && have < sizeof last) {
        size_t len;
        const char *bytes = tokenizer_bytes(s->t, prompt[--n], &len);
        if (!bytes || is_silent(s, prompt[n])) continue;
        while (len > 0 && have < sizeof last) last[sizeof last - ++have] = bytes[--len];
    }
    for (; have > 0; have--) {
        const char *from = last + sizeof last - have;
        if (!utf8_incomplete(from, have)) continue;
        memcpy(s->tail, from, have);
        s->n_tail = s->n_primed = have;
        return;
    }
}

/* ---- held text ---- */

/* Forgets what the last call released. */
static void drop_released(struct stream *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n_part; i++) {
        struct segment p = s->part[i];
        if (p.end <= s->released) continue;
        p.start = p.start > s->released ? p.start - s->released : 0;
        p.end -= s->released;
        s->part[kept++] = p;
    }
    s->n_part = kept;
    buf_drop(&s->text, s->released);
    s->released = 0;
}

static sumi_status append(struct stream *s, int32_t id, const char *text, size_t n,
                          sumi_error *err) {
    if (n == 0) return SUMI_OK;
    size_t start = s->text.len;
    buf_put(&s->text, text, n);
    if (s->text.failed) return NO_MEMORY(err, start + n);
    if (id < 0 && s->n_part && s->part[s->n_part - 1].id < 0) {
        s->part[s->n_part - 1].end += n;
        return SUMI_OK;
    }
    if (s->n_part == s->part_cap) {
        size_t cap = s->part_cap ? 2 * s->part_cap : 8;
        struct segment *part = mem_resize(s->part, cap, sizeof *part);
        if (part) s->part = part;
        struct piece *piece = part ? mem_resize(s->piece, cap, sizeof *piece) : NULL;
        if (!piece) return NO_MEMORY(err, cap * (sizeof *part + sizeof *piece));
        s->piece = piece;
        s->part_cap = cap;
    }
    s->part[s->n_part++] = (struct segment){id, start, start + n};
    return SUMI_OK;
}

/* Text[0..cut) becomes visible. An added token that is cut is plain text. */
static size_t release(struct stream *s, size_t cut) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_part && s->part[i].start < cut; i++) {
        struct segment p = s->part[i];
        bool whole = p.end <= cut;
        s->piece[n++] = (struct piece){whole ? p.id : -1, s->text.data + p.start,
                                       (whole ? p.end : cut) - p.start};
    }
    s->released = cut;
    return n;
}

/* ---- bytes to characters ---- */

static sumi_status append_bad(struct stream *s, size_t n_bad, sumi_error *err) {
    bool ours = n_bad > s->n_primed; /* else only the prompt's own bytes were bad */
    s->n_primed -= n_bad < s->n_primed ? n_bad : s->n_primed;
    return ours ? append(s, -1, "\xEF\xBF\xBD", 3, err) : SUMI_OK;
}

/* The tail and the bytes of a token: whole characters are appended, the rest is the new tail. */
static sumi_status append_bytes(struct stream *s, const char *bytes, size_t n, sumi_error *err) {
    buf_clear(&s->scratch);
    buf_put(&s->scratch, s->tail, s->n_tail);
    buf_put(&s->scratch, bytes, n);
    if (s->scratch.failed) return NO_MEMORY(err, s->n_tail + n);
    const char *at = s->scratch.data;
    size_t left = s->scratch.len;
    s->n_tail = 0;
    while (left > 0) {
        size_t good = utf8_valid_prefix(at, left);
        TRY(append(s, -1, at, good, err));
        if (good) s->n_primed = 0;
        at += good;
        left -= good;
        if (left == 0) break;
        if (left <= sizeof s->tail && utf8_incomplete(at, left)) {
            memcpy(s->tail, at, left);
            s->n_tail = left;
            return SUMI_OK;
        }
        size_t bad = utf8_bad_length(at, left);
        TRY(append_bad(s, bad, err));
        at += bad;
        left -= bad;
    }
    s->n_primed = 0;
    return SUMI_OK;
}

/* An added token is plain text: an incomplete character before it can no longer be completed. */
static sumi_status append_added(struct stream *s, int32_t id, const char *text, size_t n,
                                sumi_error *err) {
    size_t bad = s->n_tail;
    s->n_tail = 0;
    if (bad) TRY(append_bad(s, bad, err));
    s->n_primed = 0;
    return append(s, id, text, n, err);
}

/* ---- the stream ---- */

static sumi_status take(struct stream *s, int32_t id, sumi_error *err) {
    size_t n;
    const char *bytes = tokenizer_bytes(s->t, id, &n);
    if (!bytes || is_silent(s, id)) return SUMI_OK;
    if (tokenizer_is_added(s->t, id)) return append_added(s, id, bytes, n, err);
    return append_bytes(s, bytes, n, err);
}

sumi_status stream_push(struct stream *s, int32_t id, const struct piece **pieces, size_t *n,
                        int *stopped, sumi_error *err) {
    *pieces = NULL;
    *n = 0;
    *stopped = -1;
    if (s->done)
        return fail_with(err, SUMI_ERR_STATE, "the stream has ended and takes no more tokens");
    drop_released(s);
    size_t from = s->text.len;
    s->n_token++;
    s->done = true; /* stays so when memory runs out half way */
    TRY(take(s, id, err));
    for (size_t i = from; i < s->text.len; i++) {
        int32_t match = stop_step(&s->stops, &s->state, (unsigned char)s->text.data[i]);
        if (match < 0 || s->n_token <= s->min_tokens) continue;
        *stopped = match;
        *n = release(s, i + 1 - (s->include_stop ? 0 : s->stop_len[match]));
        *pieces = s->piece;
        return SUMI_OK;
    }
    s->done = false;
    size_t cut = s->text.len - stop_hold(&s->stops, s->state);
    for (size_t i = 0; i < s->n_part; i++)
        if (s->part[i].id >= 0 && s->part[i].start < cut && cut < s->part[i].end)
            cut = s->part[i].start; /* an added token is released whole or not at all */
    *n = release(s, cut);
    *pieces = s->piece;
    return SUMI_OK;
}

sumi_status stream_finish(struct stream *s, const struct piece **pieces, size_t *n,
                          sumi_error *err) {
    (void)err;
    *pieces = NULL;
    *n = 0;
    if (s->done) return SUMI_OK;
    drop_released(s);
    s->done = true;
    *n = release(s, s->text.len);
    *pieces = s->piece;
    return SUMI_OK;
}
