/* Bytes of a request in, its parts out. What flows in may be anything; what flows out has no
 * control characters, one body length, and a decoded path. It knows no sockets and no routes. */
#include "serve/http.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

enum { MAX_CHUNK_LINE = 4096, MAX_TRAILERS = 16384 };

size_t http_head_length(const char *in, size_t n, size_t seen) {
    /* An end that straddles the boundary begins at most three bytes before it. */
    size_t i = seen > 3 ? seen - 3 : 0;
    while (i < n) {
        const char *p = memchr(in + i, '\n', n - i);
        if (!p) return 0;
        i = (size_t)(p - in) + 1;
        if (i < n && in[i] == '\n') return i + 1;
        if (i + 1 < n && in[i] == '\r' && in[i + 1] == '\n') return i + 2;
    }
    return 0;
}

static bool is_token_char(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s) {
    if (!*s) return false;
    for (; *s; s++)
        if (!is_token_char((unsigned char)*s)) return false;
    return true;
}

static sumi_status bad(sumi_error *err, const char *why) {
    return fail_with(err, SUMI_ERR_FORMAT, "malformed HTTP request: %s", why);
}

/* Cuts the next line off *at, in place; NULL at the end. */
static char *next_line(char **at, char *end) {
    if (*at >= end) return NULL;
    char *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));
    if (!lf) lf = end;
    *at = lf + 1;
    if (lf > line && lf[-1] == '\r') lf--;
    *lf = 0;
    return line;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes in place; false when an escape stands for NUL or a control character. A percent
 * sign that starts no escape stays as it is. */
static bool decode_path(char *path) {
    char *to = path;
    for (const char *p = path; *p; p++) {
        int hi = *p == '%' ? hex_digit(p[1]) : -1, lo = hi < 0 ? -1 : hex_digit(p[2]);
        if (lo < 0) {
            *to++ = *p;
            continue;
        }
        int c = hi * 16 + lo;
        if (c < 0x20 || c == 0x7F) return false;
        *to++ = (char)c;
        p += 2;
    }
    *to = 0;
    return true;
}

static sumi_status request_line(struct http_request *r, char *line, sumi_error *err) {
    char *sp = strchr(line, ' ');
    char *sp2 = sp ? strchr(sp + 1, ' ') : NULL;
    if (!sp2 || strchr(sp2 + 1, ' ')) return bad(err, "the first line is not METHOD PATH VERSION");
    *sp = *sp2 = 0;
    char *target = sp + 1;
    const char *version = sp2 + 1;
    r->method = line;
    if (!is_token(line)) return bad(err, "the method is not a token");
    if (strncmp(version, "HTTP/", 5) != 0) return bad(err, "the version is not HTTP/1.1");
    if (strcmp(version, "HTTP/1.1") == 0) r->minor = 1;
    else if (strcmp(version, "HTTP/1.0") == 0) r->minor = 0;
    else
        return fail_with(err, SUMI_ERR_UNSUPPORTED, "HTTP version %.20s; use HTTP/1.1",
                         version + 5);
    if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
        char *slash = strchr(strchr(target, ':') + 3, '/');
        static char root[] = "/";
        target = slash ? slash : root;
    }
    if (*target != '/' && strcmp(target, "*") != 0) return bad(err, "the path must start with /");
    char *cut = strpbrk(target, "?#");
    r->query = "";
    if (cut) {
        if (*cut == '?') r->query = cut + 1;
        *cut = 0;
    }
    r->path = target;
    if (target[1] && !decode_path(target)) return bad(err, "control character in the path");
    return SUMI_OK;
}

static sumi_status header_line(struct http_request *r, char *line, sumi_error *err) {
    if (*line == ' ' || *line == '\t') return bad(err, "folded header line");
    char *colon = strchr(line, ':');
    if (!colon) return bad(err, "header line without a colon");
    *colon = 0;
    if (!is_token(line)) return bad(err, "header name is not a token");
    char *value = colon + 1 + strspn(colon + 1, " \t");
    size_t n = strlen(value);
    while (n && strchr(" \t", value[n - 1])) value[--n] = 0;
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7F)
            return bad(err, "control character in a header");
    r->header[r->n_header++] = (struct http_header){line, value};
    return SUMI_OK;
}

/* True if the comma-separated list has the word, case ignored. */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,");
        size_t len = strcspn(list, ",");
        size_t used = len;
        while (used && strchr(" \t", list[used - 1])) used--;
        if (used == n && strncasecmp(list, word, n) == 0) return true;
        list += len;
    }
    return false;
}

static bool parse_length(const char *s, uint64_t *out) {
    uint64_t v = 0;
    if (!*s) return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    *out = v;
    return true;
}

static sumi_status framing(struct http_request *r, sumi_error *err) {
    bool keep = r->minor == 1;
    for (int i = 0; i < r->n_header; i++) {
        const char *name = r->header[i].name, *value = r->header[i].value;
        if (strcasecmp(name, "content-length") == 0) {
            uint64_t n;
            if (!parse_length(value, &n)) return bad(err, "Content-Length is not a number");
            if (r->has_length && n != r->length) return bad(err, "two different Content-Lengths");
            r->has_length = true;
            r->length = n;
        } else if (strcasecmp(name, "transfer-encoding") == 0) {
            if (r->chunked || strcasecmp(value, "chunked") != 0)
                return fail_with(err, SUMI_ERR_UNSUPPORTED,
                                 "Transfer-Encoding must be chunked, found %.60s", value);
            r->chunked = true;
        } else if (strcasecmp(name, "connection") == 0) {
            if (has_word(value, "close")) keep = false;
            else if (has_word(value, "keep-alive")) keep = true;
        } else if (strcasecmp(name, "expect") == 0) {
            r->expect_continue = strcasecmp(value, "100-continue") == 0;
        }
    }
    if (r->chunked && (r->has_length || r->minor == 0))
        return bad(err, "Transfer-Encoding beside Content-Length or in HTTP/1.0");
    r->keep_alive = keep;
    return SUMI_OK;
}

static int count_lines(const char *s, size_t n) {
    int lines = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] == '\n' && lines < INT32_MAX) lines++;
    return lines;
}

static sumi_status parse(struct http_request *r, size_t n, int max_headers, sumi_error *err) {
    if (memchr(r->text, 0, n)) return bad(err, "NUL byte in the head");
    /* Lines minus the request line and the closing empty line. */
    int lines = count_lines(r->text, n) - 2;
    if (lines > max_headers)
        return fail_with(err, SUMI_ERR_LIMIT, "%d header lines; at most %d are accepted", lines,
                         max_headers);
    /* Two more than counted: a last line may lack its end. */
    r->header = mem_zero((size_t)(lines > 0 ? lines : 0) + 2, sizeof *r->header);
    if (!r->header) return NO_MEMORY(err, sizeof *r->header);
    char *at = r->text, *end = r->text + n;
    char *line = next_line(&at, end);
    if (!line) return bad(err, "empty request");
    TRY(request_line(r, line, err));
    while ((line = next_line(&at, end)) && *line) TRY(header_line(r, line, err));
    return framing(r, err);
}

sumi_status http_parse_head(struct http_request *r, const char *text, size_t n, int max_headers,
                            sumi_error *err) {
    *r = (struct http_request){.text = mem_string(text, n)};
    if (!r->text) return NO_MEMORY(err, n);
    sumi_status status = parse(r, n, max_headers, err);
    if (status != SUMI_OK) http_request_reset(r);
    return status;
}

void http_request_reset(struct http_request *r) {
    mem_free(r->text);
    mem_free(r->header);
    *r = (struct http_request){0};
}

const char *http_find(const struct http_request *r, const char *name) {
    for (int i = 0; i < r->n_header; i++)
        if (strcasecmp(r->header[i].name, name) == 0) return r->header[i].value;
    return NULL;
}

enum {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_START,
    TRAILER,
    TRAILER_LF
};

static sumi_status size_line_end(struct chunked *c, sumi_error *err) {
    if (!c->any_digit) return bad(err, "chunk without a size");
    c->state = c->left ? CHUNK_DATA : TRAILER_START;
    c->line = 0;
    c->any_digit = false;
    return SUMI_OK;
}

static sumi_status size_char(struct chunked *c, char ch, sumi_error *err) {
    int d = hex_digit(ch);
    if (++c->line > MAX_CHUNK_LINE) return bad(err, "chunk size line too long");
    if (d >= 0) {
        if (c->left >> 60) return bad(err, "chunk size too large");
        c->left = c->left * 16 + (uint64_t)d;
        c->any_digit = true;
    } else if (ch == ';' || ch == ' ' || ch == '\t') c->state = CHUNK_EXTENSION;
    else if (ch == '\r') c->state = CHUNK_SIZE_LF;
    else if (ch == '\n') return size_line_end(c, err);
    else return bad(err, "bad character in a chunk size");
    return SUMI_OK;
}

/* One byte of framing. */
static sumi_status frame_char(struct chunked *c, char ch, sumi_error *err) {
    switch (c->state) {
    case CHUNK_SIZE: return size_char(c, ch, err);
    case CHUNK_EXTENSION:
        if (++c->line > MAX_CHUNK_LINE) return bad(err, "chunk extension too long");
        if (ch == '\n') return size_line_end(c, err);
        return SUMI_OK;
    case CHUNK_SIZE_LF:
        return ch == '\n' ? size_line_end(c, err) : bad(err, "chunk size without a line end");
    case CHUNK_DATA_CR:
        if (ch == '\r') {
            c->state = CHUNK_DATA_LF;
            return SUMI_OK;
        } /* fall through */
    case CHUNK_DATA_LF:
        if (ch != '\n') return bad(err, "chunk data without a line end");
        c->state = CHUNK_SIZE;
        return SUMI_OK;
    case TRAILER_START:
        if (ch == '\n') c->done = true;
        else c->state = ch == '\r' ? TRAILER_LF : TRAILER;
        return SUMI_OK;
    case TRAILER:
        if (++c->line > MAX_TRAILERS) return bad(err, "trailers too long");
        if (ch == '\n') c->state = TRAILER_START;
        return SUMI_OK;
    default:
        if (ch != '\n') return bad(err, "trailers without a line end");
        c->done = true;
        return SUMI_OK;
    }
}

sumi_status chunked_feed(struct chunked *c, const char *in, size_t n, size_t *used,
                         struct buf *body, sumi_error *err) {
    size_t i = 0;
    while (i < n && !c->done) {
        if (c->state != CHUNK_DATA) {
            TRY(frame_char(c, in[i++], err));
            continue;
        }
        size_t take = c->left < n - i ? (size_t)c->left : n - i;
        if (body->max && take > body->max - body->len)
            return fail_with(err, SUMI_ERR_LIMIT, "request body over %zu bytes", body->max);
        buf_put(body, in + i, take);
        if (body->failed) return NO_MEMORY(err, body->len + take);
        i += take;
        c->left -= take;
        if (!c->left) c->state = CHUNK_DATA_CR;
    }
    *used = i;
    return SUMI_OK;
}

const char *http_phrase(int status) {
    static const struct {
        int status;
        const char *phrase;
    } list[] = {{200, "OK"},
                {400, "Bad Request"},
                {401, "Unauthorized"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {408, "Request Timeout"},
                {413, "Content Too Large"},
                {415, "Unsupported Media Type"},
                {422, "Unprocessable Content"},
                {431, "Request Header Fields Too Large"},
                {500, "Internal Server Error"},
                {501, "Not Implemented"},
                {503, "Service Unavailable"},
                {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].status == status) return list[i].phrase;
    return "Unknown";
}

const char *http_strip_root(const char *path, const char *prefix) {
    size_t n = prefix ? strlen(prefix) : 0;
    while (n && prefix[n - 1] == '/') n--;
    if (!n || strncmp(path, prefix, n) != 0 || (path[n] && path[n] != '/')) return path;
    return path[n] ? path + n : "/";
}
