/* Bump allocation out of growing blocks. */
#include "base/arena.h"

#include "base/mem.h"
#include "base/size.h"

#define ALIGN       16
#define FIRST_BLOCK 8192
#define LAST_BLOCK  ((size_t)1 << 20)

struct arena_block {
    _Alignas(ALIGN) struct arena_block *next;
    size_t bytes;
};

/* Blocks double up to LAST_BLOCK; a larger request gets a block of its own size. */
static bool add_block(struct arena *a, size_t bytes) {
    size_t want = a->blocks ? a->blocks->bytes * 2 : FIRST_BLOCK;
    if (want > LAST_BLOCK) want = LAST_BLOCK;
    if (want < bytes) want = bytes;
    size_t total;
    if (!size_add(want, sizeof(struct arena_block), &total)) return false;
    struct arena_block *b = mem_alloc(total);
    if (!b) return false;
    b->bytes = want;
    b->next = a->blocks;
    a->blocks = b;
    a->at = (char *)(b + 1);
    a->end = a->at + want;
    return true;
}

void *arena_alloc(struct arena *a, size_t count, size_t size) {
    size_t bytes, used;
    if (!size_mul(count, size, &bytes) || !size_align(bytes ? bytes : 1, ALIGN, &bytes) ||
        !size_add(a->used, bytes, &used))
        return NULL;
    if (a->max && used > a->max) {
        a->full = true;
        return NULL;
    }
    if ((size_t)(a->end - a->at) < bytes && !add_block(a, bytes)) return NULL;
    void *p = a->at;
    a->at += bytes;
    a->used = used;
    return p;
}

void arena_reset(struct arena *a) {
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        mem_free(a->blocks);
        a->blocks = next;
    }
    *a = (struct arena){.max = a->max};
}
