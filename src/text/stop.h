/* Stop strings: finds, byte by byte, where one of them ends first (Aho-Corasick). */
#ifndef SUMI_TEXT_STOP_H
#define SUMI_TEXT_STOP_H

#include "text/trie.h"

struct stop_state {
    int32_t fail;  /* state of the longest proper suffix that begins a string */
    int32_t match; /* lowest index of the strings that end here, or -1 */
    int32_t depth; /* bytes of the prefix that this state is */
    int32_t hold;  /* of the longest suffix here that a string goes on from */
};

/* Zeroed: no strings. Immutable after opening; a state is an int32_t that starts at 0. */
struct stop_set {
    struct trie trie;
    struct stop_state *state; /* [trie.n] owned */
};

/* The strings are not kept. */
sumi_status stop_open(struct stop_set *s, const char *const *text, const size_t *len, size_t n,
                      sumi_error *err);
void stop_close(struct stop_set *s);

/* Takes one byte. Index of the string that ends with it (the lowest of several), or -1. */
int32_t stop_step(const struct stop_set *s, int32_t *state, unsigned char byte);
/* Bytes at the end of the text so far that may be the beginning of a string. */
size_t stop_hold(const struct stop_set *s, int32_t state);

#endif
