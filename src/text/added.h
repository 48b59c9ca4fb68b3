/* Added tokens: found in text before anything else, the leftmost and there the longest. */
#ifndef SUMI_TEXT_ADDED_H
#define SUMI_TEXT_ADDED_H

#include "text/trie.h"
#include "text/vocab.h"

struct added {
    const struct vocab *vocab; /* kept */
    struct trie raw;           /* matched on the text as it came */
    struct trie normal;        /* normalised themselves, matched on normalised text */
    int32_t *ids;              /* [n] owned, ascending */
    size_t n;
};

sumi_status added_open(struct added *a, const struct vocab *v, const struct tokenizer_lists *lists,
                       sumi_error *err);
void added_close(struct added *a);

/* A walk over a text. Set text, n, trusted, specials, zero the rest. */
struct added_scan {
    const char *text;
    size_t n;
    const uint8_t *trusted; /* as tokenizer_encode has them */
    bool specials;
    size_t at;   /* where the search goes on */
    size_t done; /* end of the last token with the white space it took */
    /* Result: text[done before the call .. start) is plain, then comes the token. */
    size_t start;
    int32_t id;
};

/* The next token of the set. False: none is left, text[s->done..n) is plain. */
bool added_next(const struct added *a, const struct trie *set, struct added_scan *s);

#endif
