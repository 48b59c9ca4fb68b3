/* In: the bytes of one piece. Out: ids. Short pieces are merged in an array, long ones with a heap
 * over a linked list, so that a piece of n bytes costs O(n log n). Knows nothing of text. */
#include "text/bpe.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/bytelevel.h"

#define SHORT_PIECE 48 /* up to here the array is faster */
#define NO_RANK     UINT32_MAX
#define CACHE_SLOTS (1u << 15)

struct bpe_symbol {
    int32_t id;             /* -1: merged into the symbol before */
    int32_t previous, next; /* -1: none */
};

/* ---- merges ---- */

static size_t pair_slot(const struct bpe *b, int32_t left, int32_t right) {
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return (size_t)(h >> 32 ^ h >> 15) & b->mask;
}

static const struct bpe_merge *find_merge(const struct bpe *b, int32_t left, int32_t right) {
    for (size_t i = pair_slot(b, left, right);; i = (i + 1) & b->mask) {
        const struct bpe_merge *m = &b->slot[i];
        if (m->left == left && m->right == right) return m;
        if (m->left < 0) return NULL;
    }
}

static sumi_status add_merge(struct bpe *b, const struct tokenizer_lists *l, size_t rank,
                             struct buf *product, sumi_error *err) {
    const char *text = l->merges[rank].text;
    size_t n = l->merges[rank].len;
    int shown = (int)(n < 60 ? n : 60);
    const char *space = n ? memchr(text, ' ', n) : NULL;
    size_t n_left = space ? (size_t)(space - text) : 0, n_right = space ? n - n_left - 1 : 0;
    if (n_left == 0 || n_right == 0 || memchr(space + 1, ' ', n_right))
        return fail_with(err, SUMI_ERR_FORMAT,
                         "merge %zu is \"%.*s\", expected two parts with a space between", rank,
                         shown, text);
    buf_clear(product);
    buf_put(product, text, n_left);
    buf_put(product, space + 1, n_right);
    if (product->failed) return NO_MEMORY(err, n);
    struct bpe_merge m = {.left = vocab_find(b->vocab, text, n_left),
                          .right = vocab_find(b->vocab, space + 1, n_right),
                          .rank = (uint32_t)rank,
                          .id = vocab_find(b->vocab, product->data, product->len)};
    if (m.left < 0 || m.right < 0 || m.id < 0)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "merge %zu is \"%.*s\", but its %s is not in the vocabulary", rank, shown,
                         text,
                         m.left < 0    ? "left part"
                         : m.right < 0 ? "right part"
                                       : "product");
    size_t i = pair_slot(b, m.left, m.right);
    while (b->slot[i].left >= 0 && (b->slot[i].left != m.left || b->slot[i].right != m.right))
        i = (i + 1) & b->mask;
    b->slot[i] = m;
    return SUMI_OK;
}

sumi_status bpe_open(struct bpe *b, const struct vocab *v, const struct tokenizer_lists *lists,
                     sumi_error *err) {
    *b = (struct bpe){.vocab = v, .ignore_merges = lists->ignore_merges};
    if (lists->n_merge > INT32_MAX / 4)
        return fail_with(err, SUMI_ERR_LIMIT, "%zu merges, the limit is 2^29", lists->n_merge);
    size_t slots = 64;
    while (slots < 2 * lists->n_merge) slots *= 2;
    b->mask = slots - 1;
    b->slot = mem_alloc(slots * sizeof *b->slot);
    if (!b->slot) return NO_MEMORY(err, slots * sizeof *b->slot);
    for (size_t i = 0; i < slots; i++) b->slot[i] = (struct bpe_merge){-1, -1, 0, -1};
    for (int i = 0; i < 256; i++) {
        char utf8[4];
        int n = utf8_encode(byte_to_char((unsigned char)i), utf8);
        b->byte_id[i] = vocab_find(v, utf8, (size_t)n);
    }
    struct buf product = {0};
    sumi_status status = SUMI_OK;
    for (size_t i = 0; i < lists->n_merge && status == SUMI_OK; i++)
        status = add_merge(b, lists, i, &product, err);
    buf_reset(&product);
    if (status != SUMI_OK) bpe_close(b);
    return status;
}

void bpe_close(struct bpe *b) {
    mem_free(b->slot);
    *b = (struct bpe){0};
}

/* ---- scratch ---- */

void bpe_work_init(struct bpe_work *w, size_t n) {
    *w = (struct bpe_work){0};
    if (n < 512) return;
    size_t slots = 64;
    while (slots < n / 16 && slots < CACHE_SLOTS) slots *= 2;
    w->cache = mem_zero(slots, sizeof *w->cache);
    w->cache_mask = slots - 1;
}

void bpe_work_reset(struct bpe_work *w) {
    mem_free(w->cache);
    mem_free(w->symbol);
    mem_free(w->heap);
    buf_reset(&w->spelling);
    *w = (struct bpe_work){0};
}

static sumi_status push(struct ids *out, int32_t id, sumi_error *err) {
    return ids_push(out, id) ? SUMI_OK : NO_MEMORY(err, 2 * out->cap * sizeof *out->data);
}

static sumi_status no_token(unsigned char byte, sumi_error *err) {
    return fail_with(err, SUMI_ERR_FORMAT,
                     "the vocabulary has no token for byte 0x%02X, so this text cannot be encoded",
                     byte);
}

/* ---- short pieces: the best pair is looked for among all ---- */

static sumi_status merge_short(const struct bpe *b, const char *piece, size_t n, struct ids *out,
                               sumi_error *err) {
    int32_t id[SHORT_PIECE];
    const struct bpe_merge *pair[SHORT_PIECE]; /* of id[i] and id[i + 1], or NULL */
    uint32_t rank[SHORT_PIECE];
    for (size_t i = 0; i < n; i++) {
        id[i] = b->byte_id[(unsigned char)piece[i]];
        if (id[i] < 0) return no_token((unsigned char)piece[i], err);
    }
    for (size_t i = 0; i + 1 < n; i++) {
        pair[i] = find_merge(b, id[i], id[i + 1]);
        rank[i] = pair[i] ? pair[i]->rank : NO_RANK;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == NO_RANK) break;
        id[best] = pair[best]->id;
        n--;
        memmove(id + best + 1, id + best + 2, (n - best - 1) * sizeof *id);
        memmove(pair + best, pair + best + 1, (n - best - 1) * sizeof *pair);
        memmove(rank + best, rank + best + 1, (n - best - 1) * sizeof *rank);
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            pair[i] = find_merge(b, id[i], id[i + 1]);
            rank[i] = pair[i] ? pair[i]->rank : NO_RANK;
        }
    }
    for (size_t i = 0; i < n; i++) TRY(push(out, id[i], err));
    return SUMI_OK;
}

/* ---- long pieces: a heap of pairs, rank in the high half, place of the left one in the low ----
 */

static void heap_down(uint64_t *heap, size_t n, size_t i) {
    uint64_t x = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t x) {
    size_t i = (*n)++;
    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static void push_pair(const struct bpe *b, struct bpe_work *w, size_t *n_heap, int32_t left) {
    if (left < 0 || w->symbol[left].next < 0) return;
    const struct bpe_merge *m =
        find_merge(b, w->symbol[left].id, w->symbol[w->symbol[left].next].id);
    if (m) heap_push(w->heap, n_heap, (uint64_t)m->rank << 32 | (uint32_t)left);
}

/* Each merge takes one entry out and puts at most two in, and removes one of n symbols: 2n entries
 * are enough. */
static sumi_status reserve(struct bpe_work *w, size_t n, sumi_error *err) {
    if (n <= w->cap) return SUMI_OK;
    mem_free(w->symbol);
    mem_free(w->heap);
    w->symbol = mem_alloc(n * sizeof *w->symbol);
    w->heap = mem_alloc(2 * n * sizeof *w->heap);
    w->cap = w->symbol && w->heap ? n : 0;
    return w->cap ? SUMI_OK : NO_MEMORY(err, n * (sizeof *w->symbol + 2 * sizeof *w->heap));
}

static sumi_status merge_long(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n,
                              struct ids *out, sumi_error *err) {
    if (n > INT32_MAX)
        return fail_with(err, SUMI_ERR_LIMIT, "a piece of %zu bytes, the limit is 2^31", n);
    TRY(reserve(w, n, err));
    struct bpe_symbol *s = w->symbol;
    for (size_t i = 0; i < n; i++) {
        int32_t id = b->byte_id[(unsigned char)piece[i]];
        if (id < 0) return no_token((unsigned char)piece[i], err);
        s[i] = (struct bpe_symbol){id, (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1};
    }
    size_t n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        const struct bpe_merge *m = find_merge(b, s[i].id, s[i + 1].id);
        if (m) w->heap[n_heap++] = (uint64_t)m->rank << 32 | (uint32_t)i;
    }
    for (size_t i = n_heap / 2; i-- > 0;) heap_down(w->heap, n_heap, i);
    while (n_heap) {
        uint64_t top = w->heap[0];
        w->heap[0] = w->heap[--n_heap];
        if (n_heap) heap_down(w->heap, n_heap, 0);
        struct bpe_symbol *left = &s[(uint32_t)top];
        if (left->id < 0 || left->next < 0) continue;
        struct bpe_symbol *right = &s[left->next];
        const struct bpe_merge *m = find_merge(b, left->id, right->id);
        if (!m || m->rank != top >> 32) continue; /* one of the two has changed since */
        left->id = m->id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) s[left->next].previous = (int32_t)(uint32_t)top;
        push_pair(b, w, &n_heap, left->previous);
        push_pair(b, w, &n_heap, (int32_t)(uint32_t)top);
    }
    for (int32_t i = 0; i >= 0; i = s[i].next) TRY(push(out, s[i].id, err));
    return SUMI_OK;
}

/* ---- one piece ---- */

/* The token that is spelled like the whole piece, or -1. An added one never comes from here. */
static sumi_status whole_piece(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n,
                               int32_t *id, sumi_error *err) {
    *id = -1;
    if (n > b->vocab->longest) return SUMI_OK;
    buf_clear(&w->spelling);
    for (size_t i = 0; i < n; i++) {
        char utf8[4];
        int len = utf8_encode(byte_to_char((unsigned char)piece[i]), utf8);
        buf_put(&w->spelling, utf8, (size_t)len);
    }
    if (w->spelling.failed) return NO_MEMORY(err, 2 * n);
    *id = vocab_find(b->vocab, w->spelling.data, w->spelling.len);
    if (*id >= 0 && b->vocab->entry[*id].flags & TOKEN_ADDED) *id = -1;
    return SUMI_OK;
}

static sumi_status encode_new(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n,
                              struct ids *out, sumi_error *err) {
    if (b->ignore_merges) {
        int32_t id;
        TRY(whole_piece(b, w, piece, n, &id, err));
        if (id >= 0) return push(out, id, err);
    }
    if (n <= SHORT_PIECE) return merge_short(b, piece, n, out, err);
    return merge_long(b, w, piece, n, out, err);
}

sumi_status bpe_encode(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n,
                       struct ids *out, sumi_error *err) {
    if (!w->cache || n > sizeof w->cache->text || out->n > UINT32_MAX)
        return encode_new(b, w, piece, n, out, err);
    struct bpe_cached *c = &w->cache[hash_bytes(piece, n) & w->cache_mask];
    if (c->n == n && memcmp(c->text, piece, n) == 0) {
        for (unsigned i = 0; i < c->n_id; i++) TRY(push(out, out->data[c->at + i], err));
        return SUMI_OK;
    }
    size_t at = out->n;
    TRY(encode_new(b, w, piece, n, out, err));
    *c = (struct bpe_cached){
        .at = (uint32_t)at, .n_id = (unsigned char)(out->n - at), .n = (unsigned char)n};
    memcpy(c->text, piece, n);
    return SUMI_OK;
}
