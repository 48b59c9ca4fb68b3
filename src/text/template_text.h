/* What Python's str knows about characters: white space, line breaks, case, classes. UTF-8 in and
 * out; the text is valid. */
#ifndef SUMI_TEXT_TEMPLATE_TEXT_H
#define SUMI_TEXT_TEMPLATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that starts with this byte. */
static inline size_t tpl_char_len(char lead) {
    unsigned char c = (unsigned char)lead;
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

uint32_t tpl_char(const char *p);          /* the code point at p */
size_t tpl_chars(const char *p, size_t n); /* code points in p[0..n) */
size_t tpl_space(const char *p, size_t n); /* bytes of the white space at p, 0: none (isspace) */
size_t tpl_line_break(const char *p, size_t n); /* likewise for a break of splitlines */
size_t tpl_space_left(const char *p, size_t n); /* bytes of leading white space */
size_t tpl_space_right(const char *p, size_t n);

/* Case mapping of one code point into at most three; returns how many. `final` is true where a
 * capital sigma ends a word. */
int tpl_upper(uint32_t c, uint32_t out[3]);
int tpl_lower(uint32_t c, bool final, uint32_t out[3]);
int tpl_title(uint32_t c, uint32_t out[3]);

enum char_class { CHAR_ALPHA, CHAR_DIGIT, CHAR_DECIMAL, CHAR_NUMERIC, CHAR_UPPER, CHAR_LOWER };
bool tpl_char_is(uint32_t c, enum char_class want);
bool tpl_printable(uint32_t c); /* repr() shows it as it is */
bool tpl_cased(uint32_t c);     /* upper, lower or title case */

#endif
