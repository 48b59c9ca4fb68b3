/* Prompts in, engine requests out; engine events in, calls of the API's functions out. It owns the
 * life of a request: whichever of "the engine has ended it" and "the client is gone" comes last
 * frees it. It knows neither chat nor completions. */
#include "serve/generation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/hex.h"
#include "serve/internal.h"
#include "serve/observe.h"

/* The id is that of the header, else of the body, else random. */
static sumi_status make_id(struct generation *g, const char *prefix, sumi_error *err) {
    char random[17];
    struct buf id = {.max = 1024};
    const char *base = http_find(conn_request(g->conn), "x-request-id");
    if (!base || !*base) base = g->params.request_id;
    if (!base) {
        random_hex(random, 8);
        base = random;
    }
    buf_printf(&id, "%s%.256s", prefix, base);
    g->id = buf_take(&id);
    g->params.request_id = NULL;
    return g->id ? SUMI_OK : NO_MEMORY(err, 300);
}

/* A router's header goes over the body's field; what is no number is ignored. */
static void read_priority(struct generation *g) {
    const char *value = http_find(conn_request(g->conn), "x-vllm-priority");
    char *end;
    if (!value || !*value) return;
    errno = 0;
    long long priority = strtoll(value, &end, 10);
    if (!*end && !errno) g->params.priority = priority;
}

sumi_status generation_init(struct generation *g, const struct generation_api *api,
                            struct conn *conn, int32_t n_run, const char *id_prefix,
                            sumi_error *err) {
    g->api = api;
    g->conn = conn;
    g->s = conn_server(conn);
    g->created = (int64_t)time(NULL);
    g->arrival_ns = conn_started_ns(conn);
    g->style = (struct logprobs_style){g->s->config.tokenizer, g->params.sampling.n_logprobs,
                                       g->params.tokens_as_ids, &g->params.sampling.logprob_ids};
    read_priority(g);
    TRY(make_id(g, id_prefix, err));
    int64_t n_choice = (int64_t)n_run * g->params.n;
    if (n_choice > g->s->config.max_n)
        return fail_param(err, SUMI_ERR_ARG, "n", "%d prompts with n = %d are over %d choices",
                          n_run, g->params.n, g->s->config.max_n);
    g->run = mem_zero((size_t)n_run, sizeof *g->run);
    g->choice = mem_zero((size_t)n_choice, sizeof *g->choice);
    if (!g->run || !g->choice) return NO_MEMORY(err, (size_t)n_choice * sizeof *g->choice);
    g->n_run = n_run;
    g->n_choice = (int32_t)n_choice;
    for (int32_t i = 0; i < g->n_choice; i++)
        g->choice[i] = (struct choice){
            .index = i, .run = &g->run[i / g->params.n], .stop_string = -1, .stop_token = -1};
    return SUMI_OK;
}

void generation_free(struct generation *g) {
    struct generation_api const *api = g->api;
    if (g->keep_alive) event_free(g->keep_alive);
    for (int32_t i = 0; i < g->n_run; i++) mem_free(g->run[i].prompt.data);
    mem_free(g->run);
    mem_free(g->choice);
    mem_free(g->id);
    buf_reset(&g->frame);
    params_reset(&g->params);
    api->free(g);
}

static void link_in(struct generation *g) {
    struct server *s = g->s;
    g->prev = NULL;
    g->next = s->generations;
    if (g->next) g->next->prev = g;
    s->generations = g;
    s->n_generation++;
}

static void unlink_and_free(struct generation *g) {
    struct server *s = g->s;
    if (g->prev) g->prev->next = g->next;
    else s->generations = g->next;
    if (g->next) g->next->prev = g->prev;
    s->n_generation--;
    generation_free(g);
}

static void cancel_runs(struct generation *g) {
    for (int32_t i = 0; i < g->n_run; i++)
        if (g->run[i].submitted && !g->run[i].ended)
            engine_cancel(g->s->config.engine, g->run[i].id);
}

static void client_gone(void *owner) {
    struct generation *g = owner;
    g->conn = NULL;
    cancel_runs(g);
}

static bool due(const struct generation *g, const struct choice *c) {
    return c->finish != FINISH_NONE || !g->began || c->n_output == c->unsent ||
           c->unsent >= g->params.stream_interval;
}

/* Writes what is due while the connection takes it; the rest waits, merged, for the next time. */
static void flush(struct generation *g) {
    for (int32_t i = 0; i < g->n_choice && g->conn; i++) {
        if (!conn_writable(g->conn)) return;
        if (due(g, &g->choice[i])) g->api->flush(g, &g->choice[i]);
    }
}

static void client_reads(void *owner) {
    flush(owner);
}

void generation_send(struct generation *g) {
    if (!g->frame.failed) conn_stream_put(g->conn, g->frame.data, g->frame.len);
    if (g->frame.failed || conn_broken(g->conn)) {
        buf_reset(&g->frame);
        log_error("%s: out of memory for a stream; connection closed", g->id);
        conn_close(g->conn);
        return;
    }
    buf_clear(&g->frame);
    if (!g->keep_alive) return;
    double s = g->s->config.sse_keep_alive_s;
    struct timeval wait = {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)};
    event_add(g->keep_alive, &wait);
}

static void on_keep_alive(evutil_socket_t fd, short what, void *arg) {
    struct generation *g = arg;
    (void)fd;
    (void)what;
    if (!g->conn) return;
    if (conn_writable(g->conn)) buf_puts(&g->frame, ": keep-alive\n\n");
    generation_send(g);
}

static void begin_stream(struct generation *g) {
    conn_stream_begin(g->conn, 200, "text/event-stream; charset=utf-8");
    if (g->s->config.sse_keep_alive_s <= 0) return;
    g->keep_alive = evtimer_new(g->s->base, on_keep_alive, g);
    if (g->keep_alive) generation_send(g); /* nothing to send yet: starts the timer */
}

static void log_request(const struct generation *g, size_t n_prompt) {
    const struct sampling *p = &g->params.sampling;
    if (!g->s->config.log_requests) return;
    log_info("request %s from %s: %d prompts, the first of %zu tokens; n %d, temperature %g, top_p "
             "%g, top_k %d, max_tokens %d, stream %s",
             g->id, conn_peer(g->conn), g->n_run, n_prompt, g->params.n, (double)p->temperature,
             (double)p->top_p, p->top_k, p->max_tokens, g->params.stream ? "yes" : "no");
}

static sumi_status submit_run(struct generation *g, int32_t i, const struct ids *prompt,
                              const struct ids *replay, sumi_error *err) {
    struct run *run = &g->run[i];
    run->g = g;
    run->tap.queue = g->s->queue;
    run->tap.run = run;
    run->n_prompt = (int32_t)prompt->n;
    if (!g->s->config.replay) replay = NULL;
    else if (!replay) replay = prompt;
    struct request request = {.prompt = prompt->data,
                              .n_prompt = prompt->n,
                              .sampling = g->params.sampling,
                              .n = g->params.n,
                              .priority = g->params.priority,
                              .replay = replay ? replay->data : NULL,
                              .n_replay = replay ? replay->n : 0,
                              .on_event = queue_on_event,
                              .on_end = queue_on_end,
                              .user = &run->tap};
    TRY(engine_submit(g->s->config.engine, &request, &run->id, err));
    run->submitted = true;
    g->n_open++;
    return SUMI_OK;
}

sumi_status generation_submit(struct generation *g, const struct ids *prompt,
                              const struct ids *replay, sumi_error *err) {
    sumi_status status = SUMI_OK;
    g->submitted_ns = clock_ns();
    for (int32_t i = 0; i < g->n_run && status == SUMI_OK; i++)
        status = submit_run(g, i, &prompt[i], replay, err);
    if (status == SUMI_ERR_BUSY) observe_rejection(g->s, err);
    if (status != SUMI_OK && !g->n_open) {
        generation_free(g);
        return status;
    }
    link_in(g);
    if (status != SUMI_OK) {
        /* Some run already: they are cancelled and waited for, without a client. */
        client_gone(g);
        return status;
    }
    log_request(g, prompt->n);
    conn_attach(g->conn, client_gone, client_reads, g);
    if (g->params.stream) begin_stream(g);
    return SUMI_OK;
}

/* Answers with an error and forgets the client; the runs end by themselves. */
static void fail(struct generation *g, const sumi_error *err) {
    struct conn *conn = g->conn;
    cancel_runs(g);
    if (!conn) return;
    log_error("%s: %s", g->id, err->msg);
    g->conn = NULL;
    conn_attach(conn, NULL, NULL, NULL);
    if (!g->params.stream) {
        error_reply(conn, err, NULL);
        return;
    }
    buf_clear(&g->frame);
    buf_puts(&g->frame, "data: ");
    error_write(&g->frame, err, NULL);
    buf_puts(&g->frame, "\n\ndata: [DONE]\n\n");
    conn_stream_put(conn, buf_text(&g->frame), g->frame.len);
    conn_stream_end(conn);
}

static void finish_stream(struct generation *g) {
    /* The end is not held back: what is left goes to the connection, which writes it in time. */
    for (int32_t i = 0; i < g->n_choice && g->conn; i++) g->api->flush(g, &g->choice[i]);
    if (g->conn) g->api->finish_stream(g);
    if (g->conn) {
        buf_puts(&g->frame, "data: [DONE]\n\n");
        generation_send(g);
    }
    if (!g->conn) return;
    struct conn *conn = g->conn;
    g->conn = NULL;
    conn_stream_end(conn);
}

static void finish_whole(struct generation *g) {
    struct buf body = {0};
    sumi_error err = {0};
    sumi_status status = g->api->whole(g, &body, &err);
    if (status == SUMI_OK && body.failed) status = NO_MEMORY(&err, body.cap);
    struct conn *conn = g->conn;
    if (status != SUMI_OK) fail(g, &err);
    else {
        g->conn = NULL;
        conn_reply(conn, 200, "application/json", body.data, body.len);
    }
    buf_reset(&body);
}

static void on_event(struct run *run, const struct message *m) {
    struct generation *g = run->g;
    const struct event *e = &m->event;
    int32_t i = (int32_t)(run - g->run) * g->params.n + e->choice;
    struct choice *c = &g->choice[i];
    observe_event(g, c, e, m->at_ns);
    c->n_output = e->n_output;
    c->unsent += (int32_t)e->n_token;
    c->finish = e->finish;
    c->stop_string = e->stop_string;
    c->stop_token = e->stop_token;
    run->n_cached = e->n_cached;
    if (!g->conn) return;
    sumi_error err = {0};
    sumi_status status = SUMI_OK;
    if (atomic_load(&run->tap.lost)) status = NO_MEMORY(&err, sizeof *m);
    else if (e->finish == FINISH_ERROR) {
        if (e->error) err = *e->error;
        else fail_with(&err, SUMI_ERR_DEVICE, "the engine ended the request");
        /* Whatever went wrong inside is the server's fault, not the request's. */
        status = err.status = SUMI_ERR_DEVICE;
    } else status = g->api->event(g, c, e, &err);
    if (status != SUMI_OK) fail(g, &err);
}

static void on_end(struct run *run) {
    struct generation *g = run->g;
    run->ended = true;
    observe_run_end(g, run);
    if (g->conn && atomic_load(&run->tap.lost)) {
        sumi_error err = {0};
        NO_MEMORY(&err, sizeof(struct message));
        fail(g, &err);
    }
    if (--g->n_open) return;
    if (g->conn && g->params.stream) finish_stream(g);
    else if (g->conn) finish_whole(g);
}

/* All messages first, then the writing: steps that arrived together make one chunk. */
void generation_dispatch(struct server *s) {
    struct generation *dirty = NULL, **last = &dirty;
    for (struct message *m = queue_take(s->queue), *next; m; m = next) {
        struct generation *g = m->run->g;
        next = m->next;
        if (m->kind == MESSAGE_EVENT) on_event(m->run, m);
        else on_end(m->run);
        message_free(m);
        if (g->dirty) continue;
        g->dirty = true;
        g->next_dirty = NULL;
        *last = g;
        last = &g->next_dirty;
    }
    for (struct generation *g = dirty, *next; g; g = next) {
        next = g->next_dirty;
        g->dirty = false;
        if (g->conn && g->params.stream) flush(g);
        if (!g->n_open) unlink_and_free(g);
    }
}

void generation_abort_all(struct server *s) {
    for (struct generation *g = s->generations; g; g = g->next) cancel_runs(g);
}

const char *generation_finish_text(enum finish finish) {
    switch (finish) {
    case FINISH_NONE: return "null";
    case FINISH_STOP: return "\"stop\"";
    case FINISH_LENGTH: return "\"length\"";
    case FINISH_ABORT: return "\"abort\"";
    default: return "\"error\"";
    }
}

void generation_put_stop_reason(const struct generation *g, const struct choice *c,
                                struct buf *out) {
    const struct sampling *s = &g->params.sampling;
    if (c->stop_string >= 0 && (size_t)c->stop_string < s->n_stop)
        json_put_string(out, s->stop[c->stop_string], s->stop_len[c->stop_string]);
    else if (c->stop_token >= 0) buf_printf(out, "%d", c->stop_token);
    else buf_puts(out, "null");
}
