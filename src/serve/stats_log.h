/* A line of figures in the log, in the words that operators' scripts know. */
#ifndef SUMI_SERVE_STATS_LOG_H
#define SUMI_SERVE_STATS_LOG_H

#include "base/status.h"

struct server;
struct stats_log;

sumi_status stats_log_open(struct stats_log **out, double interval_s, sumi_error *err);
void stats_log_close(struct stats_log *l);
/* Once a second or so: logs when the interval has passed. */
void stats_log_tick(struct stats_log *l, struct server *s);

#endif
