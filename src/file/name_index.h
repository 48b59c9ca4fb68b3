/* Look-up by name over an array of structures that begin with their name.
 * Sorted, not hashed: names come from files, and no choice of names makes a sort slow. */
#ifndef SUMI_FILE_NAME_INDEX_H
#define SUMI_FILE_NAME_INDEX_H

#include <stddef.h>

#include "base/status.h"

struct name_index {
    const void **at; /* [n] pointers into the array, in order of name; owned */
    size_t n;
};

/* items: n structures of `size` bytes, each with a `const char *` as its first member; kept. */
sumi_status name_index_build(struct name_index *x, const void *items, size_t n, size_t size,
                             sumi_error *err);
const void *name_index_find(const struct name_index *x, const char *name); /* or NULL */

/* Two entries in a row of x->at that share a name, the one earlier in the array first; or NULL. */
const void *const *name_index_twice(const struct name_index *x);
void name_index_reset(struct name_index *x);

#endif
