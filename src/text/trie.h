/* A set of byte strings with a value each, walked byte by byte. */
#ifndef SUMI_TEXT_TRIE_H
#define SUMI_TEXT_TRIE_H

#include "base/status.h"

#include <stdint.h>

struct trie_node {
    int32_t child, sibling; /* 0: none */
    int32_t value;          /* of the string that ends here, or -1 */
    unsigned char byte;     /* on the way from the parent */
};

/* Zeroed: empty. Node 0 is the root. */
struct trie {
    struct trie_node *node; /* [n] owned; parents come before their children */
    size_t n, cap;
    int32_t first[256]; /* child of the root by byte, 0: none */
};

/* Adds s[0..n), n > 0, value >= 0. A string that is there already keeps its value. */
sumi_status trie_add(struct trie *t, const char *s, size_t n, int32_t value, sumi_error *err);
void trie_reset(struct trie *t);

/* The node after `byte`, or 0. */
static inline int32_t trie_step(const struct trie *t, int32_t node, unsigned char byte) {
    if (node == 0) return t->first[byte];
    int32_t i = t->node[node].child;
    while (i && t->node[i].byte != byte) i = t->node[i].sibling;
    return i;
}

/* Value of exactly s[0..n), or -1. */
int32_t trie_find(const struct trie *t, const char *s, size_t n);

#endif
