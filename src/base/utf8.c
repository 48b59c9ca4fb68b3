/* UTF-8 as in Unicode table 3-7 ("well-formed byte sequences"). */
#include "base/utf8.h"

#include <string.h>

/* Number of bytes that the first byte announces, and the allowed range of the second byte. */
static int lead(unsigned char c, unsigned char *lo, unsigned char *hi) {
    *lo = 0x80;
    *hi = 0xBF;
    if (c < 0x80) return 1;
    if (c >= 0xC2 && c <= 0xDF) return 2;
    if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0) *lo = 0xA0;
        if (c == 0xED) *hi = 0x9F;
        return 3;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0) *lo = 0x90;
        if (c == 0xF4) *hi = 0x8F;
        return 4;
    }
    return 0;
}

/* How many of the first n bytes agree with a character that starts at s; *len is its full length.
 */
static int match(const unsigned char *s, size_t n, int *len) {
    unsigned char lo, hi;
    *len = lead(s[0], &lo, &hi);
    if (*len == 0) return 0;
    int i = 1;
    for (; i < *len && (size_t)i < n; i++) {
        if (s[i] < lo || s[i] > hi) break;
        lo = 0x80;
        hi = 0xBF;
    }
    return i;
}

int utf8_decode(const char *s, size_t n, uint32_t *out) {
    const unsigned char *u = (const unsigned char *)s;
    int len;
    if (match(u, n, &len) < len || len == 0) return 0;
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t c = u[0] & mask[len];
    for (int i = 1; i < len; i++) c = c << 6 | (u[i] & 0x3Fu);
    *out = c;
    return len;
}

size_t utf8_valid_prefix(const char *s, size_t n) {
    const unsigned char *u = (const unsigned char *)s;
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        while (n - i >= sizeof eight) { /* plain ASCII goes by in strides */
            memcpy(&eight, u + i, sizeof eight);
            if (eight & 0x8080808080808080u) break;
            i += sizeof eight;
        }
        if (i == n) break;
        if (u[i] < 0x80) {
            i++;
            continue;
        }
        int len;
        if (match(u + i, n - i, &len) < len || len == 0) break;
        i += (size_t)len;
    }
    return i;
}

bool utf8_incomplete(const char *s, size_t n) {
    int len;
    return (size_t)match((const unsigned char *)s, n, &len) == n && (size_t)len > n;
}

size_t utf8_bad_length(const char *s, size_t n) {
    int len;
    int good = match((const unsigned char *)s, n, &len);
    return good > 1 ? (size_t)good : 1;
}

int utf8_encode(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}
