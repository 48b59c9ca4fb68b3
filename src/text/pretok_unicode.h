/* Properties of characters that are newer than the Unicode version of an older PCRE2. */
#ifndef SUMI_TEXT_PRETOK_UNICODE_H
#define SUMI_TEXT_PRETOK_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* PCRE2 of at least this Unicode version needs no additions. */
#define UNICODE_ADDITIONS_VERSION 16

struct unicode_range {
    uint32_t first, last;
    const char *property; /* general category of two letters, or a script's name */
};

/* Categories first, ascending by code point; then scripts. */
extern const struct unicode_range unicode_additions[];
extern const size_t n_unicode_additions;

#endif
