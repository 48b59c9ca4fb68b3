/* Source text in, tokens out, one at a time. White space control is settled here: trim_blocks and
 * lstrip_blocks are on, `-` and `+` at a tag's edge overrule them. Knows no grammar. */
#include "text/template_lex.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_text.h"

const char *token_text(enum token_kind kind) {
    static const char *const text[] = {
#define X(name, what) what,
        TOKEN_LIST(X)
#undef X
    };
    return text[kind];
}

static sumi_status fail_lex(struct lexer *lx, sumi_status code, const char *what) {
    return fail_with(lx->err, code, "chat template, line %d: %s", lx->line, what);
}

static void count_lines(struct lexer *lx, const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) lx->line += p[i] == '\n';
}

/* Moves over n bytes and keeps the line number. */
static void advance(struct lexer *lx, size_t n) {
    count_lines(lx, lx->s + lx->pos, n);
    lx->pos += n;
}

static bool at(const struct lexer *lx, size_t pos, const char *what) {
    size_t n = strlen(what);
    return lx->n - pos >= n && memcmp(lx->s + pos, what, n) == 0;
}

/* If the tag end `close` ("%}", "}}", "#}") stands at pos, moves behind it and behind the white
 * space that goes with it. */
static bool take_end(struct lexer *lx, size_t pos, const char *close) {
    bool minus = at(lx, pos, "-"), plus = at(lx, pos, "+") && *close != '}';
    size_t end = pos + (minus || plus);
    if (end > lx->n || !at(lx, end, close)) return false;
    end += 2;
    if (minus) end += tpl_space_left(lx->s + end, lx->n - end);
    else if (!plus && *close != '}' && at(lx, end, "\n")) end++;
    advance(lx, end - lx->pos);
    lx->line_starting = lx->s[end - 1] == '\n';
    return true;
}

/* The text before a tag loses its trailing white space: all of it before `-`, and the indentation
 * of a line of its own before a block or comment without `+`. */
static size_t strip_before(const struct lexer *lx, const char *text, size_t n, char sign,
                           bool is_var) {
    if (sign == '-') return n - tpl_space_right(text, n);
    if (sign == '+' || is_var) return n;
    size_t from = n;
    while (from && text[from - 1] != '\n') from--;
    if (!from && !lx->line_starting) return n;
    return tpl_space_left(text + from, n - from) == n - from ? from : n;
}

/* `{% raw %}`: from pos behind "{%", the position behind the tag, or 0 if it is another tag. */
static size_t raw_begin(const struct lexer *lx, size_t pos) {
    pos += at(lx, pos, "-") || at(lx, pos, "+");
    pos += tpl_space_left(lx->s + pos, lx->n - pos);
    if (!at(lx, pos, "raw")) return 0;
    pos += 3;
    pos += tpl_space_left(lx->s + pos, lx->n - pos);
    if (at(lx, pos, "-%}")) return pos + 3 + tpl_space_left(lx->s + pos + 3, lx->n - pos - 3);
    return at(lx, pos, "%}") ? pos + 2 : 0;
}

/* The text up to `{% endraw %}`, which is consumed. */
static sumi_status raw_text(struct lexer *lx, struct token *out) {
    size_t from = lx->pos;
    int line = lx->line;
    for (size_t p = from; p < lx->n; p++) {
        if (!at(lx, p, "{%")) continue;
        size_t q = p + 2;
        char sign = q < lx->n && (lx->s[q] == '-' || lx->s[q] == '+') ? lx->s[q] : 0;
        q += sign != 0;
        q += tpl_space_left(lx->s + q, lx->n - q);
        if (!at(lx, q, "endraw")) continue;
        q += 6;
        q += tpl_space_left(lx->s + q, lx->n - q);
        size_t n = strip_before(lx, lx->s + from, p - from, sign, false);
        if (!take_end(lx, q, "%}")) continue;
        *out = (struct token){.kind = T_DATA, .line = line, .p = lx->s + from, .n = n};
        return SUMI_OK;
    }
    return fail_lex(lx, SUMI_ERR_FORMAT, "missing end of raw block");
}

static sumi_status skip_comment(struct lexer *lx) {
    for (size_t p = lx->pos; p < lx->n; p++)
        if (take_end(lx, p, "#}")) return SUMI_OK;
    return fail_lex(lx, SUMI_ERR_FORMAT, "missing end of comment");
}

static size_t find_tag(const struct lexer *lx) {
    size_t p = lx->pos;
    while (p + 1 < lx->n) {
        const char *brace = memchr(lx->s + p, '{', lx->n - 1 - p);
        if (!brace) break;
        p = (size_t)(brace - lx->s);
        if (strchr("%{#", lx->s[p + 1]) && lx->s[p + 1]) return p;
        p++;
    }
    return lx->n;
}

static void hold(struct lexer *lx, struct token t) {
    if (t.kind == T_DATA && !t.n) return;
    lx->held[lx->n_held++] = t;
}

/* Text up to the next tag, and the tag's beginning. */
static sumi_status lex_root(struct lexer *lx) {
    size_t tag = find_tag(lx), from = lx->pos;
    struct token text = {.kind = T_DATA, .line = lx->line, .p = lx->s + from, .n = tag - from};
    if (tag == lx->n) {
        advance(lx, tag - from);
        hold(lx, text);
        if (!lx->n_held) hold(lx, (struct token){.kind = T_EOF, .line = lx->line});
        return SUMI_OK;
    }
    char kind = lx->s[tag + 1];
    size_t raw = kind == '%' ? raw_begin(lx, tag + 2) : 0;
    char sign = tag + 2 < lx->n ? lx->s[tag + 2] : 0;
    if (sign != '-' && sign != '+') sign = 0;
    text.n = strip_before(lx, text.p, text.n, sign, kind == '{');
    hold(lx, text);
    size_t behind = raw ? raw : tag + 2 + (sign != 0);
    advance(lx, behind - from);
    if (kind == '#') return skip_comment(lx);
    if (raw) {
        lx->line_starting = lx->s[raw - 1] == '\n';
        struct token data;
        TRY(raw_text(lx, &data));
        hold(lx, data);
        return SUMI_OK;
    }
    lx->state = kind == '{' ? LEX_VAR : LEX_BLOCK;
    hold(lx, (struct token){.kind = kind == '{' ? T_VAR_BEGIN : T_BLOCK_BEGIN, .line = lx->line});
    return SUMI_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int digit_value(char c) {
    int d = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
    return d;
}

/* Length of digits of a base from pos, with single underscores between them. */
static size_t digits(const struct lexer *lx, size_t pos, int base) {
    size_t p = pos;
    while (p < lx->n) {
        if (digit_value(lx->s[p]) < base) p++;
        else if (lx->s[p] == '_' && p > pos && p + 1 < lx->n && digit_value(lx->s[p + 1]) < base)
            p++;
        else break;
    }
    return p - pos;
}

static sumi_status lex_integer(struct lexer *lx, struct token *out) {
    const char *s = lx->s + lx->pos;
    char mark = lx->n - lx->pos > 2 && *s == '0' ? (char)(s[1] | 32) : 0;
    int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    size_t skip = base == 10 ? 0 : 2, n = digits(lx, lx->pos + skip, base);
    if (!n) skip = 0, base = 10, n = 1;
    if (base == 10 && *s == '0')
        for (n = 1; lx->pos + n < lx->n && s[n] == '0';) n++;
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[skip + i] == '_') continue;
        if (__builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, digit_value(s[skip + i]), &v))
            return fail_lex(lx, SUMI_ERR_LIMIT, "an integer over 64 bits");
    }
    *out = (struct token){.kind = T_INT, .line = lx->line, .i = v};
    advance(lx, skip + n);
    return SUMI_OK;
}

/* Length of a float at pos, or 0. */
static size_t float_len(const struct lexer *lx) {
    size_t p = lx->pos, k = digits(lx, p, 10);
    if (!k || (p && lx->s[p - 1] == '.')) return 0;
    p += k;
    bool fraction = false, exponent = false;
    if (p < lx->n && lx->s[p] == '.' && (k = digits(lx, p + 1, 10)) != 0) {
        p += 1 + k;
        fraction = true;
    }
    if (p < lx->n && (lx->s[p] | 32) == 'e') {
        size_t q = p + 1;
        if (q < lx->n && (lx->s[q] == '+' || lx->s[q] == '-')) q++;
        if ((k = digits(lx, q, 10)) != 0) {
            p = q + k;
            exponent = true;
        }
    }
    return fraction || exponent ? p - lx->pos : 0;
}

static sumi_status lex_float(struct lexer *lx, size_t n, struct token *out) {
    char *text = arena_alloc(lx->arena, n + 1, 1);
    if (!text) return NO_MEMORY(lx->err, n + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (lx->s[lx->pos + i] != '_') text[k++] = lx->s[lx->pos + i];
    text[k] = 0;
    *out = (struct token){.kind = T_FLOAT, .line = lx->line, .d = strtod(text, NULL)};
    advance(lx, n);
    return SUMI_OK;
}

/* \xhh, \uhhhh, \Uhhhhhhhh, \ooo: reads the number; returns bytes used, 0 if malformed. */
static size_t numeric_escape(const char *p, size_t n, uint32_t *out) {
    size_t want = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0, from = want ? 1 : 0;
    int base = want ? 16 : 8;
    size_t i = from;
    *out = 0;
    while (i < n && i - from < (want ? want : 3) && digit_value(p[i]) < base)
        *out = *out * (uint32_t)base + (uint32_t)digit_value(p[i++]);
    return want && i - from < want ? 0 : i;
}

/* Decodes one escape behind the backslash at p[0..n), n > 0. Returns bytes used, 0 if it cannot. */
static size_t escape(const char *p, size_t n, char *out, size_t *written) {
    static const char plain[] = "n\nt\tr\r\\\\''\"\"a\ab\bf\fv\v";
    *written = 0;
    if (*p == '\n') return 1;
    for (size_t i = 0; i + 1 < sizeof plain - 1; i += 2) {
        if (*p != plain[i]) continue;
        out[(*written)++] = plain[i + 1];
        return 1;
    }
    if (strchr("xuU01234567", *p) && *p) {
        uint32_t c;
        size_t used = numeric_escape(p, n, &c);
        *written = used ? (size_t)utf8_encode(c, out) : 0;
        return *written ? used : 0;
    }
    if (*p == 'N' || (*p & 0x80)) return 0;
    out[0] = '\\';
    out[1] = *p;
    *written = 2;
    return 1;
}

static sumi_status lex_string(struct lexer *lx, struct token *out) {
    const char *s = lx->s + lx->pos;
    char quote = *s;
    size_t n = 1, left = lx->n - lx->pos;
    while (n < left && s[n] != quote) n += s[n] == '\\' ? 2 : 1;
    if (n >= left) return fail_lex(lx, SUMI_ERR_FORMAT, "a string without its closing quote");
    /* What an escape stands for is never longer than the escape. */
    char *text = arena_alloc(lx->arena, n, 1);
    if (!text) return NO_MEMORY(lx->err, n);
    size_t k = 0;
    for (size_t i = 1; i < n;) {
        if (s[i] != '\\') {
            text[k++] = s[i++];
            continue;
        }
        char bytes[4];
        size_t written, used = escape(s + i + 1, n - i - 1, bytes, &written);
        if (!used)
            return fail_lex(lx, SUMI_ERR_FORMAT, "an escape in a string that has no meaning");
        memcpy(text + k, bytes, written);
        k += written;
        i += 1 + used;
    }
    *out = (struct token){.kind = T_STRING, .line = lx->line, .p = text, .n = k};
    advance(lx, n + 1);
    return SUMI_OK;
}

/* Keeps the brackets balanced: while one is open, a tag cannot end. */
static sumi_status balance(struct lexer *lx, enum token_kind kind) {
    char c = *token_text(kind);
    switch (kind) {
    case T_LPAREN:
    case T_LBRACKET:
    case T_LBRACE:
        if (lx->n_open == TPL_MAX_NESTING)
            return fail_lex(lx, SUMI_ERR_LIMIT, "brackets nested over 100");
        lx->open[lx->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
        return SUMI_OK;
    case T_RPAREN:
    case T_RBRACKET:
    case T_RBRACE:
        if (!lx->n_open || lx->open[lx->n_open - 1] != c)
            return fail_with(lx->err, SUMI_ERR_FORMAT, "chat template, line %d: unexpected '%c'",
                             lx->line, c);
        lx->n_open--;
        return SUMI_OK;
    default: return SUMI_OK;
    }
}

static sumi_status lex_sign(struct lexer *lx, struct token *out) {
    enum token_kind best = T_EOF;
    for (enum token_kind k = T_ADD; k <= T_RBRACE; k++)
        if (at(lx, lx->pos, token_text(k)) &&
            (!best || strlen(token_text(k)) > strlen(token_text(best))))
            best = k;
    if (!best)
        return fail_with(lx->err, SUMI_ERR_FORMAT, "chat template, line %d: unexpected '%.*s'",
                         lx->line, (int)tpl_char_len(lx->s[lx->pos]), lx->s + lx->pos);
    TRY(balance(lx, best));
    *out = (struct token){.kind = best, .line = lx->line};
    advance(lx, strlen(token_text(best)));
    return SUMI_OK;
}

static sumi_status lex_tag(struct lexer *lx, struct token *out) {
    bool var = lx->state == LEX_VAR;
    advance(lx, tpl_space_left(lx->s + lx->pos, lx->n - lx->pos));
    int line = lx->line;
    if (lx->pos == lx->n) {
        *out = (struct token){.kind = T_EOF, .line = lx->line};
        return SUMI_OK;
    }
    if (!lx->n_open && take_end(lx, lx->pos, var ? "}}" : "%}")) {
        lx->state = LEX_ROOT;
        *out = (struct token){.kind = var ? T_VAR_END : T_BLOCK_END, .line = line};
        return SUMI_OK;
    }
    char c = lx->s[lx->pos];
    size_t n = float_len(lx);
    if (n) return lex_float(lx, n, out);
    if (is_digit(c)) return lex_integer(lx, out);
    if (c == '\'' || c == '"') return lex_string(lx, out);
    if (!is_name(c)) return lex_sign(lx, out);
    for (n = 1; lx->pos + n < lx->n && is_name(lx->s[lx->pos + n]);) n++;
    *out = (struct token){.kind = T_NAME, .line = line, .p = lx->s + lx->pos, .n = n};
    lx->pos += n;
    return SUMI_OK;
}

sumi_status lex_next(struct lexer *lx, struct token *out) {
    if (lx->state != LEX_ROOT && !lx->n_held) return lex_tag(lx, out);
    while (!lx->n_held) TRY(lex_root(lx));
    *out = lx->held[0];
    lx->held[0] = lx->held[1];
    lx->n_held--;
    return SUMI_OK;
}
