/* A model's own memory: blocks in a list, freed together. */
#include "model/model.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"

struct block {
    struct block *next;
    char pad[64 - sizeof(struct block *)]; /* what follows stays 64-byte aligned */
};

void *model_alloc(struct model *m, size_t count, size_t size) {
    size_t bytes, total;
    if (!size_mul(count, size, &bytes) || !size_add(bytes, sizeof(struct block), &total))
        return NULL;
    struct block *b = mem_aligned(total, 64);
    if (!b) return NULL;
    memset(b, 0, total);
    b->next = m->memory;
    m->memory = b;
    return b + 1;
}

void model_close(struct model *m) {
    if (!m) return;
    for (struct block *b = m->memory, *next; b; b = next) {
        next = b->next;
        mem_free(b);
    }
    mem_free(m);
}
