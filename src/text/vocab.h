/* Vocabulary: ids, their bytes, their spelling, their flags. */
#ifndef SUMI_TEXT_VOCAB_H
#define SUMI_TEXT_VOCAB_H

#include "text/tokenizer.h"

enum token_flag {
    TOKEN_PRESENT = 1,
    TOKEN_ADDED = 2,
    TOKEN_SPECIAL = 4,
    TOKEN_SINGLE_WORD = 8,
    TOKEN_LSTRIP = 16,
    TOKEN_RSTRIP = 32,
    TOKEN_NORMALIZED = 64
};

/* Zeroed: an id without a token. */
struct vocab_entry {
    uint32_t at; /* in text: n_raw bytes that the token stands for, then n_spelling bytes */
    uint32_t n_raw, n_spelling;
    uint32_t flags; /* enum token_flag */
};

struct vocab {
    struct vocab_entry *entry; /* [n] owned */
    size_t n;
    char *text;    /* owned */
    int32_t *slot; /* [mask + 1] owned: hash table of ordinary tokens by spelling, -1: free */
    size_t mask;
    size_t longest; /* bytes of the longest token */
};

/* Reads lists->vocab and lists->added. FORMAT: two ids with one text, two added tokens with one id,
 * an added token whose id has another text in the vocabulary, an empty or overlong added token;
 * LIMIT: an id over 2^24, over 2 GiB of text. */
sumi_status vocab_open(struct vocab *v, const struct tokenizer_lists *lists, sumi_error *err);
void vocab_close(struct vocab *v);

/* Id of an ordinary token by spelling (byte-level alphabet), or -1. */
int32_t vocab_find(const struct vocab *v, const char *spelling, size_t n);

static inline const char *vocab_raw(const struct vocab *v, int32_t id, size_t *n) {
    *n = v->entry[id].n_raw;
    return v->text + v->entry[id].at;
}

static inline const char *vocab_spelling(const struct vocab *v, int32_t id, size_t *n) {
    *n = v->entry[id].n_spelling;
    return v->text + v->entry[id].at + v->entry[id].n_raw;
}

/* Fast hash of short strings, the same in every run. */
uint64_t hash_bytes(const char *s, size_t n);

#endif
