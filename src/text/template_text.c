/* Character tables by way of utf8proc; what it lacks (full case mappings, Python's idea of white
 * space) stands here. Knows nothing of templates. */
#include "text/template_text.h"

#include <utf8proc.h>

#include "base/utf8.h"

uint32_t tpl_char(const char *p) {
    uint32_t c = 0;
    utf8_decode(p, tpl_char_len(*p), &c);
    return c;
}

size_t tpl_chars(const char *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += (p[i] & 0xC0) != 0x80;
    return count;
}

size_t tpl_space(const char *p, size_t n) {
    if (!n) return 0;
    unsigned char b = (unsigned char)*p;
    if (b < 0x80) return b == ' ' || (b >= 9 && b <= 13) || (b >= 0x1C && b <= 0x1F);
    if (b != 0xC2 && (b < 0xE1 || b > 0xE3)) return 0;
    uint32_t c = tpl_char(p);
    bool space = c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
                 c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
    return space ? tpl_char_len(*p) : 0;
}

size_t tpl_line_break(const char *p, size_t n) {
    if (!n) return 0;
    unsigned char b = (unsigned char)*p;
    if (b == '\r') return n > 1 && p[1] == '\n' ? 2 : 1;
    if (b < 0x80) return (b >= 10 && b <= 12) || (b >= 0x1C && b <= 0x1E);
    if (b != 0xC2 && b != 0xE2) return 0;
    uint32_t c = tpl_char(p);
    return c == 0x85 || c == 0x2028 || c == 0x2029 ? tpl_char_len(*p) : 0;
}

size_t tpl_space_left(const char *p, size_t n) {
    size_t i = 0, k;
    while ((k = tpl_space(p + i, n - i)) != 0) i += k;
    return i;
}

size_t tpl_space_right(const char *p, size_t n) {
    size_t end = n;
    while (end) {
        size_t at = end - 1;
        while (at && (p[at] & 0xC0) == 0x80) at--;
        if (!tpl_space(p + at, end - at)) break;
        end = at;
    }
    return n - end;
}

/* Unconditional mappings to more than one code point that occur in running text; the rarer ones
 * (Greek with iota, Armenian ligatures) keep their simple mapping. */
static int upper_special(uint32_t c, uint32_t out[3]) {
    static const char *const ligature[] = {"FF", "FI", "FL", "FFI", "FFL", "ST", "ST"};
    if (c == 0xDF) {
        out[0] = out[1] = 'S';
        return 2;
    }
    if (c == 0x149) {
        out[0] = 0x2BC;
        out[1] = 'N';
        return 2;
    }
    if (c >= 0xFB00 && c <= 0xFB06) {
        int n = 0;
        for (const char *p = ligature[c - 0xFB00]; *p; p++) out[n++] = (uint32_t)*p;
        return n;
    }
    return 0;
}

int tpl_upper(uint32_t c, uint32_t out[3]) {
    int n = c < 0x80 ? 0 : upper_special(c, out);
    if (n) return n;
    out[0] = c < 0x80 ? c - (c >= 'a' && c <= 'z' ? 32 : 0) : (uint32_t)utf8proc_toupper((int)c);
    return 1;
}

int tpl_lower(uint32_t c, bool final, uint32_t out[3]) {
    if (c == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = c < 0x80 ? c + (c >= 'A' && c <= 'Z' ? 32 : 0) : (uint32_t)utf8proc_tolower((int)c);
    if (c == 0x3A3 && final) out[0] = 0x3C2;
    return 1;
}

int tpl_title(uint32_t c, uint32_t out[3]) {
    int n = c < 0x80 ? 0 : upper_special(c, out);
    for (int i = 1; i < n; i++) {
        uint32_t low[3];
        tpl_lower(out[i], false, low);
        out[i] = c == 0x149 ? out[i] : low[0];
    }
    if (n) return n;
    out[0] = c < 0x80 ? c - (c >= 'a' && c <= 'z' ? 32 : 0) : (uint32_t)utf8proc_totitle((int)c);
    return 1;
}

/* Cased characters outside the letter categories: the property Other_Uppercase and
 * Other_Lowercase, as far as text has them. */
static bool other_case(uint32_t c, bool upper) {
    if (upper) return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF);
    return c == 0xAA || c == 0xBA || (c >= 0x2B0 && c <= 0x2B8) || (c >= 0x2170 && c <= 0x217F) ||
           (c >= 0x24D0 && c <= 0x24E9);
}

static bool ascii_is(uint32_t c, enum char_class want) {
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    switch (want) {
    case CHAR_ALPHA: return upper || lower;
    case CHAR_UPPER: return upper;
    case CHAR_LOWER: return lower;
    default: return c >= '0' && c <= '9';
    }
}

bool tpl_char_is(uint32_t c, enum char_class want) {
    if (c < 0x80) return ascii_is(c, want);
    utf8proc_category_t k = utf8proc_category((int)c);
    bool superscript = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
                       (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
                       (c >= 0x2460 && c <= 0x2468);
    switch (want) {
    case CHAR_ALPHA: return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
    case CHAR_DECIMAL: return k == UTF8PROC_CATEGORY_ND;
    case CHAR_DIGIT: return k == UTF8PROC_CATEGORY_ND || superscript;
    case CHAR_NUMERIC:
        return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
    case CHAR_UPPER: return k == UTF8PROC_CATEGORY_LU || other_case(c, true);
    case CHAR_LOWER: return k == UTF8PROC_CATEGORY_LL || other_case(c, false);
    }
    return false;
}

bool tpl_printable(uint32_t c) {
    if (c < 0x7F) return c >= ' ';
    utf8proc_category_t k = utf8proc_category((int)c);
    return k != UTF8PROC_CATEGORY_CN && k < UTF8PROC_CATEGORY_ZS;
}

bool tpl_cased(uint32_t c) {
    if (c < 0x80) return ascii_is(c, CHAR_ALPHA);
    return tpl_char_is(c, CHAR_UPPER) || tpl_char_is(c, CHAR_LOWER) ||
           utf8proc_category((int)c) == UTF8PROC_CATEGORY_LT;
}
