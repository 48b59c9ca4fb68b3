/* Sockets in, requests out to the router, answers back. It keeps the limits of a connection
 * (header and body size, idle and write time) and knows nothing of what is asked. */
#include "serve/conn.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/access.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/routes.h"

enum {
    REQUEST_TIMEOUT_S = 60,       /* between two reads of one request */
    LINGER_TIMEOUT_S = 2,         /* for the client to close after a refusal */
    DEFAULT_WRITE_TIMEOUT_S = 300 /* nothing could be written */
};

enum conn_state {
    CONN_HEAD,   /* waiting for, or in, a head */
    CONN_BODY,   /* reading a body */
    CONN_BUSY,   /* the router or an owner is answering */
    CONN_FLUSH,  /* last answer is being written */
    CONN_LINGER, /* answered; reads and discards until the client closes */
};

struct conn {
    struct server *s;
    struct conn *prev, *next;
    struct bufferevent *bev;
    enum conn_state state;
    bool stepping; /* step() is on the stack and frees the connection when `closing` */
    bool closing, retired, linger;
    bool failed; /* an answer could not be stored whole */
    char peer[INET6_ADDRSTRLEN + 10];

    struct http_request request;
    size_t seen; /* bytes of input that hold no complete head */
    struct buf body;
    size_t body_counted; /* our share of server.body_bytes */
    struct chunked chunked;
    const struct route *route;
    int64_t started_ns;

    struct buf extra; /* header lines for the answer */
    bool head_sent, keep, chunk_reply;
    int status;
    size_t reply_bytes;

    void (*gone)(void *owner);
    void (*drained)(void *owner);
    void *owner;
};

static void step(struct conn *c);

struct conn *conn_next(const struct conn *c) {
    return c->next;
}

struct server *conn_server(const struct conn *c) {
    return c->s;
}

const struct http_request *conn_request(const struct conn *c) {
    return &c->request;
}

struct buf *conn_body(struct conn *c) {
    return &c->body;
}

int64_t conn_started_ns(const struct conn *c) {
    return c->started_ns;
}

const char *conn_peer(const struct conn *c) {
    return c->peer;
}

const struct route *conn_route(const struct conn *c) {
    return c->route;
}

void conn_set_route(struct conn *c, const struct route *route) {
    c->route = route;
}

struct buf *conn_extra_headers(struct conn *c) {
    return &c->extra;
}

static struct evbuffer *input(const struct conn *c) {
    return bufferevent_get_input(c->bev);
}

static struct evbuffer *output(const struct conn *c) {
    return bufferevent_get_output(c->bev);
}

bool conn_writable(const struct conn *c) {
    return evbuffer_get_length(output(c)) < CONN_BACKLOG;
}

bool conn_is_idle(const struct conn *c) {
    return (c->state == CONN_HEAD || c->state == CONN_LINGER) &&
           evbuffer_get_length(output(c)) == 0;
}

static void set_timeouts(struct conn *c) {
    int read_s = 0;
    if (c->state == CONN_HEAD && evbuffer_get_length(input(c)) == 0 && c->started_ns)
        read_s = c->s->config.keep_alive_s;
    else if (c->state == CONN_HEAD || c->state == CONN_BODY) read_s = REQUEST_TIMEOUT_S;
    else if (c->state == CONN_LINGER) read_s = LINGER_TIMEOUT_S;
    int write_s = c->s->config.write_timeout_s;
    struct timeval read = {.tv_sec = read_s};
    struct timeval write = {.tv_sec = write_s > 0 ? write_s : DEFAULT_WRITE_TIMEOUT_S};
    bufferevent_set_timeouts(c->bev, read_s > 0 ? &read : NULL, &write);
}

static void set_state(struct conn *c, enum conn_state state) {
    c->state = state;
    set_timeouts(c);
}

/* Keeps server.body_bytes in step with our buffer. */
static void count_body(struct conn *c) {
    c->s->body_bytes += c->body.cap - c->body_counted;
    c->body_counted = c->body.cap;
}

void conn_drop_body(struct conn *c) {
    buf_reset(&c->body);
    count_body(c);
}

static void reset_request(struct conn *c) {
    http_request_reset(&c->request);
    conn_drop_body(c);
    buf_reset(&c->extra);
    c->chunked = (struct chunked){0};
    c->seen = 0;
    c->head_sent = c->chunk_reply = false;
    c->reply_bytes = 0;
    c->route = NULL;
}

static void destroy(struct conn *c) {
    struct server *s = c->s;
    if (c->prev) c->prev->next = c->next;
    else s->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    s->n_conn--;
    reset_request(c);
    bufferevent_free(c->bev);
    mem_free(c);
    if (s->phase != SERVING) queue_wake(s->queue); /* maybe the last one that was waited for */
    if (s->phase != ABORTING && s->n_conn < s->config.max_connections)
        evconnlistener_enable(s->listener);
}

void conn_close(struct conn *c) {
    void (*gone)(void *) = c->gone;
    c->gone = c->drained = NULL;
    if (c->state == CONN_BUSY && c->route) routes_leave(c->s, c->route);
    if (gone) gone(c->owner);
    /* Inside step() the caller still uses the connection; step frees it. */
    if (c->stepping) c->closing = true;
    else destroy(c);
}

void conn_retire(struct conn *c) {
    c->retired = true;
    if (c->state == CONN_HEAD && evbuffer_get_length(output(c)) == 0) conn_close(c);
}

void conn_attach(struct conn *c, void (*gone)(void *), void (*drained)(void *), void *owner) {
    c->gone = gone;
    c->drained = drained;
    c->owner = owner;
}

/* The last answer is out: close, or wait for the client to do so when it may still be sending,
 * since closing on unread bytes would reset the connection and lose the answer. */
static void flushed(struct conn *c) {
    if (!c->linger) {
        conn_close(c);
        return;
    }
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    set_state(c, CONN_LINGER);
}

/* The answer is complete. */
static void finish(struct conn *c) {
    c->gone = c->drained = NULL;
    routes_done(c->s, c, c->status, c->reply_bytes);
    bool keep = c->keep && !c->retired;
    reset_request(c);
    if (c->failed) {
        conn_close(c);
        return;
    }
    if (keep) {
        set_state(c, CONN_HEAD);
        step(c);
        return;
    }
    set_state(c, CONN_FLUSH);
    if (evbuffer_get_length(output(c)) == 0) flushed(c);
}

/* Out of memory: an answer with a hole must not look complete, so nothing follows the hole. */
static void put(struct conn *c, const void *p, size_t n) {
    if (c->failed || evbuffer_add(output(c), p, n) != 0) c->failed = true;
}

bool conn_broken(const struct conn *c) {
    return c->failed;
}

static void write_bytes(struct conn *c, const void *p, size_t n) {
    put(c, p, n);
    c->reply_bytes += n;
}

static void write_head(struct conn *c, int status, const char *type, const char *length) {
    struct buf head = {0};
    char date[40];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    buf_printf(&head, "HTTP/1.1 %d %s\r\ndate: %s\r\nserver: sumi/%s\r\n", status,
               http_phrase(status), date, sumi_version());
    if (type) buf_printf(&head, "content-type: %s\r\n", type);
    buf_puts(&head, length);
    if (!c->keep || c->retired) buf_puts(&head, "connection: close\r\n");
    else if (c->request.minor == 0) buf_puts(&head, "connection: keep-alive\r\n");
    access_headers(c->s, &c->request, status, &head);
    buf_put(&head, buf_text(&c->extra), c->extra.len);
    buf_puts(&head, "\r\n");
    if (head.failed) c->failed = true;
    else write_bytes(c, head.data, head.len);
    c->reply_bytes = 0; /* only the body counts */
    c->status = status;
    c->head_sent = true;
    buf_reset(&head);
}

static bool is_head_request(const struct conn *c) {
    return c->request.method && strcmp(c->request.method, "HEAD") == 0;
}

void conn_reply(struct conn *c, int status, const char *type, const char *body, size_t n) {
    char length[48];
    snprintf(length, sizeof length, "content-length: %zu\r\n", n);
    write_head(c, status, type, length);
    if (n && !is_head_request(c)) write_bytes(c, body, n);
    finish(c);
}

void conn_stream_begin(struct conn *c, int status, const char *type) {
    /* An HTTP/1.0 client gets the bytes as they are, up to the end of the connection. */
    c->chunk_reply = c->request.minor == 1;
    if (!c->chunk_reply) c->keep = false;
    write_head(c, status, type,
               c->chunk_reply ? "transfer-encoding: chunked\r\ncache-control: no-cache\r\n"
                                "x-accel-buffering: no\r\n"
                              : "cache-control: no-cache\r\n");
}

void conn_stream_put(struct conn *c, const char *data, size_t n) {
    char size[24];
    if (!n) return;
    int len = c->chunk_reply ? snprintf(size, sizeof size, "%zx\r\n", n) : 0;
    if (len) put(c, size, (size_t)len);
    write_bytes(c, data, n);
    if (len) put(c, "\r\n", 2);
}

void conn_stream_end(struct conn *c) {
    if (c->chunk_reply) put(c, "0\r\n\r\n", 5);
    finish(c);
}

/* A request that cannot be served as HTTP: answered, then the connection ends. */
static void refuse(struct conn *c, int status, const char *type, const char *message) {
    struct buf body = {0};
    c->keep = false;
    c->linger = true;
    set_state(c, CONN_BUSY);
    error_body(&body, status, type, NULL, message, strlen(message));
    conn_reply(c, status, "application/json", buf_text(&body), body.len);
    buf_reset(&body);
}

static void refuse_head(struct conn *c, const sumi_error *err) {
    int status = err->status == SUMI_ERR_LIMIT         ? 431
                 : err->status == SUMI_ERR_UNSUPPORTED ? 501
                 : err->status == SUMI_ERR_MEMORY      ? 503
                                                       : 400;
    refuse(c, status, http_phrase(status), err->msg);
}

static bool body_too_large(struct conn *c, uint64_t n) {
    if (n <= c->s->config.max_body) return false;
    char message[120];
    snprintf(message, sizeof message,
             "Request entity too large: the limit is %zu bytes for a request body",
             c->s->config.max_body);
    refuse(c, 413, "RequestEntityTooLargeError", message);
    return true;
}

/* Bodies of all connections together may hold four times the limit of one. */
static bool memory_is_short(struct conn *c) {
    count_body(c);
    if (c->s->body_bytes / 4 <= c->s->config.max_body) return false;
    buf_puts(&c->extra, "retry-after: 1\r\n");
    refuse(c, 503, "Service Unavailable", "too many large request bodies at once; try again later");
    return true;
}

static bool begin_body(struct conn *c) {
    const struct http_request *r = &c->request;
    if (!r->chunked && r->length == 0) return true;
    if (body_too_large(c, r->length)) return false;
    /* What may still be refused is refused before the client sends it. */
    if (r->expect_continue || r->chunked || r->length > 1 << 20) {
        c->linger = true;
        c->keep = false;
        if (!routes_admit(c->s, c)) return false;
        c->linger = false;
        c->keep = r->keep_alive;
    }
    if (r->expect_continue && r->minor == 1 && evbuffer_get_length(input(c)) == 0)
        put(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return true;
}

/* True when a head was taken off the input. */
static bool read_head(struct conn *c) {
    struct evbuffer *in = input(c);
    char two[2];
    while (evbuffer_copyout(in, two, 1) == 1 && (two[0] == '\r' || two[0] == '\n'))
        evbuffer_drain(in, 1);
    size_t n = evbuffer_get_length(in), limit = c->s->config.max_header_bytes;
    if (!n) return false;
    const char *text = (const char *)evbuffer_pullup(in, (ev_ssize_t)(n < limit ? n : limit));
    size_t len = text ? http_head_length(text, n < limit ? n : limit, c->seen) : 0;
    if (!len) {
        c->seen = n;
        if (text && n < limit) return false;
        sumi_error err = {0};
        if (text) fail_with(&err, SUMI_ERR_LIMIT, "request header over %zu bytes", limit);
        else NO_MEMORY(&err, n);
        refuse_head(c, &err);
        return false;
    }
    sumi_error err = {0};
    c->started_ns = clock_ns();
    sumi_status status =
        http_parse_head(&c->request, text, len, c->s->config.max_header_count, &err);
    evbuffer_drain(in, len);
    c->seen = 0;
    c->keep = c->request.keep_alive;
    if (status != SUMI_OK) {
        refuse_head(c, &err);
        return false;
    }
    c->body.max = c->s->config.max_body;
    return true;
}

static bool read_plain(struct conn *c) {
    struct evbuffer *in = input(c);
    size_t want = (size_t)c->request.length - c->body.len, have = evbuffer_get_length(in);
    while (want && have) {
        size_t n = evbuffer_get_contiguous_space(in);
        if (n > want) n = want;
        buf_put(&c->body, evbuffer_pullup(in, (ev_ssize_t)n), n);
        evbuffer_drain(in, n);
        want -= n;
        have -= n;
    }
    return want == 0;
}

static bool read_chunked(struct conn *c) {
    struct evbuffer *in = input(c);
    sumi_error err = {0};
    while (!c->chunked.done && evbuffer_get_length(in)) {
        size_t n = evbuffer_get_contiguous_space(in), used = 0;
        const char *p = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);
        sumi_status status = chunked_feed(&c->chunked, p, n, &used, &c->body, &err);
        evbuffer_drain(in, used);
        if (status == SUMI_ERR_LIMIT) body_too_large(c, UINT64_MAX);
        else if (status != SUMI_OK) refuse_head(c, &err);
        if (status != SUMI_OK) return false;
    }
    return c->chunked.done;
}

/* True when the body is complete. */
static bool read_body(struct conn *c) {
    bool done = c->request.chunked ? read_chunked(c) : read_plain(c);
    if (c->state != CONN_BODY || memory_is_short(c)) return false;
    if (!c->body.failed) return done;
    refuse(c, 503, "ServiceUnavailableError", "out of memory for the request body");
    return false;
}

/* Advances as far as the input allows; one answer at a time, and none while the last ones wait to
 * be written. A loop, not recursion: a handler that answers at once returns here. */
static void step(struct conn *c) {
    if (c->stepping) return;
    c->stepping = true;
    while (!c->closing) {
        if (c->state == CONN_HEAD) {
            if (!conn_writable(c) || !read_head(c)) break;
            set_state(c, CONN_BODY);
            if (!begin_body(c)) continue;
        } else if (c->state == CONN_BODY) {
            if (!read_body(c)) {
                if (c->state == CONN_BODY) break;
                continue;
            }
            set_state(c, CONN_BUSY);
            routes_dispatch(c->s, c);
        } else {
            break;
        }
    }
    c->stepping = false;
    if (c->closing) destroy(c);
    else if (c->state == CONN_HEAD) set_timeouts(c);
}

static void on_read(struct bufferevent *bev, void *arg) {
    struct conn *c = arg;
    (void)bev;
    if (c->state == CONN_FLUSH || c->state == CONN_LINGER)
        evbuffer_drain(input(c), evbuffer_get_length(input(c)));
    else if (c->state != CONN_BUSY) step(c);
    else if (evbuffer_get_length(input(c)) >
             c->s->config.max_body + c->s->config.max_header_bytes) {
        log_warning("%s: more than one request was sent ahead; connection closed", c->peer);
        conn_close(c);
    }
}

static void on_write(struct bufferevent *bev, void *arg) {
    struct conn *c = arg;
    (void)bev;
    if (c->state == CONN_FLUSH) {
        if (evbuffer_get_length(output(c)) == 0) flushed(c);
    } else if (c->state == CONN_BUSY) {
        if (c->drained && conn_writable(c)) c->drained(c->owner);
    } else if (c->state == CONN_HEAD && evbuffer_get_length(output(c)) == 0) {
        if (c->retired) conn_close(c);
        else step(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
    struct conn *c = arg;
    (void)bev;
    if (what & BEV_EVENT_CONNECTED) return;
    bool writing = what & BEV_EVENT_WRITING;
    if ((what & BEV_EVENT_TIMEOUT) && !writing && c->state != CONN_LINGER &&
        (c->state == CONN_BODY || evbuffer_get_length(input(c)))) {
        refuse(c, 408, "Request Timeout", "the request was not sent completely in time");
    } else if ((what & BEV_EVENT_TIMEOUT) && !writing && c->state == CONN_HEAD &&
               evbuffer_get_length(output(c))) {
        bufferevent_enable(c->bev, EV_READ); /* not idle: the last answer is still being read */
    } else if ((what & BEV_EVENT_EOF) && !writing && c->state != CONN_BUSY &&
               evbuffer_get_length(output(c))) {
        /* The client has sent all it will and reads what is left. */
        c->linger = false;
        set_state(c, CONN_FLUSH);
    } else {
        if ((what & BEV_EVENT_TIMEOUT) && writing)
            log_warning("%s: nothing could be written in time; connection closed", c->peer);
        conn_close(c);
    }
}

static void name_peer(struct conn *c, const struct sockaddr *peer) {
    char ip[INET6_ADDRSTRLEN] = "";
    if (peer && peer->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
        snprintf(c->peer, sizeof c->peer, "%s:%d", ip, ntohs(in->sin_port));
    } else if (peer && peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)peer;
        if (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr))
            inet_ntop(AF_INET, &in->sin6_addr.s6_addr[12], ip, sizeof ip);
        else inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof ip);
        snprintf(c->peer, sizeof c->peer, "%s:%d", ip, ntohs(in->sin6_port));
    } else {
        snprintf(c->peer, sizeof c->peer, "unix");
    }
}

void conn_open(struct server *s, evutil_socket_t fd, const struct sockaddr *peer) {
    struct conn *c = mem_zero(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        log_error("out of memory for a connection");
        mem_free(c);
        evutil_closesocket(fd);
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->s = s;
    c->bev = bev;
    name_peer(c, peer);
    c->next = s->conns;
    if (s->conns) s->conns->prev = c;
    s->conns = c;
    s->n_conn++;
    bufferevent_setcb(bev, on_read, on_write, on_event, c);
    bufferevent_setwatermark(bev, EV_WRITE, CONN_BACKLOG / 2, 0);
    set_state(c, CONN_HEAD);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}
