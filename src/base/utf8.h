/* UTF-8: validation, decoding, encoding. Surrogates and overlong forms are invalid. */
#ifndef SUMI_BASE_UTF8_H
#define SUMI_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the longest valid prefix of s[0..n). Equal to n when the whole text is valid. */
size_t utf8_valid_prefix(const char *s, size_t n);

static inline bool utf8_valid(const char *s, size_t n) {
    return utf8_valid_prefix(s, n) == n;
}

/* Decodes one character at s[0..n), n > 0. Returns its length in bytes and the code point, or 0 if
 * the bytes are invalid or incomplete. */
int utf8_decode(const char *s, size_t n, uint32_t *out);

/* True if s[0..n), n in 1..3, is a proper prefix of some valid character. */
bool utf8_incomplete(const char *s, size_t n);

/* s[0..n), n > 0, does not start with a valid character: how many of its bytes one U+FFFD stands for
 * (the longest prefix of a character, at least 1), as Unicode recommends and Rust and Python do. */
size_t utf8_bad_length(const char *s, size_t n);

/* Writes 1 to 4 bytes; returns the length, or 0 for a surrogate or a value over 0x10FFFF. */
int utf8_encode(uint32_t c, char out[4]);

#endif
