/* Strings in, a tree of bytes out; children are linked lists, the root has a table. */
#include "text/trie.h"

#include "base/mem.h"

static sumi_status new_node(struct trie *t, unsigned char byte, int32_t *out, sumi_error *err) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        if (cap > INT32_MAX)
            return fail_with(err, SUMI_ERR_LIMIT, "too many strings for one set: over 2^31 bytes");
        struct trie_node *node = mem_resize(t->node, cap, sizeof *node);
        if (!node) return NO_MEMORY(err, cap * sizeof *node);
        t->node = node;
        t->cap = cap;
    }
    *out = (int32_t)t->n;
    t->node[t->n++] = (struct trie_node){.value = -1, .byte = byte};
    return SUMI_OK;
}

sumi_status trie_add(struct trie *t, const char *s, size_t n, int32_t value, sumi_error *err) {
    int32_t at = 0, next;
    if (t->n == 0) TRY(new_node(t, 0, &next, err));
    for (size_t i = 0; i < n; i++, at = next) {
        unsigned char byte = (unsigned char)s[i];
        next = trie_step(t, at, byte);
        if (next) continue;
        TRY(new_node(t, byte, &next, err));
        t->node[next].sibling = t->node[at].child;
        t->node[at].child = next;
        if (at == 0) t->first[byte] = next;
    }
    if (t->node[at].value < 0) t->node[at].value = value;
    return SUMI_OK;
}

void trie_reset(struct trie *t) {
    mem_free(t->node);
    *t = (struct trie){0};
}

int32_t trie_find(const struct trie *t, const char *s, size_t n) {
    int32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at = trie_step(t, at, (unsigned char)s[i]);
        if (!at) return -1;
    }
    return at ? t->node[at].value : -1;
}
