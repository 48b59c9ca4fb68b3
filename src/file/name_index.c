/* An array of named things flows in, a table to find them by name comes out. Knows only that a
 * thing begins with a pointer to its name. */
#include "file/name_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *name_of(const void *item) {
    return *(const char *const *)item;
}

/* Equal names keep the order of the array, so that messages name the first one first. */
static int compare(const void *a, const void *b) {
    const void *x = *(const void *const *)a, *y = *(const void *const *)b;
    int c = strcmp(name_of(x), name_of(y));
    if (c) return c;
    return ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

sumi_status name_index_build(struct name_index *x, const void *items, size_t n, size_t size,
                             sumi_error *err) {
    x->n = 0;
    x->at = mem_zero(n, sizeof *x->at);
    if (!x->at) return NO_MEMORY(err, n * sizeof *x->at);
    x->n = n;
    for (size_t i = 0; i < n; i++) x->at[i] = (const char *)items + i * size;
    qsort(x->at, n, sizeof *x->at, compare);
    return SUMI_OK;
}

const void *name_index_find(const struct name_index *x, const char *name) {
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(name, name_of(x->at[mid]));
        if (c == 0) return x->at[mid];
        if (c < 0) high = mid;
        else low = mid + 1;
    }
    return NULL;
}

const void *const *name_index_twice(const struct name_index *x) {
    for (size_t i = 1; i < x->n; i++)
        if (strcmp(name_of(x->at[i - 1]), name_of(x->at[i])) == 0) return &x->at[i - 1];
    return NULL;
}

void name_index_reset(struct name_index *x) {
    mem_free(x->at);
    *x = (struct name_index){0};
}
