/* Memory of one lifetime: pieces are handed out in order and freed all together. A zeroed struct is
 * an empty arena without a limit. */
#ifndef SUMI_BASE_ARENA_H
#define SUMI_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* owned */
    char *at, *end;             /* free part of the newest block */
    size_t used;                /* bytes handed out */
    size_t max;                 /* 0: no limit but memory */
    bool full;                  /* a request was refused because of max */
};

/* count * size uninitialised bytes, 16-byte aligned. NULL when memory is short, the size overflows
 * or max is passed. */
void *arena_alloc(struct arena *a, size_t count, size_t size);
void arena_reset(struct arena *a); /* frees everything; empty and usable again, max is kept */

#endif
