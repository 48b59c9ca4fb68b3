/* One HTTP request that generates: its prompts become engine requests ("runs"), each with n
 * choices; events come back over the queue and go to the API's own functions. It lives until the
 * last run has ended, also when the client is gone before. */
#ifndef SUMI_SERVE_GENERATION_H
#define SUMI_SERVE_GENERATION_H

#include "serve/logprobs.h"
#include "serve/params.h"
#include "serve/queue.h"

struct conn;
struct event;
struct generation;

struct run {
    struct queue_tap tap;
    struct generation *g;
    uint64_t id; /* of the engine */
    bool submitted, ended;
    bool counted;    /* its prompt is in the metrics */
    int32_t longest; /* tokens of its longest choice */
    int32_t n_prompt, n_cached;
    struct ids prompt; /* owned; kept only when it is part of the answer */
};

struct choice {
    int32_t index; /* in the answer: prompt index * n + choice */
    struct run *run;
    int32_t n_output;
    int32_t unsent; /* tokens since the last chunk of a stream */
    enum finish finish;
    int32_t stop_string, stop_token;
    int64_t scheduled_ns, first_ns,
        last_ns; /* first scheduling, first and last token; 0: not yet */
};

struct generation_api {
    /* One event of a choice: takes over what it needs. */
    sumi_status (*event)(struct generation *g, struct choice *c, const struct event *e,
                         sumi_error *err);
    /* Streams: writes what a choice has to say now. Called only when something may be due. */
    void (*flush)(struct generation *g, struct choice *c);
    /* Streams: what follows the last chunk of the last choice (usage). */
    void (*finish_stream)(struct generation *g);
    /* The whole answer's body. */
    sumi_status (*whole)(struct generation *g, struct buf *out, sumi_error *err);
    void (*free)(struct generation *g);
};

struct generation {
    const struct generation_api *api;
    struct server *s;
    struct generation *prev, *next;
    struct conn *conn; /* NULL once the client is gone or answered */
    struct params params;
    struct logprobs_style style;
    char *id;        /* "chatcmpl-..." owned */
    int64_t created; /* unix time */
    int64_t arrival_ns, submitted_ns;
    struct run *run; /* [n_run] owned */
    int32_t n_run, n_open;
    struct choice *choice; /* [n_choice] owned */
    int32_t n_choice;
    bool dirty, began; /* began: the first chunk of a stream was written */
    struct generation *next_dirty;
    struct event *keep_alive;
    struct buf frame; /* scratch for one event of a stream */
};

/* Prepares for n_run prompts; on failure generation_free is still to be called. `id_prefix` as in
 * "chatcmpl-". */
sumi_status generation_init(struct generation *g, const struct generation_api *api,
                            struct conn *conn, int32_t n_run, const char *id_prefix,
                            sumi_error *err);
void generation_free(struct generation *g); /* before it was submitted */

/* Submits every prompt; prompt[i] is copied by the engine. A replaying server says `replay`, or
 * each prompt itself when it is NULL. On success the answer is under way and
 * the generation belongs to the server. On failure the error is to be answered by the caller, who
 * must not touch the generation again. */
sumi_status generation_submit(struct generation *g, const struct ids *prompt,
                              const struct ids *replay, sumi_error *err);

/* Writes one event of the stream from the frame's text, then clears it. */
void generation_send(struct generation *g);

/* Loop side of the queue. */
void generation_dispatch(struct server *s);
/* Ends all with finish reason "abort". */
void generation_abort_all(struct server *s);

/* "stop", "length", "abort", or null as JSON text. */
const char *generation_finish_text(enum finish finish);
/* Stop string, stop token id, or null as JSON. */
void generation_put_stop_reason(const struct generation *g, const struct choice *c,
                                struct buf *out);

#endif
