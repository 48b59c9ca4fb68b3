/* The server as a whole: it opens the listener, runs the loop, and ends it: at once, after a drain,
 * or because the engine died. What a connection or a request does stands in conn.c, generation.c.
 */
#include "serve/server.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/conn.h"
#include "serve/generation.h"
#include "serve/hex.h"
#include "serve/internal.h"
#include "serve/listen.h"
#include "serve/stats_log.h"

/* After an abort: for engine and sockets to take what is left. */
enum { GRACE_S = 5, ENGINE_DEATH_S = 3 };

static int64_t after_s(double s) {
    return clock_ns() + (int64_t)(fmin(s, 1e9) * 1e9);
}

sumi_status server_accepts(struct server *s, sumi_error *err) {
    if (s->phase != SERVING)
        return fail_with(err, SUMI_ERR_STATE, "the server is shutting down; try another one");
    if (engine_stats(s->config.engine).dead)
        return fail_with(err, SUMI_ERR_DEVICE, "the engine has failed; the server is restarting");
    return SUMI_OK;
}

/* Streams that could still be written are told; idle connections go. */
static void retire_connections(struct server *s) {
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = conn_next(c);
        conn_retire(c);
    }
}

static void begin_abort(struct server *s) {
    s->phase = ABORTING;
    s->deadline_ns = after_s(GRACE_S);
    evconnlistener_disable(s->listener);
    generation_abort_all(s);
    retire_connections(s);
}

/* What server_stop asked for, on the loop's own thread. */
static void obey_stop(struct server *s) {
    int calls = atomic_load(&s->stop_calls), drain_ms = atomic_load(&s->stop_drain_ms);
    if (!calls || s->phase == ABORTING) return;
    if (calls > 1 || drain_ms <= 0) {
        log_info("shutting down: %d requests are aborted", s->n_generation);
        begin_abort(s);
    } else if (s->phase == SERVING) {
        log_info("draining: %d requests have %.1f s to finish", s->n_generation,
                 (double)drain_ms * 1e-3);
        s->phase = DRAINING;
        s->deadline_ns = after_s((double)drain_ms * 1e-3);
        engine_drain(s->config.engine);
    }
}

/* Nothing is generated and every answer is written. */
static bool is_quiet(const struct server *s) {
    bool quiet = !s->n_generation;
    for (const struct conn *c = s->conns; c && quiet; c = conn_next(c)) quiet = conn_is_idle(c);
    return quiet;
}

/* Ends the phase when nothing is left to do in it, or its time is over; the last one ends the loop.
 */
static void advance(struct server *s) {
    obey_stop(s);
    if (s->phase == SERVING || !(is_quiet(s) || clock_ns() > s->deadline_ns)) return;
    if (s->phase == DRAINING) begin_abort(s);
    if (is_quiet(s) || clock_ns() > s->deadline_ns) event_base_loopbreak(s->base);
}

static void watch_engine(struct server *s) {
    if (s->config.stay_on_engine_death || !engine_stats(s->config.engine).dead) return;
    if (!s->dead_ns) s->dead_ns = clock_ns();
    if (clock_ns() - s->dead_ns < (int64_t)ENGINE_DEATH_S * 1000000000) return;
    fail_with(&s->fatal, SUMI_ERR_DEVICE, "the engine has failed; the server ends");
    event_base_loopbreak(s->base);
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
    struct server *s = arg;
    (void)fd;
    (void)what;
    generation_dispatch(s);
    advance(s);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct server *s = arg;
    (void)fd;
    (void)what;
    watch_engine(s);
    stats_log_tick(s->stats_log, s);
    advance(s);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *peer, int n,
                      void *arg) {
    struct server *s = arg;
    (void)n;
    conn_open(s, fd, peer);
    /* The others wait in the system's queue until a connection ends. */
    if (s->n_conn >= s->config.max_connections) evconnlistener_disable(l);
}

static void on_accept_error(struct evconnlistener *l, void *arg) {
    struct server *s = arg;
    struct timeval wait = {.tv_usec = 100000};
    log_warning("a connection could not be accepted: %s", strerror(errno));
    evconnlistener_disable(l);
    event_add(s->relisten, &wait);
}

static void on_relisten(evutil_socket_t fd, short what, void *arg) {
    struct server *s = arg;
    (void)fd;
    (void)what;
    if (s->phase != ABORTING) evconnlistener_enable(s->listener);
}

static sumi_status open_events(struct server *s, evutil_socket_t fd, sumi_error *err) {
    struct timeval second = {.tv_sec = 1};
    s->base = event_base_new();
    if (s->base) {
        s->listener = evconnlistener_new(s->base, on_accept, s, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
        s->wake = event_new(s->base, queue_fd(s->queue), EV_READ | EV_PERSIST, on_wake, s);
        s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
        s->relisten = evtimer_new(s->base, on_relisten, s);
    }
    if (!s->listener || !s->wake || !s->tick || !s->relisten || event_add(s->wake, NULL) != 0 ||
        event_add(s->tick, &second) != 0)
        return fail_with(err, SUMI_ERR_MEMORY, "the event loop could not be opened");
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    return SUMI_OK;
}

static sumi_status open_parts(struct server *s, sumi_error *err) {
    const struct metrics_config metrics = {s->config.served_name.item[0], s->config.max_model_len,
                                           s->config.cache_blocks, s->config.prefix_caching};
    evutil_socket_t fd = -1;
    TRY(queue_open(&s->queue, err));
    TRY(metrics_open(&s->metrics, &metrics, err));
    TRY(stats_log_open(&s->stats_log, s->config.stats_interval_s, err));
    TRY(listen_open(&s->config, &fd, &s->port, err));
    sumi_status status = open_events(s, fd, err);
    if (!s->listener) close(fd); /* else it belongs to the listener */
    return status;
}

sumi_status server_open(struct server **out, const struct server_config *config, sumi_error *err) {
    *out = NULL;
    struct server *s = mem_zero(1, sizeof *s);
    if (!s) return NO_MEMORY(err, sizeof *s);
    s->config = *config;
    s->created = (int64_t)time(NULL);
    random_hex(s->card_id, 8);
    sumi_status status = open_parts(s, err);
    if (status != SUMI_OK) server_close(s);
    else *out = s;
    return status;
}

int server_port(const struct server *s) {
    return s->port;
}

sumi_status server_run(struct server *s, sumi_error *err) {
    if (event_base_dispatch(s->base) < 0)
        return fail_with(err, SUMI_ERR_IO, "the event loop failed");
    if (s->fatal.status == SUMI_OK) return SUMI_OK;
    *err = s->fatal;
    return s->fatal.status;
}

void server_stop(struct server *s, double drain_s) {
    int ms = drain_s > 0 ? (int)fmin(drain_s * 1000, 2e9) : 0;
    if (!atomic_load(&s->stop_calls)) atomic_store(&s->stop_drain_ms, ms);
    atomic_fetch_add(&s->stop_calls, 1);
    queue_wake(s->queue);
}

/* The engine calls back into the queue until it has ended every request. */
static void await_engine(struct server *s) {
    s->phase = ABORTING;
    generation_abort_all(s);
    while (s->n_generation) {
        generation_dispatch(s);
        if (s->n_generation) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void server_close(struct server *s) {
    if (!s) return;
    while (s->conns) conn_close(s->conns);
    await_engine(s);
    if (s->listener) evconnlistener_free(s->listener);
    if (s->wake) event_free(s->wake);
    if (s->tick) event_free(s->tick);
    if (s->relisten) event_free(s->relisten);
    if (s->base) event_base_free(s->base);
    listen_close(&s->config);
    queue_close(s->queue);
    metrics_close(s->metrics);
    stats_log_close(s->stats_log);
    mem_free(s);
}
