/* A growing byte buffer. Failure is sticky: after an allocation fails or the maximum is passed,
 * `failed` is true, further appends do nothing, and the caller checks once at the end. */
#ifndef SUMI_BASE_BUF_H
#define SUMI_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated when len > 0 or after buf_text; owned */
    size_t len;
    size_t cap;
    size_t max; /* 0: no limit but memory */
    bool failed;
};

void buf_reset(struct buf *b); /* frees; the struct is empty and usable again, max is kept */
void buf_clear(struct buf *b); /* len = 0, failed = false, memory kept */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
void buf_drop(struct buf *b, size_t n); /* removes the first n bytes */
void buf_cut(struct buf *b, size_t n);  /* keeps the first n bytes, n <= len */
const char *buf_text(struct buf *b);    /* NUL-terminated view, "" when empty */
char *buf_take(struct buf *b);          /* gives the memory away (mem_free it), or NULL if failed */

#endif
