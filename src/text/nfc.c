/* In: UTF-8. Out: its NFC. Text is taken in stretches that cannot influence one another: an ASCII
 * character never combines with what stands before it. utf8proc gives decompositions, classes and
 * compositions; the reordering is done here, because its own takes quadratic time. */
#include "text/nfc.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"

#define MAX_TEXT  (256u << 20)
#define MAX_PARTS 4 /* code points in the canonical decomposition of one */

static int combining_class(int32_t c) {
    return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class;
}

/* Sorts marks [n] by class, equal ones in order: counting sort over the classes 1 to 255. */
static void sort_marks(int32_t *c, int32_t *scratch, size_t n) {
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) at[combining_class(c[i]) + 1]++;
    for (int k = 1; k < 257; k++) at[k] += at[k - 1];
    for (size_t i = 0; i < n; i++) scratch[at[combining_class(c[i])]++] = c[i];
    memcpy(c, scratch, n * sizeof *c);
}

static void order_marks(int32_t *c, int32_t *scratch, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t end = i;
        bool sorted = true;
        for (int last = 0; end < n && combining_class(c[end]); end++) {
            int k = combining_class(c[end]);
            sorted = sorted && k >= last;
            last = k;
        }
        if (!sorted) sort_marks(c + i, scratch, end - i);
        i = end + 1;
    }
}

static sumi_status append_stretch(const char *text, size_t n, bool trusted, struct buf *out,
                                  struct buf *origin, sumi_error *err) {
    size_t cap = n * MAX_PARTS, len = 0, before = out->len; /* n is at most MAX_TEXT */
    int32_t *c = mem_alloc(2 * cap * sizeof *c);
    if (!c) return NO_MEMORY(err, 2 * cap * sizeof *c);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        int boundary = 0;
        i += (size_t)utf8_decode(text + i, n - i, &cp);
        len += (size_t)utf8proc_decompose_char((int32_t)cp, c + len, (utf8proc_ssize_t)(cap - len),
                                               UTF8PROC_STABLE | UTF8PROC_COMPOSE, &boundary);
    }
    order_marks(c, c + cap, len);
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(c, (utf8proc_ssize_t)len, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        char utf8[4];
        buf_put(out, utf8, (size_t)utf8_encode((uint32_t)c[i], utf8));
    }
    mem_free(c);
    for (size_t i = before; origin && i < out->len; i++) buf_putc(origin, (char)trusted);
    return SUMI_OK;
}

static bool is_ascii(char c) {
    return !((unsigned char)c & 0x80);
}

sumi_status nfc_append(const char *text, size_t n, const uint8_t *trusted, struct buf *out,
                       struct buf *origin, sumi_error *err) {
    if (!trusted) origin = NULL;
    if (n > MAX_TEXT)
        return fail_with(err, SUMI_ERR_LIMIT, "text of %zu bytes to normalise, the limit is %u", n,
                         MAX_TEXT);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        /* ASCII that nothing follows which could combine with it stays as it is. */
        while (end < n && is_ascii(text[end]) && (end + 1 == n || is_ascii(text[end + 1]))) end++;
        buf_put(out, text + i, end - i);
        if (origin) buf_put(origin, trusted + i, end - i);
        i = end;
        bool all = true;
        while (end < n && (end == i || !is_ascii(text[end])))
            all = (!trusted || trusted[end]) && all, end++;
        if (end > i) TRY(append_stretch(text + i, end - i, all, out, origin, err));
        i = end;
    }
    if (out->failed || (origin && origin->failed)) return NO_MEMORY(err, out->len);
    return SUMI_OK;
}
