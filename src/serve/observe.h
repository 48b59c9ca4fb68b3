/* What the metrics learn from a request's life. */
#ifndef SUMI_SERVE_OBSERVE_H
#define SUMI_SERVE_OBSERVE_H

#include "serve/generation.h"

/* Before the choice takes over the event's counts. */
void observe_event(struct generation *g, struct choice *c, const struct event *e, int64_t at_ns);
void observe_run_end(struct generation *g, struct run *run);
void observe_rejection(struct server *s, const sumi_error *err);

#endif
