/* Strings flow in and stay at one address until all of them go. Knows nothing of their meaning. */
#include "file/strings.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"

enum { CHUNK_BYTES = 1 << 16 };

struct strings_chunk {
    struct strings_chunk *next;
    size_t used, size;
    char text[];
};

static struct strings_chunk *add_chunk(struct strings *s, size_t need) {
    size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES, bytes;
    if (!size_add(size, sizeof(struct strings_chunk), &bytes)) return NULL;
    struct strings_chunk *c = mem_alloc(bytes);
    if (!c) return NULL;
    *c = (struct strings_chunk){.next = s->head, .size = size};
    s->head = c;
    return c;
}

const char *strings_copy(struct strings *s, const char *p, size_t n) {
    size_t need;
    if (!size_add(n, 1, &need)) return NULL;
    struct strings_chunk *c = s->head;
    if (!c || c->size - c->used < need) c = add_chunk(s, need);
    if (!c) return NULL;
    char *at = c->text + c->used;
    if (n) memcpy(at, p, n);
    at[n] = 0;
    c->used += need;
    return at;
}

void strings_reset(struct strings *s) {
    while (s->head) {
        struct strings_chunk *next = s->head->next;
        mem_free(s->head);
        s->head = next;
    }
}

int strings_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
