/* A file mapped read-only. */
#ifndef SUMI_FILE_MAP_H
#define SUMI_FILE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct file_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t bytes;        /* when it was opened; a file cut shorter afterwards raises SIGBUS */
};

/* Regular files only; everything else, and a Git LFS pointer in place of a file, is an error. */
sumi_status file_map_open(struct file_map *out, const char *path, sumi_error *err);
void file_map_close(struct file_map *m); /* an all-zero struct is fine */

#endif
