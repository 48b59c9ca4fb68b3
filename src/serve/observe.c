/* Events of requests in, observations out. Times: queue = arrival in the engine to first
 * scheduling, prefill = from there to the first token, decode = first to last token, inference =
 * first scheduling to last token, end to end = arrival of the HTTP request to the end. */
#include "serve/observe.h"

#include <string.h>

#include "serve/internal.h"

static double seconds(int64_t from_ns, int64_t to_ns) {
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

static void observe_tokens(struct generation *g, struct choice *c, size_t n, int64_t at_ns) {
    struct metrics *m = g->s->metrics;
    if (!c->first_ns) {
        c->first_ns = at_ns;
        metrics_observe(m, M_TTFT, seconds(g->arrival_ns, at_ns), 1);
        n--;
    }
    /* Tokens that arrive together share the time since the last ones. */
    if (n && c->last_ns) {
        double gap = seconds(c->last_ns, at_ns) / (double)n;
        metrics_observe(m, M_ITL, gap, n);
        metrics_observe(m, M_OLD_TPOT, gap, n);
    }
    c->last_ns = at_ns;
}

static void observe_prompt(struct generation *g, struct run *run, const struct event *e) {
    struct metrics *m = g->s->metrics;
    run->counted = true;
    metrics_add(m, M_PROMPT_CACHED, 0, e->n_cached);
    if (g->s->config.prefix_caching) {
        metrics_add(m, M_PREFIX_QUERIES, 0, e->n_prompt);
        metrics_add(m, M_PREFIX_HITS, 0, e->n_cached);
    }
}

static void observe_times(struct metrics *m, struct generation *g, const struct choice *c,
                          const struct event *e, int64_t at_ns) {
    metrics_observe(m, M_E2E, seconds(g->arrival_ns, at_ns), 1);
    if (!e->scheduled_ns) return;
    metrics_observe(m, M_QUEUE_TIME, seconds(g->submitted_ns, e->scheduled_ns), 1);
    if (!c->first_ns) return;
    metrics_observe(m, M_PREFILL_TIME, seconds(e->scheduled_ns, c->first_ns), 1);
    metrics_observe(m, M_DECODE_TIME, seconds(c->first_ns, c->last_ns), 1);
    metrics_observe(m, M_INFERENCE_TIME, seconds(e->scheduled_ns, c->last_ns), 1);
    if (e->n_output > 1)
        metrics_observe(m, M_TPOT, seconds(c->first_ns, c->last_ns) / (e->n_output - 1), 1);
}

static void observe_finish(struct generation *g, struct choice *c, const struct event *e,
                           int64_t at_ns) {
    static const int series[] = {[FINISH_STOP] = SUCCESS_STOP,
                                 [FINISH_LENGTH] = SUCCESS_LENGTH,
                                 [FINISH_ABORT] = SUCCESS_ABORT,
                                 [FINISH_ERROR] = SUCCESS_ERROR};
    struct metrics *m = g->s->metrics;
    metrics_add(m, M_SUCCESS, series[e->finish], 1);
    metrics_observe(m, M_REQUEST_PROMPT_TOKENS, c->run->n_prompt, 1);
    metrics_observe(m, M_REQUEST_GENERATION_TOKENS, e->n_output, 1);
    metrics_observe(m, M_PREFILL_COMPUTED, c->run->n_prompt - e->n_cached, 1);
    metrics_observe(m, M_REQUEST_MAX_TOKENS, g->params.sampling.max_tokens, 1);
    metrics_observe(m, M_REQUEST_PREEMPTIONS, e->n_preemption, 1);
    observe_times(m, g, c, e, at_ns);
}

void observe_event(struct generation *g, struct choice *c, const struct event *e, int64_t at_ns) {
    if (!c->run->counted && e->n_token) observe_prompt(g, c->run, e);
    if (e->n_token) observe_tokens(g, c, e->n_token, at_ns);
    if (e->scheduled_ns) c->scheduled_ns = e->scheduled_ns;
    if (e->n_output > c->run->longest) c->run->longest = e->n_output;
    if (e->finish != FINISH_NONE) observe_finish(g, c, e, at_ns);
}

void observe_run_end(struct generation *g, struct run *run) {
    metrics_observe(g->s->metrics, M_REQUEST_MAX_GENERATION, run->longest, 1);
    metrics_observe(g->s->metrics, M_REQUEST_N, g->params.n, 1);
}

void observe_rejection(struct server *s, const sumi_error *err) {
    bool tokens = strstr(err->msg, "prompt tokens") != NULL;
    metrics_add(s->metrics, M_REJECTIONS, tokens ? REJECT_TOKENS : REJECT_REQUESTS, 1);
}
