/* HTTP/1.1 messages as bytes: the head of a request, chunked bodies, status lines. No sockets. */
#ifndef SUMI_SERVE_HTTP_H
#define SUMI_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct http_header {
    const char *name, *value; /* NUL-terminated, value without surrounding blanks */
};

struct http_request {
    char *text; /* owned: the head, cut into the strings below */
    const char *method;
    char *path;                 /* percent-decoded, without the query */
    const char *query;          /* as sent, "" when there is none */
    int minor;                  /* HTTP/1.minor */
    struct http_header *header; /* [n_header] owned */
    int n_header;
    bool keep_alive, chunked, has_length, expect_continue;
    uint64_t length; /* of the body, when has_length */
};

/* Length of the head at the start of in[0..n), the empty line included, or 0 when it is not yet
 * complete. The first `seen` bytes are known to hold no complete head. */
size_t http_head_length(const char *in, size_t n, size_t seen);

/* Parses a complete head. SUMI_ERR_LIMIT: too many headers; SUMI_ERR_UNSUPPORTED: a transfer coding
 * or HTTP version; SUMI_ERR_FORMAT: everything else, request smuggling shapes included (two
 * lengths, a length beside chunked, folded lines, blanks before a colon). */
sumi_status http_parse_head(struct http_request *r, const char *text, size_t n, int max_headers,
                            sumi_error *err);
void http_request_reset(struct http_request *r);

/* Value of the first header of that name (case ignored), or NULL. */
const char *http_find(const struct http_request *r, const char *name);

/* Decoder of a chunked body; zero-initialised. */
struct chunked {
    int state;
    uint64_t left; /* of the chunk, in bytes */
    size_t line;   /* length of the current size line, or of all trailers */
    bool any_digit, done;
};

/* Takes in[0..n), appends payload to body and sets *used. After `done` nothing more is taken. A
 * body over body->max is SUMI_ERR_LIMIT, bad framing SUMI_ERR_FORMAT. */
sumi_status chunked_feed(struct chunked *c, const char *in, size_t n, size_t *used,
                         struct buf *body, sumi_error *err);

/* "Not Found" for 404; "Unknown" for a number that has no phrase. */
const char *http_phrase(int status);

/* Cuts "prefix" off the front of a decoded path when whole segments match; "/" when nothing is
 * left. */
const char *http_strip_root(const char *path, const char *prefix);

#endif
