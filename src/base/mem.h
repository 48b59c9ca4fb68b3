/* The one door to the heap, so that a test can make the n-th allocation fail.
 * All return NULL when memory is short or a size would overflow; free with mem_free. */
#ifndef SUMI_BASE_MEM_H
#define SUMI_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t bytes);             /* uninitialised; bytes 0 gives a valid pointer */
void *mem_zero(size_t count, size_t size); /* count * size zeroed bytes */
void *mem_resize(void *p, size_t count, size_t size); /* p stays valid when NULL is returned */
void *mem_aligned(size_t bytes, size_t align);        /* align: a power of two */
char *mem_string(const char *s, size_t n);            /* a NUL-terminated copy of n bytes */
void mem_free(void *p);

/* Test hook: the n-th allocation from now (1 = the next) fails once; 0 turns it off.
 * Counts allocations of all threads. */
void mem_fail_at(long n);
long mem_count(void); /* allocations so far */

#endif
