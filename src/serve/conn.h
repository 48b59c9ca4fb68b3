/* A client connection: reads requests one after another, hands each to the router, and writes one
 * answer at a time. Everything runs on the loop thread.
 *
 * Reading never stops while a request is being answered, so a hang-up or a reset is seen at once;
 * bytes of pipelined requests wait in the input buffer, up to the size of one request. */
#ifndef SUMI_SERVE_CONN_H
#define SUMI_SERVE_CONN_H

#include <event2/util.h>

#include "base/buf.h"
#include "serve/http.h"

struct server;
struct conn;
struct route;

/* Above this many unsent bytes a stream holds its text back and merges it (conn_writable). */
enum { CONN_BACKLOG = 64 * 1024 };

/* Takes the socket. On failure it is closed. */
void conn_open(struct server *s, evutil_socket_t fd, const struct sockaddr *peer);
/* Drops the connection; its owner is told as after a hang-up. */
void conn_close(struct conn *c);
/* Closes when idle; else after the current answer. */
void conn_retire(struct conn *c);
bool conn_is_idle(const struct conn *c); /* nothing read, nothing to write */

struct conn *conn_next(const struct conn *c); /* of the server's list */
struct server *conn_server(const struct conn *c);
const struct http_request *conn_request(const struct conn *c);
struct buf *conn_body(struct conn *c);
void conn_drop_body(struct conn *c); /* frees it once it is parsed */
int64_t conn_started_ns(const struct conn *c);
const char *conn_peer(const struct conn *c);
const struct route *conn_route(const struct conn *c); /* NULL until it is found */
void conn_set_route(struct conn *c, const struct route *route);
/* Header lines ("name: value\r\n") for the coming answer. */
struct buf *conn_extra_headers(struct conn *c);

/* Whole answer; ends the exchange. `c` must not be used afterwards by the handler. */
void conn_reply(struct conn *c, int status, const char *content_type, const char *body, size_t n);

/* Streamed answer: begin, put any number of pieces, end. */
void conn_stream_begin(struct conn *c, int status, const char *content_type);
void conn_stream_put(struct conn *c, const char *data, size_t n);
void conn_stream_end(struct conn *c);
bool conn_writable(const struct conn *c);
bool conn_broken(const struct conn *c); /* a piece could not be stored: the rest is dropped */

/* Who answers later: `gone` is called once if the client goes away first (the connection must not
 * be touched afterwards), `drained` whenever unsent bytes fell below the limit. Ends with the
 * exchange. */
void conn_attach(struct conn *c, void (*gone)(void *owner), void (*drained)(void *owner),
                 void *owner);

#endif
