/* Tensors as the container readers collect them, and the checks both containers share. */
#ifndef SUMI_FILE_TENSOR_LIST_H
#define SUMI_FILE_TENSOR_LIST_H

#include "file/checkpoint.h"
#include "file/strings.h"

enum { TENSOR_MAX_NAME = 512 }; /* bytes without the NUL */

struct tensor_list {
    struct tensor *at; /* [n]; owned, moves when it grows */
    size_t n, cap;
    struct strings strings; /* names of tensors and files */
};

void tensor_list_reset(struct tensor_list *l);
sumi_status tensor_list_add(struct tensor_list *l, const struct tensor *t, sumi_error *err);

/* A name fit to be stored and printed: 1 to max bytes of UTF-8 without control characters; anything
 * else is SUMI_ERR_FORMAT. `what` says whose name it is. */
sumi_status name_check(const char *name, size_t n, size_t max, const char *file, const char *what,
                       sumi_error *err);

/* Sets t->bytes from dtype and dims. SUMI_ERR_SHAPE when a row is no whole number of blocks or the
 * size passes the machine's. */
sumi_status tensor_measure(struct tensor *t, sumi_error *err);

/* Puts at[first..n), tensors of one file, into the order of their data and refuses overlaps. */
sumi_status tensor_list_order(struct tensor_list *l, size_t first, sumi_error *err);

#endif
