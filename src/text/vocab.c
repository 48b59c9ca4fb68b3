/* In: token texts as lists. Out: a table by id and one by spelling. Knows nothing of merges. */
#include "text/vocab.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/bytelevel.h"

#define MAX_ID      (1 << 24)
#define MAX_ADDED   4096 /* bytes of an added token: each place of a text is tried this far */
#define MAX_TEXT    0x7FFFFFFF
#define SHOWN(s, n) (int)((n) < 60 ? (n) : 60), (s)

uint64_t hash_bytes(const char *s, size_t n) {
    uint64_t h = n * 0x9E3779B97F4A7C15u;
    while (n >= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        s += 8;
        n -= 8;
    }
    uint64_t w = 0;
    memcpy(&w, s, n);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 29;
}

/* The bytes that a spelling stands for; a spelling outside the alphabet stands for itself, as the
 * library's decoder has it. Writes at most n bytes. */
static size_t raw_from_spelling(const char *s, size_t n, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        int step = utf8_decode(s + i, n - i, &c);
        int byte = step ? byte_from_char(c) : -1;
        if (byte < 0) {
            memcpy(out, s, n);
            return n;
        }
        out[len++] = (char)byte;
        i += (size_t)step;
    }
    return len;
}

/* The slot of a spelling, or the free one where it would go. */
static size_t find_slot(const struct vocab *v, const char *s, size_t n) {
    size_t i = hash_bytes(s, n) & v->mask;
    for (; v->slot[i] >= 0; i = (i + 1) & v->mask) {
        size_t m;
        const char *t = vocab_spelling(v, v->slot[i], &m);
        if (m == n && memcmp(s, t, n) == 0) break;
    }
    return i;
}

int32_t vocab_find(const struct vocab *v, const char *spelling, size_t n) {
    return v->slot[find_slot(v, spelling, n)];
}

static sumi_status allocate(struct vocab *v, const struct tokenizer_lists *l, sumi_error *err) {
    size_t bytes = 0, n_token = 0;
    v->n = l->n_vocab;
    for (size_t i = 0; i < l->n_added; i++) {
        const struct added_token *a = &l->added[i];
        if (a->id < 0 || a->id > MAX_ID)
            return fail_with(err, SUMI_ERR_LIMIT, "added token \"%.*s\": id %d is not in 0..%d",
                             SHOWN(a->text, a->len), a->id, MAX_ID);
        if (v->n <= (size_t)a->id) v->n = (size_t)a->id + 1;
        if (a->len == 0 || a->len > MAX_ADDED)
            return fail_with(err, SUMI_ERR_FORMAT,
                             "added token %d has %zu bytes of text, expected 1 to %d", a->id,
                             a->len, MAX_ADDED);
        bytes += a->len; /* no overflow: each is small, and the list is in memory */
    }
    if (l->n_vocab > MAX_ID + 1)
        return fail_with(err, SUMI_ERR_LIMIT, "vocabulary of %zu ids, the limit is 2^24 + 1",
                         l->n_vocab);
    for (size_t i = 0; i < l->n_vocab; i++) {
        if (!l->vocab[i].text) continue;
        n_token++;
        if (!size_add(bytes, l->vocab[i].len, &bytes)) bytes = SIZE_MAX / 4;
    }
    if (bytes > MAX_TEXT / 2)
        return fail_with(err, SUMI_ERR_LIMIT, "vocabulary texts of over %d bytes", MAX_TEXT / 2);
    size_t slots = 64;
    while (slots < 2 * n_token) slots *= 2;
    v->mask = slots - 1;
    v->entry = mem_zero(v->n, sizeof *v->entry);
    v->text = mem_alloc(2 * bytes);
    v->slot = mem_alloc(slots * sizeof *v->slot);
    if (!v->entry || !v->text || !v->slot)
        return NO_MEMORY(err, v->n * sizeof *v->entry + 2 * bytes + slots * sizeof *v->slot);
    for (size_t i = 0; i < slots; i++) v->slot[i] = -1;
    return SUMI_OK;
}

static sumi_status add_ordinary(struct vocab *v, const struct tokenizer_lists *l, uint32_t *used,
                                sumi_error *err) {
    for (size_t i = 0; i < l->n_vocab; i++) {
        const struct token_text *t = &l->vocab[i];
        if (!t->text) continue;
        if (!utf8_valid(t->text, t->len))
            return fail_with(err, SUMI_ERR_FORMAT, "token %zu is not valid UTF-8", i);
        size_t slot = find_slot(v, t->text, t->len);
        if (v->slot[slot] >= 0)
            return fail_with(err, SUMI_ERR_FORMAT, "tokens %d and %zu are both \"%.*s\"",
                             v->slot[slot], i, SHOWN(t->text, t->len));
        v->slot[slot] = (int32_t)i;
        struct vocab_entry *e = &v->entry[i];
        *e = (struct vocab_entry){*used, 0, (uint32_t)t->len, TOKEN_PRESENT};
        e->n_raw = (uint32_t)raw_from_spelling(t->text, t->len, v->text + *used);
        memcpy(v->text + *used + e->n_raw, t->text, t->len);
        *used += e->n_raw + e->n_spelling;
        if (v->longest < e->n_raw) v->longest = e->n_raw;
    }
    return SUMI_OK;
}

static sumi_status add_added(struct vocab *v, const struct added_token *a, uint32_t *used,
                             sumi_error *err) {
    struct vocab_entry *e = &v->entry[a->id];
    size_t n = 0;
    const char *old = vocab_spelling(v, a->id, &n);
    if (e->flags & TOKEN_ADDED)
        return fail_with(err, SUMI_ERR_FORMAT, "two added tokens have id %d: \"%.*s\", \"%.*s\"",
                         a->id, SHOWN(old, n), SHOWN(a->text, a->len));
    if (e->flags && (n != a->len || memcmp(old, a->text, n) != 0))
        return fail_with(err, SUMI_ERR_FORMAT,
                         "id %d is \"%.*s\" in the vocabulary and \"%.*s\" as an added token",
                         a->id, SHOWN(old, n), SHOWN(a->text, a->len));
    int32_t other = vocab_find(v, a->text, a->len);
    if (other >= 0 && other != a->id)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "added token \"%.*s\" has id %d, but the vocabulary gives it %d",
                         SHOWN(a->text, a->len), a->id, other);
    if (!utf8_valid(a->text, a->len))
        return fail_with(err, SUMI_ERR_FORMAT, "added token %d is not valid UTF-8", a->id);
    *e = (struct vocab_entry){*used, (uint32_t)a->len, (uint32_t)a->len, TOKEN_PRESENT};
    e->flags |= TOKEN_ADDED | (a->special ? TOKEN_SPECIAL : 0u) |
                (a->single_word ? TOKEN_SINGLE_WORD : 0u) | (a->lstrip ? TOKEN_LSTRIP : 0u) |
                (a->rstrip ? TOKEN_RSTRIP : 0u) | (a->normalized ? TOKEN_NORMALIZED : 0u);
    memcpy(v->text + *used, a->text, a->len);
    memcpy(v->text + *used + a->len, a->text, a->len);
    *used += 2 * (uint32_t)a->len;
    if (v->longest < a->len) v->longest = a->len;
    return SUMI_OK;
}

sumi_status vocab_open(struct vocab *v, const struct tokenizer_lists *lists, sumi_error *err) {
    *v = (struct vocab){0};
    uint32_t used = 0;
    sumi_status status;
    TRY_OUT(allocate(v, lists, err));
    TRY_OUT(add_ordinary(v, lists, &used, err));
    for (size_t i = 0; i < lists->n_added; i++) TRY_OUT(add_added(v, &lists->added[i], &used, err));
    return SUMI_OK;
out:
    vocab_close(v);
    return status;
}

void vocab_close(struct vocab *v) {
    mem_free(v->entry);
    mem_free(v->text);
    mem_free(v->slot);
    *v = (struct vocab){0};
}
