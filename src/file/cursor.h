/* Walking over JSON text whose shape is known beforehand, without building it. For headers in which
 * a key that comes twice must be seen, and which are too large to turn into objects. */
#ifndef SUMI_FILE_CURSOR_H
#define SUMI_FILE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cursor {
    const char *text; /* valid UTF-8, borrowed */
    size_t n, at;
    const char *what; /* the source, for messages */
};

/* SUMI_ERR_FORMAT: what was expected at the cursor, with the offset and the character found. */
sumi_status cursor_fail(const struct cursor *c, const char *expected, sumi_error *err);

bool cursor_end(struct cursor *c);          /* only white space is left */
bool cursor_try(struct cursor *c, char ch); /* steps over white space, then over ch if it is next */
sumi_status cursor_expect(struct cursor *c, char ch, sumi_error *err);

/* A string, unescaped, into out[0..max] with a NUL; *n is its length in bytes. A longer one is
 * SUMI_ERR_LIMIT, one with a NUL inside SUMI_ERR_FORMAT. out may be NULL: then the string is only
 * checked and may be of any length and kind. */
sumi_status cursor_string(struct cursor *c, char *out, size_t max, size_t *n, sumi_error *err);

/* A number without sign, fraction or exponent, below 2^64. */
sumi_status cursor_u64(struct cursor *c, uint64_t *out, sumi_error *err);

#endif
