/* Growing byte buffer with sticky failure. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"

void buf_reset(struct buf *b) {
    mem_free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = 0;
}

static bool grow(struct buf *b, size_t n) {
    size_t need;
    if (b->failed) return false;
    if (!size_add(b->len, n, &need) || !size_add(need, 1, &need) || (b->max && need - 1 > b->max)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap) return true;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        if (!size_mul(cap, 2, &cap)) cap = need;
    char *p = mem_resize(b->data, cap, 1);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

void buf_put(struct buf *b, const void *p, size_t n) {
    if (!grow(b, n)) return;
    if (n) memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = 0;
}

void buf_puts(struct buf *b, const char *s) {
    buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c) {
    buf_put(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0 && grow(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_drop(struct buf *b, size_t n) {
    if (!n) return;
    if (n > b->len) n = b->len;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = 0;
}

void buf_cut(struct buf *b, size_t n) {
    if (n >= b->len) return;
    b->len = n;
    b->data[n] = 0;
}

const char *buf_text(struct buf *b) {
    return b->len ? b->data : "";
}

char *buf_take(struct buf *b) {
    char *p = NULL;
    if (!b->failed) {
        grow(b, 0);
        if (!b->failed) {
            b->data[b->len] = 0;
            p = b->data;
            b->data = NULL;
        }
    }
    buf_reset(b);
    return p;
}
