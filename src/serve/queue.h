/* From the engine's thread to the loop's: copies of events, in order, with a descriptor that
 * becomes readable when something waits. */
#ifndef SUMI_SERVE_QUEUE_H
#define SUMI_SERVE_QUEUE_H

#include <stdatomic.h>

#include "engine/engine.h"

struct queue;
struct run;

enum message_kind { MESSAGE_EVENT, MESSAGE_END };

struct message {
    struct message *next;
    enum message_kind kind;
    struct run *run;
    int64_t at_ns;      /* when the engine reported it */
    struct event event; /* its arrays lie in the same allocation */
    sumi_error error;   /* what event.error points to */
};

/* The queue's end of one engine request. The last message is part of it, so it is delivered even
 * when memory is short. */
struct queue_tap {
    struct queue *queue;
    struct run *run;
    struct message end;
    atomic_bool lost; /* an event could not be copied; the request must fail */
};

sumi_status queue_open(struct queue **out, sumi_error *err);
void queue_close(struct queue *q); /* frees what is still inside */
int queue_fd(const struct queue *q);
void queue_wake(struct queue *q); /* makes the descriptor readable; async-signal-safe */

/* The engine's callbacks; `user` is a struct queue_tap. */
void queue_on_event(void *user, const struct event *e);
void queue_on_end(void *user);

/* Everything that waits, oldest first; each MESSAGE_EVENT is freed by message_free. Clears the
 * descriptor. */
struct message *queue_take(struct queue *q);
void message_free(struct message *m); /* nothing for MESSAGE_END, which its tap owns */

#endif
