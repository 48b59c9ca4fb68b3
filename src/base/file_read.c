/* A whole file into memory: in comes a path, out come bytes of bounded number. */
#include "base/file_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

sumi_status file_read(const char *path, size_t max_bytes, char **out, size_t *n, sumi_error *err) {
    *out = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    size_t cap = 1 << 16, len = 0;
    char *p = mem_alloc(cap + 1);
    sumi_status status = p ? SUMI_OK : NO_MEMORY(err, cap);
    while (status == SUMI_OK) {
        len += fread(p + len, 1, cap - len, f);
        if (len < cap) break;
        if (cap > max_bytes) {
            status = fail_with(err, SUMI_ERR_LIMIT, "%s: larger than the limit of %zu bytes", path,
                               max_bytes);
            break;
        }
        char *q = mem_resize(p, cap * 2 + 1, 1);
        if (!q) status = NO_MEMORY(err, cap * 2);
        else {
            p = q;
            cap *= 2;
        }
    }
    if (status == SUMI_OK && ferror(f))
        status = fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    if (status == SUMI_OK && len > max_bytes)
        status = fail_with(err, SUMI_ERR_LIMIT, "%s: %zu bytes, larger than the limit of %zu", path,
                           len, max_bytes);
    fclose(f);
    if (status != SUMI_OK) {
        mem_free(p);
        return status;
    }
    p[len] = 0;
    *out = p;
    *n = len;
    return SUMI_OK;
}
