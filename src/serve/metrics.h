/* Counters, gauges and histograms, and their text for Prometheus. Every series exists from the
 * start with value 0. Loop thread only. */
#ifndef SUMI_SERVE_METRICS_H
#define SUMI_SERVE_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "engine/engine.h"

/* The table in metric_table.c has one row for each, in this order. */
enum metric {
    M_RUNNING,
    M_WAITING,
    M_WAITING_BY_REASON,
    M_KV_USAGE,
    M_SLEEP_STATE,
    M_PROMPT_TOKENS,
    M_GENERATION_TOKENS,
    M_PROMPT_BY_SOURCE,
    M_PROMPT_CACHED,
    M_PROMPT_CACHED_BY_SOURCE,
    M_REJECTIONS,
    M_TOOL_PARSER,
    M_SUCCESS,
    M_PREEMPTIONS,
    M_PREFIX_QUERIES,
    M_PREFIX_HITS,
    M_EXTERNAL_QUERIES,
    M_EXTERNAL_HITS,
    M_MEDIA_QUERIES,
    M_MEDIA_HITS,
    M_TTFT,
    M_ITL,
    M_TPOT,
    M_E2E,
    M_QUEUE_TIME,
    M_INFERENCE_TIME,
    M_PREFILL_TIME,
    M_DECODE_TIME,
    M_REQUEST_PROMPT_TOKENS,
    M_REQUEST_GENERATION_TOKENS,
    M_REQUEST_MAX_GENERATION,
    M_REQUEST_MAX_TOKENS,
    M_PREFILL_COMPUTED,
    M_ITERATION_TOKENS,
    M_REQUEST_N,
    M_REQUEST_PREEMPTIONS,
    /* old names */
    M_OLD_KV_USAGE,
    M_OLD_PREFIX_QUERIES,
    M_OLD_PREFIX_HITS,
    M_OLD_PREFIX_RATE,
    M_OLD_TPOT,
    M_OLD_SWAPPED,
    M_OLD_CPU_USAGE,
    METRIC_COUNT
};

/* Series of families with an extra label are numbered in the table's order of values. */
enum { WAITING_CAPACITY, WAITING_DEFERRED };
enum { SOURCE_COMPUTED, SOURCE_CACHE };
enum { REJECT_REQUESTS, REJECT_TOKENS };
enum { SUCCESS_STOP, SUCCESS_LENGTH, SUCCESS_ABORT, SUCCESS_ERROR };
/* M_TOOL_PARSER has three labels; for chat its series is 2 * stream + called. */

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
enum metric_scope { SCOPE_ENGINE, SCOPE_MODEL }; /* labels model_name and engine; or the first */

struct metric_row {
    const char *name; /* a counter's sample name, "_total" included */
    enum metric_kind kind;
    enum metric_scope scope;
    const char *help;
    const char *label;         /* extra label, or NULL */
    const char *const *values; /* of the extra label, NULL-terminated */
    const double *bounds;      /* histograms: ascending, closed by 0; NULL: 1 2 5 10 ... up to the
                                  model length */
};
extern const struct metric_row metric_table[METRIC_COUNT];

struct metrics;

struct metrics_config {
    const char *model_name;
    int32_t max_model_len;
    int32_t cache_blocks; /* of PAGE_TOKENS tokens */
    bool prefix_caching;
};

sumi_status metrics_open(struct metrics **out, const struct metrics_config *config,
                         sumi_error *err);
void metrics_close(struct metrics *m);

void metrics_add(struct metrics *m, enum metric id, int series, double value);
void metrics_set(struct metrics *m, enum metric id, int series, double value);
void metrics_observe(struct metrics *m, enum metric id, double value, uint64_t times);
double metrics_value(const struct metrics *m, enum metric id, int series);

/* One finished HTTP exchange. `handler` is a route pattern with static lifetime. */
void metrics_http(struct metrics *m, const char *handler, const char *method, int status,
                  double seconds, size_t request_bytes, size_t response_bytes);

/* The whole exposition, engine figures included. */
void metrics_write(struct metrics *m, const struct engine_stats *stats, struct buf *out);

/* Shared with metrics_http.c. */
struct histogram {
    const double *bounds; /* [n] */
    size_t n;
    uint64_t *count; /* [n + 1] owned, the last one for values above all bounds */
    double sum;
};
void histogram_observe(struct histogram *h, double value, uint64_t times);
/* `labels` without braces, may be empty. */
void histogram_write(const struct histogram *h, const char *name, const char *labels,
                     struct buf *out);
void metrics_head(struct buf *out, const char *name, const char *help, const char *type);
void metrics_sample(struct buf *out, const char *name, const char *suffix, const char *labels,
                    double value);

struct http_metrics;
struct http_metrics *http_metrics_open(void);
void http_metrics_close(struct http_metrics *h);
void http_metrics_add(struct http_metrics *h, const char *handler, const char *method, int status,
                      double seconds, size_t request_bytes, size_t response_bytes);
void http_metrics_write(const struct http_metrics *h, struct buf *out);

/* CPU time, memory and descriptors of this process. */
void process_metrics_write(double started, struct buf *out);

#endif
