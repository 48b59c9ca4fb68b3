/* Heap allocation with a fault hook for tests. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static atomic_long n_alloc;
static atomic_long fail_countdown;

static bool must_fail(void) {
    atomic_fetch_add_explicit(&n_alloc, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) <= 0) return false;
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

void mem_fail_at(long n) {
    atomic_store(&fail_countdown, n);
}

long mem_count(void) {
    return atomic_load(&n_alloc);
}

void *mem_alloc(size_t bytes) {
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *mem_zero(size_t count, size_t size) {
    return must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *mem_resize(void *p, size_t count, size_t size) {
    size_t bytes;
    if (!size_mul(count, size, &bytes) || must_fail()) return NULL;
    return realloc(p, bytes ? bytes : 1);
}

void *mem_aligned(size_t bytes, size_t align) {
    void *p = NULL;
    if (must_fail()) return NULL;
    return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1) ==
                   0
               ? p
               : NULL;
}

char *mem_string(const char *s, size_t n) {
    char *p = mem_alloc(n + 1);
    if (!p) return NULL;
    if (n) memcpy(p, s, n);
    p[n] = 0;
    return p;
}

void mem_free(void *p) {
    free(p);
}
