/* In: an Oniguruma regular expression. Out: the same language for PCRE2, every literal escaped and
 * every shorthand spelled out, because the engines differ in what \s, \w, \h, \v, {n,m}+ and (?m)
 * mean and in how new their Unicode is. Knows nothing of text or of matching. */
#include "text/pretok_regex.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "text/pretok_unicode.h"

#define MAX_PATTERN 65536
#define MAX_NESTING 64
#define MAX_OUTPUT  (4u << 20)
#define MAX_REPEAT  65535 /* PCRE2's limit */

/* A callout, by which the caller can stop a match. PCRE2's match limit counts each entry into a
 * repetition and each step back into one, so it bounds the work except where many steps forward
 * are counted as one: where what was matched is never stepped back into, and around loops. */
#define WATCH "(?C)"

struct parser {
    const char *s;
    size_t n, at;
    int unicode;
    int depth;
    bool caseless;
    char last; /* caseless: the literal just before, in lower case, or 0 */
    struct buf *out;
    sumi_error *err;
};

/* White space is \p{Z} and these: without U+180E, which PCRE2's \s has and Unicode has not. */
#define SPACE_ITEMS "\\p{Z}\\x09-\\x0d\\x85"
#define NOT_SPACE_ITEMS                                                                        \
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-" \
    "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
/* Oniguruma's word characters besides L, M, Nd, Nl, Pc: circled letters, and, but only outside
 * brackets, the superscripts and fractions of Latin-1. */
#define CIRCLED_ITEMS \
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define LATIN1_ITEMS "\\xb2\\xb3\\xb9\\xbc-\\xbe"

static const char *const properties[] = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn",  "Mc",     "Me",       "N",        "Nd",
    "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi",  "Pf",     "Po",       "S",        "Sm",
    "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Han", "Hangul", "Hiragana", "Katakana",
};

/* Whether a part of a pattern takes text. The engines differ in how they leave a loop whose body
 * took none, so such loops are refused. */
enum extent { SOME_TEXT, MAYBE_EMPTY, NO_TEXT };

static sumi_status parse_branches(struct parser *p, enum extent *extent);

static sumi_status bad(const struct parser *p, const char *why) {
    return fail_with(p->err, SUMI_ERR_FORMAT, "regular expression, byte %zu: %s", p->at, why);
}

static sumi_status refuse(const struct parser *p, const char *what) {
    return fail_with(p->err, SUMI_ERR_UNSUPPORTED,
                     "regular expression, byte %zu: %s is not supported", p->at, what);
}

static bool peek(const struct parser *p, const char *text) {
    size_t n = strlen(text);
    return p->n - p->at >= n && memcmp(p->s + p->at, text, n) == 0;
}

static bool take(struct parser *p, const char *text) {
    if (!peek(p, text)) return false;
    p->at += strlen(text);
    return true;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void put_char(struct parser *p, uint32_t c) {
    if (c < 0x80 && (is_letter((char)c) || is_digit((char)c))) buf_putc(p->out, (char)c);
    else buf_printf(p->out, "\\x{%x}", c);
}

/* ---- properties and shorthands, as items of a bracket ---- */

static bool has_property(const struct unicode_range *r, const char *name) {
    if (!name[1]) return r->property[0] == name[0] && !r->property[2];
    return strcmp(r->property, name) == 0;
}

/* Characters that this PCRE2 does not know yet. */
static void put_additions(struct parser *p, const char *name) {
    if (p->unicode >= UNICODE_ADDITIONS_VERSION) return;
    for (size_t i = 0; i < n_unicode_additions; i++) {
        const struct unicode_range *r = &unicode_additions[i];
        if (!has_property(r, name)) continue;
        uint32_t last = r->last;
        while (i + 1 < n_unicode_additions && unicode_additions[i + 1].first == last + 1 &&
               has_property(&unicode_additions[i + 1], name))
            last = unicode_additions[++i].last;
        buf_printf(p->out, "\\x{%x}-\\x{%x}", r->first, last);
    }
}

static void put_property(struct parser *p, const char *name) {
    /* Since 10.40 a bare script name means script extensions, which Oniguruma does not. */
    buf_printf(p->out, name[0] == 'H' || name[0] == 'K' ? "\\p{sc:%s}" : "\\p{%s}", name);
    put_additions(p, name);
}

static void put_word(struct parser *p, bool in_class) {
    static const char *const parts[] = {"L", "M", "Nd", "Nl", "Pc"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) put_property(p, parts[i]);
    buf_puts(p->out, CIRCLED_ITEMS);
    if (!in_class) buf_puts(p->out, LATIN1_ITEMS);
}

/* Reads {name} or {^name}; case, blanks, '-' and '_' do not count. */
static sumi_status parse_property(struct parser *p, const char **name, bool *negative) {
    char key[16];
    size_t n = 0;
    if (!take(p, "{")) return refuse(p, "a property without braces");
    if (take(p, "^")) *negative = !*negative;
    size_t from = p->at;
    for (; p->at < p->n && p->s[p->at] != '}'; p->at++) {
        char c = p->s[p->at];
        if (c == ' ' || c == '_' || c == '-') continue;
        if (n < sizeof key - 1) key[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    if (p->at == p->n) return bad(p, "\\p{ is not closed");
    key[n] = 0;
    p->at++;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        const char *q = properties[i];
        size_t k = 0;
        while (q[k] && (q[k] | 32) == key[k]) k++;
        if (q[k] || key[k]) continue;
        *name = q;
        return SUMI_OK;
    }
    return fail_with(p->err, SUMI_ERR_UNSUPPORTED,
                     "regular expression, byte %zu: property \\p{%.*s} is not supported; known are "
                     "the general categories except C and the scripts Han, Hangul, Hiragana, "
                     "Katakana",
                     from, (int)(p->at - 1 - from < 40 ? p->at - 1 - from : 40), p->s + from);
}

/* ---- escapes ---- */

enum escape { ESCAPE_CHAR, ESCAPE_CLASS, ESCAPE_ANCHOR };

static sumi_status parse_hex(struct parser *p, int digits, uint32_t *out) {
    uint32_t v = 0;
    int n = 0;
    for (; n < digits && p->at < p->n; n++, p->at++) {
        char c = p->s[p->at];
        char lower = (char)(c | 32);
        if (is_digit(c)) v = v * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') v = v * 16 + (uint32_t)(lower - 'a') + 10;
        else break;
    }
    if (n == 0) return bad(p, "hexadecimal digits expected");
    *out = v;
    return SUMI_OK;
}

static sumi_status parse_char_escape(struct parser *p, char c, uint32_t *out) {
    static const char names[] = "t\tn\nr\rf\fv\va\ae\033";
    const char *at = strchr(names, c);
    if (at && (at - names) % 2 == 0) {
        *out = (unsigned char)at[1];
        return SUMI_OK;
    }
    if (c == 'x' && take(p, "{")) {
        TRY(parse_hex(p, 8, out));
        if (!take(p, "}")) return refuse(p, "a list of code points");
    } else if (c == 'x') {
        TRY(parse_hex(p, 2, out));
        if (*out >= 0x80) return refuse(p, "\\xHH over 7F, a byte of an encoding");
    } else if (c == 'u') {
        TRY(parse_hex(p, 4, out));
    } else {
        char name[16] = {'\\', c, 0};
        return refuse(p, name);
    }
    char utf8[4];
    return utf8_encode(*out, utf8) ? SUMI_OK : bad(p, "not a Unicode character");
}

/* After the backslash. A character goes to *c, anything else to out: within brackets as items. */
static sumi_status parse_escape(struct parser *p, bool in_class, enum escape *kind, uint32_t *c) {
    if (p->at == p->n) return bad(p, "ends with a backslash");
    char e = p->s[p->at];
    *kind = ESCAPE_CHAR;
    if ((unsigned char)e >= 0x80) {
        p->at += (size_t)utf8_decode(p->s + p->at, p->n - p->at, c);
        return SUMI_OK;
    }
    p->at++;
    if (!is_letter(e) && !is_digit(e)) {
        *c = (unsigned char)e;
        return SUMI_OK;
    }
    bool negative = e < 'a';
    const char *name = NULL;
    if (e == 'p' || e == 'P') TRY(parse_property(p, &name, &negative));
    else if (e == 'd' || e == 'D') name = "Nd";
    else if (!in_class && (e == 'A' || e == 'z' || e == 'Z')) {
        buf_printf(p->out, "\\%c", e);
        *kind = ESCAPE_ANCHOR;
        return SUMI_OK;
    } else if (in_class && e == 'b') {
        *c = '\b';
        return SUMI_OK;
    } else if (!strchr("sSwWhH", e)) return parse_char_escape(p, e, c);
    if (p->caseless && !strchr("shd", e)) /* what folds to nothing outside itself */
        return refuse(p, "a class other than \\s, \\d, \\h in a (?i) group");
    if (in_class && negative && e != 'S') return refuse(p, "a negated property in brackets");
    *kind = ESCAPE_CLASS;
    if (!in_class) buf_puts(p->out, negative && e != 'S' ? "[^" : "[");
    if (e == 's') buf_puts(p->out, SPACE_ITEMS);
    else if (e == 'S') buf_puts(p->out, NOT_SPACE_ITEMS);
    else if (e == 'h' || e == 'H') buf_puts(p->out, "0-9A-Fa-f");
    else if (name) put_property(p, name);
    else put_word(p, in_class);
    if (!in_class) buf_putc(p->out, ']');
    return SUMI_OK;
}

/* ---- brackets ---- */

/* One character or class; *c is the character, or UINT32_MAX after a class. */
static sumi_status parse_item(struct parser *p, uint32_t *c) {
    *c = UINT32_MAX;
    if (peek(p, "[:")) return refuse(p, "a POSIX bracket");
    if (peek(p, "[")) return refuse(p, "a set inside brackets");
    if (peek(p, "&&")) return refuse(p, "&& in brackets");
    if (take(p, "\\")) {
        enum escape kind;
        TRY(parse_escape(p, true, &kind, c));
        if (kind == ESCAPE_CLASS) *c = UINT32_MAX;
    } else {
        p->at += (size_t)utf8_decode(p->s + p->at, p->n - p->at, c);
    }
    if (p->caseless && *c != UINT32_MAX && *c >= 0x80)
        return refuse(p, "a character outside ASCII in a (?i) group");
    return SUMI_OK;
}

/* After '['. */
static sumi_status parse_brackets(struct parser *p) {
    buf_putc(p->out, '[');
    if (p->caseless && peek(p, "^")) return refuse(p, "[^ in a (?i) group");
    if (take(p, "^")) buf_putc(p->out, '^');
    if (peek(p, "]")) return refuse(p, "']' as the first character in brackets");
    for (bool after_range = false; !take(p, "]");) {
        uint32_t c, last;
        if (p->at == p->n) return bad(p, "'[' is not closed");
        bool dash = p->s[p->at] == '-';
        TRY(parse_item(p, &c));
        if (dash && after_range && !peek(p, "]")) return refuse(p, "'-' after a range");
        after_range = false;
        if (peek(p, "-") && p->at + 1 < p->n && p->s[p->at + 1] != ']') {
            p->at++;
            TRY(parse_item(p, &last));
            if (c == UINT32_MAX || last == UINT32_MAX || last < c)
                return bad(p, "not a range of characters");
            put_char(p, c);
            buf_putc(p->out, '-');
            c = last;
            after_range = true;
        }
        if (c != UINT32_MAX) put_char(p, c);
    }
    buf_putc(p->out, ']');
    return SUMI_OK;
}

/* ---- groups ---- */

/* Options up to ':' or ')', which is left. 'm' of Oniguruma is 's' of PCRE2. */
static sumi_status parse_options(struct parser *p) {
    bool on = true;
    buf_puts(p->out, "(?");
    for (; p->at < p->n && !peek(p, ":") && !peek(p, ")"); p->at++) {
        char c = p->s[p->at];
        if (c == '-' && on) on = false;
        else if (c == 'i') p->caseless = on;
        else if (c != 'm') return refuse(p, "this kind of group");
        buf_putc(p->out, c == 'm' ? 's' : c);
    }
    buf_putc(p->out, ':');
    return SUMI_OK;
}

/* After '('. Captures are of no use here: they become plain groups. */
static sumi_status parse_group(struct parser *p, enum extent *extent) {
    static const char *const looks[] = {"?=", "?!", "?<=", "?<!", "?>"};
    bool caseless = p->caseless;
    if (++p->depth > MAX_NESTING)
        return fail_with(p->err, SUMI_ERR_LIMIT,
                         "regular expression, byte %zu: groups nested deeper than %d", p->at,
                         MAX_NESTING);
    size_t i = 0, n_look = sizeof looks / sizeof *looks;
    while (i < n_look && !take(p, looks[i])) i++;
    bool isolated = false, around = i < 4;
    if (i < n_look) buf_printf(p->out, WATCH "(%s", looks[i]);
    else if (peek(p, "*")) return refuse(p, "a verb (*...)");
    else if (take(p, "?:")) buf_puts(p->out, "(?:");
    else if (take(p, "?<")) {
        while (p->at < p->n && p->s[p->at] != '>') p->at++;
        if (!take(p, ">")) return bad(p, "'(?<' is not closed");
        buf_puts(p->out, "(?:");
    } else if (take(p, "?")) {
        TRY(parse_options(p));
        /* (?i) without a colon reaches to the end of the group around it, whose ')' stays. */
        isolated = take(p, ")");
        if (!isolated) take(p, ":");
    } else buf_puts(p->out, "(?:");
    TRY(parse_branches(p, extent));
    if (!isolated && !take(p, ")")) return bad(p, "'(' is not closed");
    buf_putc(p->out, ')');
    if (around) *extent = NO_TEXT;
    p->caseless = caseless;
    p->depth--;
    return SUMI_OK;
}

/* ---- quantifiers ---- */

/* {n}, {n,}, {,m}, {n,m}; anything else is literal text and leaves p as it was. */
static bool parse_interval(struct parser *p, long *lo, long *hi, bool *exact) {
    size_t at = p->at + 1;
    long v[2] = {-1, -1};
    int k = 0;
    for (; at < p->n; at++) {
        char c = p->s[at];
        if (is_digit(c)) {
            v[k] = (v[k] < 0 ? 0 : v[k]) * 10 + (c - '0');
            if (v[k] > MAX_REPEAT) v[k] = MAX_REPEAT + 1;
        } else if (c == ',' && k == 0) k = 1;
        else break;
    }
    if (at == p->n || p->s[at] != '}' || (v[0] < 0 && v[1] < 0)) return false;
    *exact = k == 0;
    *lo = v[0] < 0 ? 0 : v[0];
    *hi = k == 0 ? v[0] : v[1];
    p->at = at + 1;
    return true;
}

/* Puts text before what starts at out[from]. */
static void insert(struct parser *p, size_t from, const char *text) {
    size_t n = strlen(text);
    buf_puts(p->out, text); /* makes room */
    if (p->out->failed) return;
    char *s = p->out->data + from;
    memmove(s + n, s, p->out->len - n - from);
    memcpy(s, text, n);
}

/* Makes a group of what starts at out[from]. */
static void wrap(struct parser *p, size_t from, const char *open) {
    buf_putc(p->out, ')');
    insert(p, from, open);
}

/* Quantifiers after the atom that starts at out[from]. Each after the first applies to the whole
 * before it; one character at most goes to a quantifier as its lazy or possessive mark. */
static sumi_status parse_quantifiers(struct parser *p, size_t from, bool group,
                                     enum extent *extent) {
    for (bool first = true; p->at < p->n; first = false) {
        char c = p->s[p->at];
        long lo = 0, hi = 0;
        bool exact = false, interval = c == '{' && parse_interval(p, &lo, &hi, &exact);
        if (!interval && c != '*' && c != '+' && c != '?') return SUMI_OK;
        if (*extent == NO_TEXT) return refuse(p, "repeating an anchor or a look-around");
        if (!interval) {
            lo = c == '+';
            hi = c == '?' ? 1 : -1;
        }
        if (*extent == MAYBE_EMPTY && hi != 0 && hi != 1)
            return refuse(p, "repeating what may be empty");
        if (lo == 0) *extent = MAYBE_EMPTY;
        if (hi != 1 && (group || !first)) wrap(p, from, "(?:" WATCH);
        else if (!first) wrap(p, from, "(?:");
        p->last = 0;
        if (!interval) {
            p->at++;
            buf_putc(p->out, c);
            if (take(p, "?")) buf_putc(p->out, '?');
            else if (take(p, "+")) {
                buf_putc(p->out, '+');
                insert(p, from, WATCH);
            }
            continue;
        }
        if (lo > MAX_REPEAT || hi > MAX_REPEAT) return refuse(p, "repeating over 65535 times");
        if (hi >= 0 && hi < lo) return refuse(p, "{n,m} with n over m");
        buf_printf(p->out, "{%ld", lo);
        if (hi < 0) buf_putc(p->out, ',');
        else if (!exact) buf_printf(p->out, ",%ld", hi);
        buf_putc(p->out, '}');
        /* {n,m}? is lazy, but {n}? means "that, or nothing", and {n,m}+ repeats the whole. */
        if (!exact && take(p, "?")) buf_putc(p->out, '?');
    }
    return SUMI_OK;
}

/* ---- the rest ---- */

/* Oniguruma folds some pairs of letters into one character (ss and U+00DF), PCRE2 never does. */
static sumi_status check_fold(struct parser *p, uint32_t c) {
    static const char *const pairs[] = {"ss", "ff", "fi", "fl", "st"};
    if (!p->caseless) return SUMI_OK;
    if (c >= 0x80) return refuse(p, "a character outside ASCII in a (?i) group");
    char lower = c >= 'A' && c <= 'Z' ? (char)(c + 32) : (char)c;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (p->last == pairs[i][0] && lower == pairs[i][1])
            return refuse(p, "ss, ff, fi, fl or st in a (?i) group");
    p->last = lower;
    return SUMI_OK;
}

static sumi_status parse_literal(struct parser *p, uint32_t c) {
    TRY(check_fold(p, c));
    put_char(p, c);
    return SUMI_OK;
}

static sumi_status parse_atom(struct parser *p, enum extent *extent) {
    uint32_t c;
    enum escape kind;
    *extent = SOME_TEXT;
    char ch = p->s[p->at];
    if (take(p, "\\")) {
        TRY(parse_escape(p, false, &kind, &c));
        if (kind == ESCAPE_CHAR) return parse_literal(p, c);
        if (kind == ESCAPE_ANCHOR) *extent = NO_TEXT;
    } else if (take(p, "[")) TRY(parse_brackets(p));
    else if (take(p, "(")) {
        p->last = 0;
        TRY(parse_group(p, extent));
    } else if (strchr("*+?", ch)) return bad(p, "nothing to repeat");
    else if (take(p, ".")) buf_putc(p->out, '.');
    else if (take(p, "^") || take(p, "$")) {
        buf_putc(p->out, ch);
        *extent = NO_TEXT;
    } else {
        p->at += (size_t)utf8_decode(p->s + p->at, p->n - p->at, &c);
        return parse_literal(p, c);
    }
    p->last = 0;
    return SUMI_OK;
}

/* Branches up to ')' or the end. */
static sumi_status parse_branches(struct parser *p, enum extent *extent) {
    bool empty = true, any_empty = false; /* this branch so far; one of those before */
    while (p->at < p->n && p->s[p->at] != ')') {
        if (take(p, "|")) {
            buf_putc(p->out, '|');
            p->last = 0;
            any_empty = any_empty || empty;
            empty = true;
            continue;
        }
        if (take(p, "(?#")) {
            while (p->at < p->n && p->s[p->at] != ')') p->at++;
            if (!take(p, ")")) return bad(p, "a comment is not closed");
            continue;
        }
        size_t from = p->out->len;
        bool group = p->s[p->at] == '(';
        TRY(parse_atom(p, extent));
        TRY(parse_quantifiers(p, from, group, extent));
        if (*extent == SOME_TEXT) empty = false;
    }
    *extent = empty || any_empty ? MAYBE_EMPTY : SOME_TEXT;
    return SUMI_OK;
}

sumi_status regex_translate(const char *pattern, size_t n, int unicode, struct buf *out,
                            sumi_error *err) {
    struct parser p = {.s = pattern, .n = n, .unicode = unicode, .out = out, .err = err};
    if (n > MAX_PATTERN)
        return fail_with(err, SUMI_ERR_LIMIT, "regular expression: %zu bytes, the limit is %d", n,
                         MAX_PATTERN);
    if (!out->max) out->max = MAX_OUTPUT;
    enum extent extent;
    TRY(parse_branches(&p, &extent));
    if (p.at < n) return bad(&p, "')' without '('");
    if (!out->failed) return SUMI_OK;
    if (out->len > MAX_OUTPUT - 4096)
        return fail_with(err, SUMI_ERR_LIMIT, "regular expression: over %u bytes when spelled out",
                         MAX_OUTPUT);
    return NO_MEMORY(err, out->len);
}
