/* JSON in, value by value. */
#include "base/jsonr.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static sumi_status bad(const struct json_reader *r, const char *expected) {
    return fail_with(r->err, SUMI_ERR_FORMAT, "%s: expected %s at byte %zu", r->what, expected,
                     r->at);
}

void jsonr_reset(struct json_reader *r) {
    mem_free(r->decoded);
    r->decoded = NULL;
}

char jsonr_peek(struct json_reader *r) {
    for (; r->at < r->n; r->at++) {
        char c = r->text[r->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    }
    return 0;
}

static bool take(struct json_reader *r, char c) {
    if (jsonr_peek(r) != c) return false;
    r->at++;
    return true;
}

sumi_status jsonr_enter(struct json_reader *r, char open) {
    if (!take(r, open)) return bad(r, open == '{' ? "an object" : "a list");
    r->fresh = true;
    return SUMI_OK;
}

sumi_status jsonr_more(struct json_reader *r, char close, bool *more) {
    bool fresh = r->fresh;
    r->fresh = false;
    *more = !take(r, close);
    if (*more && !fresh && !take(r, ',')) return bad(r, close == '}' ? "',' or '}'" : "',' or ']'");
    return SUMI_OK;
}

/* Four hexadecimal digits at r->at, or -1. */
static int32_t take_hex4(struct json_reader *r) {
    int32_t v = 0;
    if (r->n - r->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = r->text[r->at + (size_t)i], lower = (char)(c | 32);
        int32_t d = c >= '0' && c <= '9'           ? c - '0'
                    : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                   : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    r->at += 4;
    return v;
}

/* After "\u": one escape, or two that make a surrogate pair. Writes up to 4 bytes; 0: invalid. */
static int take_unicode(struct json_reader *r, char out[4]) {
    int32_t c = take_hex4(r);
    if (c < 0) return 0;
    if (c >= 0xD800 && c < 0xDC00) {
        if (r->n - r->at < 2 || r->text[r->at] != '\\' || r->text[r->at + 1] != 'u') return 0;
        r->at += 2;
        int32_t low = take_hex4(r);
        if (low < 0xDC00 || low > 0xDFFF) return 0;
        c = 0x10000 + (c - 0xD800) * 0x400 + (low - 0xDC00);
    }
    return utf8_encode((uint32_t)c, out); /* 0 for a lone low half */
}

/* The rest of a string that has an escape at r->at; what came before starts at `from`. An escape is
 * longer than what it stands for, so all strings of a text fit in n bytes. */
static sumi_status decode_rest(struct json_reader *r, size_t from, const char **s, size_t *n) {
    static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    if (!r->decoded && !(r->decoded = mem_alloc(r->n))) return NO_MEMORY(r->err, r->n);
    char *out = r->decoded + r->n_decoded;
    size_t len = r->at - from;
    memcpy(out, r->text + from, len);
    while (r->at < r->n) {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c < 0x20) return bad(r, "no control character in a string");
        r->at++;
        if (c == '"') {
            *s = out;
            *n = len;
            r->n_decoded += len;
            return SUMI_OK;
        }
        if (c != '\\') {
            out[len++] = (char)c;
            continue;
        }
        char e = r->at < r->n ? r->text[r->at++] : 0;
        const char *at = e ? strchr(names, e) : NULL;
        if (e == 'u') {
            int k = take_unicode(r, out + len);
            if (k == 0) return bad(r, "a character in \\u");
            len += (size_t)k;
        } else if (at && (at - names) % 2 == 0) out[len++] = at[1];
        else return bad(r, "a known escape");
    }
    return bad(r, "the end of a string");
}

sumi_status jsonr_string(struct json_reader *r, const char **s, size_t *n) {
    if (!take(r, '"')) return bad(r, "a string");
    size_t from = r->at;
    for (; r->at < r->n; r->at++) {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c == '\\') return decode_rest(r, from, s, n);
        if (c < 0x20) return bad(r, "no control character in a string");
        if (c != '"') continue;
        *s = r->text + from;
        *n = r->at++ - from;
        return SUMI_OK;
    }
    return bad(r, "the end of a string");
}

sumi_status jsonr_key(struct json_reader *r, const char **s, size_t *n) {
    TRY(jsonr_string(r, s, n));
    return take(r, ':') ? SUMI_OK : bad(r, "':'");
}

sumi_status jsonr_int(struct json_reader *r, int64_t *out) {
    bool negative = take(r, '-');
    jsonr_peek(r);
    size_t from = r->at;
    int64_t v = 0;
    for (; r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
        if (r->at - from < 18) v = v * 10 + (r->text[r->at] - '0');
    size_t digits = r->at - from;
    char next = r->at < r->n ? r->text[r->at] : 0;
    if (digits == 0 || digits > 18 || (digits > 1 && r->text[from] == '0') || next == '.' ||
        (next | 32) == 'e')
        return bad(r, "an integer of at most 18 digits");
    *out = negative ? -v : v;
    return SUMI_OK;
}

/* Behind the opening quote. */
static sumi_status skip_string(struct json_reader *r) {
    for (; r->at < r->n; r->at++) {
        if (r->text[r->at] == '\\') r->at++;
        else if (r->text[r->at] == '"') {
            r->at++;
            return SUMI_OK;
        }
    }
    r->at = r->n;
    return bad(r, "the end of a string");
}

sumi_status jsonr_skip(struct json_reader *r) {
    size_t depth = 0;
    do {
        char c = jsonr_peek(r);
        if (c == 0 || ((c == '}' || c == ']') && depth == 0)) return bad(r, "a value");
        r->at++;
        if (c == '"') TRY(skip_string(r));
        else if (c == '{' || c == '[') depth++;
        else if (c == '}' || c == ']') depth--;
        else if (depth == 0) /* a number or a word: up to what ends it */
            while (r->at < r->n && !strchr(" \t\r\n,]}", r->text[r->at])) r->at++;
    } while (depth > 0);
    return SUMI_OK;
}
