/* Byte pair encoding of one piece: merges adjacent tokens, the best-ranked pair first. */
#ifndef SUMI_TEXT_BPE_H
#define SUMI_TEXT_BPE_H

#include "text/vocab.h"

/* A merge: (left, right) becomes id. Ranks count from 0, lower goes first. */
struct bpe_merge {
    int32_t left, right; /* left -1: free slot */
    uint32_t rank;
    int32_t id;
};

struct bpe {
    const struct vocab *vocab; /* kept */
    struct bpe_merge *slot;    /* [mask + 1] owned: hash table by (left, right) */
    size_t mask;
    int32_t byte_id[256]; /* token of each single byte, -1: none */
    bool ignore_merges;
};

/* FORMAT: a merge that is not two parts with one space between, or whose parts or product are not
 * in the vocabulary. Of two equal merges the later one counts. */
sumi_status bpe_open(struct bpe *b, const struct vocab *v, const struct tokenizer_lists *lists,
                     sumi_error *err);
void bpe_close(struct bpe *b);

/* Scratch of one thread; zeroed: empty. The cache remembers short pieces of one call by where
 * their ids stand in the output. */
struct bpe_cached {
    uint32_t at;           /* index into the output */
    unsigned char n_id, n; /* ids; bytes of text, 0: free */
    char text[26];
};
struct bpe_work {
    struct bpe_cached *cache; /* [cache_mask + 1] or NULL: no cache */
    size_t cache_mask;
    struct bpe_symbol *symbol;
    uint64_t *heap;
    size_t cap; /* of both */
    struct buf spelling;
};
/* Prepares the cache for about n bytes of text whose ids are appended to one list. Without memory
 * for it there is none. */
void bpe_work_init(struct bpe_work *w, size_t n);
void bpe_work_reset(struct bpe_work *w);

/* Appends the ids of piece[0..n), n > 0. FORMAT for a byte without a token; LIMIT over 2^31 bytes;
 * MEMORY. */
sumi_status bpe_encode(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n,
                       struct ids *out, sumi_error *err);

#endif
