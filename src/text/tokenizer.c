/* In: text. Out: ids, and the way back. Puts the parts together: added tokens are cut out first
 * (added), what lies between is normalised (nfc), cut into pieces (pretok), and merged (bpe). */
#include "text/tokenizer.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/nfc.h"
#include "text/pretok.h"
#include "text/vocab.h"

struct tokenizer {
    struct vocab vocab;
    struct bpe bpe;
    struct pretok pretok;
    struct added added;
    bool nfc;
};

sumi_status tokenizer_open_lists(struct tokenizer **out, const struct tokenizer_lists *lists,
                                 sumi_error *err) {
    *out = NULL;
    struct tokenizer *t = mem_zero(1, sizeof *t);
    if (!t) return NO_MEMORY(err, sizeof *t);
    t->nfc = lists->nfc;
    sumi_status status = vocab_open(&t->vocab, lists, err);
    if (status == SUMI_OK) status = bpe_open(&t->bpe, &t->vocab, lists, err);
    if (status == SUMI_OK) status = pretok_open(&t->pretok, lists->steps, lists->n_step, err);
    if (status == SUMI_OK) status = added_open(&t->added, &t->vocab, lists, err);
    if (status == SUMI_OK) *out = t;
    else tokenizer_close(t);
    return status;
}

void tokenizer_close(struct tokenizer *t) {
    if (!t) return;
    added_close(&t->added);
    pretok_close(&t->pretok);
    bpe_close(&t->bpe);
    vocab_close(&t->vocab);
    mem_free(t);
}

bool ids_push(struct ids *ids, int32_t id) {
    if (ids->n == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        int32_t *data = mem_resize(ids->data, cap, sizeof *data);
        if (!data) return false;
        ids->data = data;
        ids->cap = cap;
    }
    ids->data[ids->n++] = id;
    return true;
}

/* ---- encoding ---- */

struct encoder {
    const struct tokenizer *t;
    struct bpe_work bpe;
    struct pretok_work pretok;
    struct buf normal, origin; /* a stretch in NFC, and which bytes of it are trusted */
    bool specials;
    struct ids *out;
    sumi_error *err;
};

static sumi_status encode_piece(void *ctx, const char *piece, size_t n, sumi_error *err) {
    struct encoder *e = ctx;
    return bpe_encode(&e->t->bpe, &e->bpe, piece, n, e->out, err);
}

/* Text without added tokens. */
static sumi_status encode_plain(struct encoder *e, const char *text, size_t n,
                                const uint8_t *trusted) {
    (void)trusted;
    return pretok_run(&e->t->pretok, &e->pretok, text, n, encode_piece, e, e->err);
}

typedef sumi_status (*encode_gap)(struct encoder *e, const char *text, size_t n,
                                  const uint8_t *trusted);

/* Tokens of the set become ids, what lies between goes to `gap`. */
static sumi_status encode_around(struct encoder *e, const struct trie *set, const char *text,
                                 size_t n, const uint8_t *trusted, encode_gap gap) {
    struct added_scan s = {.text = text, .n = n, .trusted = trusted, .specials = e->specials};
    size_t done = 0;
    while (added_next(&e->t->added, set, &s)) {
        if (done < s.start)
            TRY(gap(e, text + done, s.start - done, trusted ? trusted + done : NULL));
        if (!ids_push(e->out, s.id)) return NO_MEMORY(e->err, 2 * e->out->cap * sizeof s.id);
        done = s.done;
    }
    return done < n ? gap(e, text + done, n - done, trusted ? trusted + done : NULL) : SUMI_OK;
}

/* Text without tokens of the raw set. */
static sumi_status encode_stretch(struct encoder *e, const char *text, size_t n,
                                  const uint8_t *trusted) {
    if (e->t->nfc) {
        buf_clear(&e->normal);
        buf_clear(&e->origin);
        TRY(nfc_append(text, n, trusted, &e->normal, &e->origin, e->err));
        text = e->normal.data;
        n = e->normal.len;
        if (trusted) trusted = (const uint8_t *)e->origin.data;
    }
    return encode_around(e, &e->t->added.normal, text, n, trusted, encode_plain);
}

sumi_status tokenizer_encode(const struct tokenizer *t, const char *text, size_t n,
                             const uint8_t *trusted, bool specials, struct ids *out,
                             sumi_error *err) {
    size_t valid = utf8_valid_prefix(text, n), before = out->n;
    if (valid < n)
        return fail_with(err, SUMI_ERR_FORMAT, "the text is not valid UTF-8 at byte %zu of %zu",
                         valid, n);
    struct encoder e = {.t = t, .specials = specials, .out = out, .err = err};
    bpe_work_init(&e.bpe, n);
    sumi_status status = encode_around(&e, &t->added.raw, text, n, trusted, encode_stretch);
    bpe_work_reset(&e.bpe);
    pretok_work_reset(&e.pretok);
    buf_reset(&e.normal);
    buf_reset(&e.origin);
    if (status != SUMI_OK) out->n = before;
    return status;
}

/* ---- questions ---- */

static uint32_t flags_of(const struct tokenizer *t, int32_t id) {
    return id < 0 || (size_t)id >= t->vocab.n ? 0 : t->vocab.entry[id].flags;
}

int32_t tokenizer_size(const struct tokenizer *t) {
    return (int32_t)t->vocab.n;
}

bool tokenizer_has(const struct tokenizer *t, int32_t id) {
    return flags_of(t, id) != 0;
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id) {
    return (flags_of(t, id) & TOKEN_SPECIAL) != 0;
}

bool tokenizer_is_added(const struct tokenizer *t, int32_t id) {
    return (flags_of(t, id) & TOKEN_ADDED) != 0;
}

int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t n) {
    for (size_t i = 0; i < t->added.n; i++) {
        size_t m;
        const char *s = vocab_raw(&t->vocab, t->added.ids[i], &m);
        if (m == n && memcmp(s, text, n) == 0) return t->added.ids[i];
    }
    return vocab_find(&t->vocab, text, n);
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *n) {
    *n = 0;
    return flags_of(t, id) ? vocab_raw(&t->vocab, id, n) : NULL;
}

const char *tokenizer_spelling(const struct tokenizer *t, int32_t id, size_t *n) {
    *n = 0;
    return flags_of(t, id) ? vocab_spelling(&t->vocab, id, n) : NULL;
}

size_t tokenizer_added(const struct tokenizer *t, const int32_t **ids) {
    *ids = t->added.ids;
    return t->added.n;
}

size_t tokenizer_longest(const struct tokenizer *t) {
    return t->vocab.longest;
}

/* ---- decoding ---- */

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                      struct buf *out) {
    struct buf raw = {0};
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = tokenizer_bytes(t, ids[i], &len);
        if (s && !(skip_special && tokenizer_is_special(t, ids[i]))) buf_put(&raw, s, len);
    }
    for (size_t at = 0; at < raw.len;) {
        size_t good = utf8_valid_prefix(raw.data + at, raw.len - at);
        buf_put(out, raw.data + at, good);
        at += good;
        if (at == raw.len) break;
        buf_puts(out, "\xEF\xBF\xBD");
        at += utf8_bad_length(raw.data + at, raw.len - at);
    }
    if (raw.failed) out->failed = true;
    buf_reset(&raw);
}
