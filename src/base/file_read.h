/* Reading a whole file. */
#ifndef SUMI_BASE_FILE_READ_H
#define SUMI_BASE_FILE_READ_H

#include "base/status.h"

/* Reads a whole file into memory (mem_free it); NUL-terminated. Over max_bytes is an error. */
sumi_status file_read(const char *path, size_t max_bytes, char **out, size_t *n, sumi_error *err);

#endif
