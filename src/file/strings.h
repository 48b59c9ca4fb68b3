/* Many small strings with one lifetime. */
#ifndef SUMI_FILE_STRINGS_H
#define SUMI_FILE_STRINGS_H

#include <stddef.h>

struct strings_chunk;

struct strings {
    struct strings_chunk *head; /* owned; all-zero is an empty set */
};

/* A NUL-terminated copy of p[0..n) that lives until strings_reset; NULL when memory is short. */
const char *strings_copy(struct strings *s, const char *p, size_t n);
void strings_reset(struct strings *s);

int strings_compare(const void *a, const void *b); /* for qsort over an array of const char * */

#endif
