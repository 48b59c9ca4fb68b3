/* Who may ask: API keys, cross-origin rules, and the headers that every answer carries. */
#ifndef SUMI_SERVE_ACCESS_H
#define SUMI_SERVE_ACCESS_H

#include "base/buf.h"
#include "serve/http.h"

struct server;
struct conn;

/* True when no key is configured, the path needs none, or the request carries one of the keys. */
bool access_allowed(const struct server *s, const struct http_request *r, const char *path);

/* True if the request is a CORS preflight, which is then answered. */
bool access_preflight(struct server *s, struct conn *c);

/* Appends the CORS and request-id headers of an answer. */
void access_headers(const struct server *s, const struct http_request *r, int status,
                    struct buf *head);

#endif
