/* Engine figures in, a log line every interval out: at info level while busy, else at debug. */
#include "serve/stats_log.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/internal.h"

struct stats_log {
    double interval_s;
    double last_s;
    int64_t prompt_tokens, generation_tokens; /* at the last line */
    double cached;
};

sumi_status stats_log_open(struct stats_log **out, double interval_s, sumi_error *err) {
    struct stats_log *l = *out = mem_zero(1, sizeof *l);
    if (!l) return NO_MEMORY(err, sizeof *l);
    l->interval_s = interval_s;
    l->last_s = clock_seconds();
    return SUMI_OK;
}

void stats_log_close(struct stats_log *l) {
    mem_free(l);
}

void stats_log_tick(struct stats_log *l, struct server *s) {
    double now = clock_seconds(), elapsed = now - l->last_s;
    if (l->interval_s <= 0 || elapsed < l->interval_s) return;
    struct engine_stats e = engine_stats(s->config.engine);
    double cached = metrics_value(s->metrics, M_PROMPT_CACHED, 0);
    double computed = (double)(e.prompt_tokens - l->prompt_tokens) - (cached - l->cached);
    double generated = (double)(e.generation_tokens - l->generation_tokens);
    double queries = metrics_value(s->metrics, M_PREFIX_QUERIES, 0);
    double hits = metrics_value(s->metrics, M_PREFIX_HITS, 0);
    bool busy = e.n_running || e.n_waiting || generated > 0 || computed > 0;
    log_line(busy ? LOG_INFO : LOG_DEBUG,
             "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f "
             "tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix "
             "cache hit rate: %.1f%%",
             computed / elapsed, generated / elapsed, e.n_running, e.n_waiting,
             e.slab_total ? 100.0 * e.slab_used / e.slab_total : 0.0,
             queries > 0 ? 100 * hits / queries : 0.0);
    l->last_s = now;
    l->prompt_tokens = e.prompt_tokens;
    l->generation_tokens = e.generation_tokens;
    l->cached = cached;
}
