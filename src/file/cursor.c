/* JSON text flows in, single values flow out as the caller asks for them. Refuses to know what a
 * document means, and refuses every byte that the caller did not expect. */
#include "file/cursor.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

sumi_status cursor_fail(const struct cursor *c, const char *expected, sumi_error *err) {
    if (c->at >= c->n)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: the header ends at byte %zu, expected %s",
                         c->what, c->n, expected);
    char found[32];
    unsigned char ch = (unsigned char)c->text[c->at];
    snprintf(found, sizeof found, ch > 0x20 && ch < 0x7F ? "'%c'" : "byte 0x%02X", ch);
    return fail_with(err, SUMI_ERR_FORMAT, "%s: byte %zu of the header: expected %s, found %s",
                     c->what, c->at, expected, found);
}

static void skip_space(struct cursor *c) {
    while (c->at < c->n && memchr(" \t\r\n", c->text[c->at], 4)) c->at++;
}

bool cursor_end(struct cursor *c) {
    skip_space(c);
    return c->at == c->n;
}

bool cursor_try(struct cursor *c, char ch) {
    skip_space(c);
    if (c->at >= c->n || c->text[c->at] != ch) return false;
    c->at++;
    return true;
}

sumi_status cursor_expect(struct cursor *c, char ch, sumi_error *err) {
    char expected[] = {'\'', ch, '\'', 0};
    return cursor_try(c, ch) ? SUMI_OK : cursor_fail(c, expected, err);
}

static sumi_status hex4(struct cursor *c, uint32_t *out, sumi_error *err) {
    *out = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *d = c->at < c->n ? memchr(digits, c->text[c->at], sizeof digits - 1) : NULL;
        if (!d) return cursor_fail(c, "four hexadecimal digits", err);
        uint32_t v = (uint32_t)(d - digits);
        *out = *out << 4 | (v < 16 ? v : v - 6);
    }
    return SUMI_OK;
}

/* The text after a backslash; `out` receives 1 to 4 bytes. */
static sumi_status escape(struct cursor *c, char out[4], size_t *n, sumi_error *err) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *f = c->at < c->n ? memchr(from, c->text[c->at], sizeof from - 1) : NULL;
    *n = 1;
    if (f) {
        out[0] = to[f - from];
        c->at++;
        return SUMI_OK;
    }
    if (c->at >= c->n || c->text[c->at] != 'u') return cursor_fail(c, "an escape letter", err);
    c->at++;
    uint32_t code, low;
    TRY(hex4(c, &code, err));
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (c->n - c->at < 2 || memcmp(c->text + c->at, "\\u", 2) != 0)
            return cursor_fail(c, "the second half of a surrogate pair", err);
        c->at += 2;
        TRY(hex4(c, &low, err));
        if (low < 0xDC00 || low > 0xDFFF)
            return cursor_fail(c, "the second half of a surrogate pair before this", err);
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    int bytes = utf8_encode(code, out);
    if (bytes == 0) return cursor_fail(c, "no lone surrogate before this", err);
    *n = (size_t)bytes;
    return SUMI_OK;
}

sumi_status cursor_string(struct cursor *c, char *out, size_t max, size_t *n, sumi_error *err) {
    skip_space(c);
    if (c->at >= c->n || c->text[c->at] != '"') return cursor_fail(c, "a string", err);
    size_t start = c->at++, used = 0;
    while (c->at < c->n && c->text[c->at] != '"') {
        char piece[4] = {c->text[c->at]};
        size_t len = 1;
        if ((unsigned char)piece[0] < 0x20)
            return cursor_fail(c, "no control character in a string", err);
        c->at++;
        if (piece[0] == '\\') TRY(escape(c, piece, &len, err));
        if (out && !piece[0]) return cursor_fail(c, "no NUL character before this", err);
        if (out && used + len > max)
            return fail_with(err, SUMI_ERR_LIMIT,
                             "%s: the string at byte %zu of the header has more than %zu bytes",
                             c->what, start, max);
        if (out) memcpy(out + used, piece, len);
        used += len;
    }
    if (c->at >= c->n) return cursor_fail(c, "'\"' at the end of a string", err);
    c->at++;
    if (out) out[used] = 0;
    *n = used;
    return SUMI_OK;
}

sumi_status cursor_u64(struct cursor *c, uint64_t *out, sumi_error *err) {
    skip_space(c);
    size_t start = c->at;
    uint64_t v = 0;
    for (; c->at < c->n && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++) {
        unsigned digit = (unsigned)(c->text[c->at] - '0');
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return cursor_fail(c, "a number below 2^64", err);
    }
    if (c->at == start || (c->text[start] == '0' && c->at - start > 1) ||
        (c->at < c->n && memchr(".eE", c->text[c->at], 3)))
        return cursor_fail(c, "a whole number that is not negative", err);
    *out = v;
    return SUMI_OK;
}
