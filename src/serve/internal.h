/* The server as its own files see it. Loop thread only, except `queue` and the fields that
 * server_stop writes. */
#ifndef SUMI_SERVE_INTERNAL_H
#define SUMI_SERVE_INTERNAL_H

#include <event2/event.h>
#include <event2/listener.h>
#include <stdatomic.h>

#include "serve/metrics.h"
#include "serve/queue.h"
#include "serve/server.h"

struct conn;
struct generation;
struct stats_log;

enum server_phase { SERVING, DRAINING, ABORTING };

struct server {
    struct server_config config;
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *wake;     /* the queue's descriptor */
    struct event *tick;     /* once a second */
    struct event *relisten; /* after accept failed for lack of descriptors */
    struct metrics *metrics;
    struct queue *queue;
    struct stats_log *stats_log;
    int port;
    int64_t created; /* unix time of the model cards */
    char card_id[17];

    struct conn *conns; /* all open connections */
    int n_conn;
    size_t body_bytes; /* of request bodies being read or parsed, all connections */

    struct generation *generations; /* all that the engine still works on */
    int n_generation;
    int server_load; /* requests between arrival and the end of their answer, for /load */

    enum server_phase phase;
    int64_t deadline_ns; /* of the current phase */
    int64_t dead_ns;     /* when the engine was first seen dead, or 0 */
    sumi_error fatal;    /* why the loop ended by itself */

    atomic_int stop_calls; /* server_stop, any thread */
    atomic_int stop_drain_ms;
};

/* Whether generating requests are taken; else fills the error. */
sumi_status server_accepts(struct server *s, sumi_error *err);

#endif
