/* GPT-2's byte-level alphabet: every byte has a printable character. Printable bytes of Latin-1
 * stand for themselves, the 68 others for U+0100 and up, in order. */
#ifndef SUMI_TEXT_BYTELEVEL_H
#define SUMI_TEXT_BYTELEVEL_H

#include <stdint.h>

static inline bool byte_is_printable(uint32_t b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
}

static inline uint32_t byte_to_char(unsigned char b) {
    if (byte_is_printable(b)) return b;
    if (b <= 0x20) return 0x100u + b;
    return b == 0xAD ? 0x143 : 0x100u + 0x21 + b - 0x7F;
}

/* The byte of a character, or -1. */
static inline int byte_from_char(uint32_t c) {
    if (byte_is_printable(c)) return (int)c;
    if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

#endif
