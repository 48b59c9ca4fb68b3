/* Observations in, Prometheus text out. What the engine counts itself is read when asked for; the
 * rest is observed by whoever serves requests. */
#include "serve/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "model/batch.h"

enum { MAX_LENGTH_BOUNDS = 32 };

struct series {
    struct buf labels; /* without braces */
    double value;
    struct histogram histogram;
};

struct metrics {
    struct series *series[METRIC_COUNT]; /* each [n_series] */
    int n_series[METRIC_COUNT];
    double length_bounds[MAX_LENGTH_BOUNDS]; /* 1 2 5 10 ... up to the model length */
    struct buf cache_labels;
    struct http_metrics *http;
    double started; /* unix time */
};

/* Label values escape backslash, quote and newline. */
static void put_label(struct buf *out, const char *name, const char *value) {
    buf_printf(out, "%s%s=\"", out->len ? "," : "", name);
    for (; *value; value++) {
        if (*value == '\n') buf_puts(out, "\\n");
        else {
            if (*value == '\\' || *value == '"') buf_putc(out, '\\');
            buf_putc(out, *value);
        }
    }
    buf_putc(out, '"');
}

static int count_values(const struct metric_row *row) {
    int n = 0;
    while (row->values && row->values[n]) n++;
    return row->values ? n : 1;
}

static void length_bounds(double *bounds, int32_t max_model_len) {
    static const double step[] = {1, 2, 5};
    int n = 0;
    for (double unit = 1; n < MAX_LENGTH_BOUNDS - 1; unit *= 10)
        for (int i = 0; i < 3 && n < MAX_LENGTH_BOUNDS - 1; i++) {
            if (n && unit * step[i] > (double)max_model_len) {
                bounds[n] = 0;
                return;
            }
            bounds[n++] = unit * step[i];
        }
    bounds[n] = 0;
}

static sumi_status open_series(struct metrics *m, int id, int i, const char *model,
                               sumi_error *err) {
    const struct metric_row *row = &metric_table[id];
    struct series *s = &m->series[id][i];
    put_label(&s->labels, "model_name", model);
    if (row->scope == SCOPE_ENGINE) put_label(&s->labels, "engine", "0");
    if (row->label) buf_printf(&s->labels, ",%s=\"%s\"", row->label, row->values[i]);
    if (s->labels.failed) return NO_MEMORY(err, 64);
    if (row->kind != METRIC_HISTOGRAM) return SUMI_OK;
    struct histogram *h = &s->histogram;
    h->bounds = row->bounds ? row->bounds : m->length_bounds;
    while (h->bounds[h->n] > 0) h->n++;
    h->count = mem_zero(h->n + 1, sizeof *h->count);
    return h->count ? SUMI_OK : NO_MEMORY(err, h->n * sizeof *h->count);
}

static void cache_labels(struct metrics *m, const struct metrics_config *c) {
    char number[24];
    struct buf *b = &m->cache_labels;
    snprintf(number, sizeof number, "%d", PAGE_TOKENS);
    put_label(b, "block_size", number);
    snprintf(number, sizeof number, "%d", c->cache_blocks);
    put_label(b, "num_gpu_blocks", number);
    snprintf(number, sizeof number, "%lld", (long long)c->cache_blocks * PAGE_TOKENS);
    put_label(b, "kv_cache_size_tokens", number);
    snprintf(number, sizeof number, "%.2f",
             c->max_model_len ? (double)c->cache_blocks * PAGE_TOKENS / c->max_model_len : 0.0);
    put_label(b, "kv_cache_max_concurrency", number);
    put_label(b, "cache_dtype", "auto");
    put_label(b, "enable_prefix_caching", c->prefix_caching ? "True" : "False");
    put_label(b, "gpu_memory_utilization", "None");
    put_label(b, "num_cpu_blocks", "None");
    put_label(b, "num_gpu_blocks_override", "None");
    put_label(b, "prefix_caching_hash_algo", "sha256");
    put_label(b, "sliding_window", "None");
    put_label(b, "user_specified_block_size", "False");
    put_label(b, "engine", "0");
}

static sumi_status open_all(struct metrics *m, const struct metrics_config *c, sumi_error *err) {
    length_bounds(m->length_bounds, c->max_model_len);
    for (int id = 0; id < METRIC_COUNT; id++) {
        int n = count_values(&metric_table[id]);
        m->series[id] = mem_zero((size_t)n, sizeof **m->series);
        if (!m->series[id]) return NO_MEMORY(err, (size_t)n * sizeof **m->series);
        m->n_series[id] = n;
        for (int i = 0; i < n; i++) TRY(open_series(m, id, i, c->model_name, err));
    }
    cache_labels(m, c);
    m->http = http_metrics_open();
    if (!m->http || m->cache_labels.failed) return NO_MEMORY(err, 64);
    metrics_set(m, M_SLEEP_STATE, 0, 1);
    return SUMI_OK;
}

sumi_status metrics_open(struct metrics **out, const struct metrics_config *config,
                         sumi_error *err) {
    *out = NULL;
    struct metrics *m = mem_zero(1, sizeof *m);
    if (!m) return NO_MEMORY(err, sizeof *m);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->started = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    sumi_status status = open_all(m, config, err);
    if (status != SUMI_OK) metrics_close(m);
    else *out = m;
    return status;
}

void metrics_close(struct metrics *m) {
    if (!m) return;
    for (int id = 0; id < METRIC_COUNT; id++) {
        for (int i = 0; i < m->n_series[id]; i++) {
            buf_reset(&m->series[id][i].labels);
            mem_free(m->series[id][i].histogram.count);
        }
        mem_free(m->series[id]);
    }
    buf_reset(&m->cache_labels);
    http_metrics_close(m->http);
    mem_free(m);
}

void metrics_add(struct metrics *m, enum metric id, int series, double value) {
    m->series[id][series].value += value;
}

void metrics_set(struct metrics *m, enum metric id, int series, double value) {
    m->series[id][series].value = value;
}

double metrics_value(const struct metrics *m, enum metric id, int series) {
    return m->series[id][series].value;
}

void metrics_observe(struct metrics *m, enum metric id, double value, uint64_t times) {
    histogram_observe(&m->series[id][0].histogram, value, times);
}

void metrics_http(struct metrics *m, const char *handler, const char *method, int status,
                  double seconds, size_t request_bytes, size_t response_bytes) {
    http_metrics_add(m->http, handler, method, status, seconds, request_bytes, response_bytes);
}

void histogram_observe(struct histogram *h, double value, uint64_t times) {
    size_t i = 0;
    while (i < h->n && value > h->bounds[i]) i++;
    h->count[i] += times;
    h->sum += value * (double)times;
}

void metrics_head(struct buf *out, const char *name, const char *help, const char *type) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_sample(struct buf *out, const char *name, const char *suffix, const char *labels,
                    double value) {
    buf_printf(out, "%s%s%s%s%s ", name, suffix, *labels ? "{" : "", labels, *labels ? "}" : "");
    json_put_double(out, value);
    buf_putc(out, '\n');
}

void histogram_write(const struct histogram *h, const char *name, const char *labels,
                     struct buf *out) {
    uint64_t total = 0;
    for (size_t i = 0; i <= h->n; i++) {
        total += h->count[i];
        buf_printf(out, "%s_bucket{%s%sle=\"", name, labels, *labels ? "," : "");
        if (i < h->n) json_put_double(out, h->bounds[i]);
        else buf_puts(out, "+Inf");
        buf_printf(out, "\"} %llu.0\n", (unsigned long long)total);
    }
    metrics_sample(out, name, "_count", labels, (double)total);
    metrics_sample(out, name, "_sum", labels, h->sum);
}

/* The gauge of start times that Prometheus clients add to counters and histograms. */
static void write_created(const struct metrics *m, int id, struct buf *out) {
    char name[128];
    snprintf(name, sizeof name, "%s", metric_table[id].name);
    size_t n = strlen(name);
    if (metric_table[id].kind == METRIC_COUNTER && n > 6 && strcmp(name + n - 6, "_total") == 0)
        name[n - 6] = 0;
    strncat(name, "_created", sizeof name - strlen(name) - 1);
    metrics_head(out, name, metric_table[id].help, "gauge");
    for (int i = 0; i < m->n_series[id]; i++)
        metrics_sample(out, name, "", m->series[id][i].labels.data, m->started);
}

static void write_family(const struct metrics *m, int id, struct buf *out) {
    static const char *const type[] = {"counter", "gauge", "histogram"};
    const struct metric_row *row = &metric_table[id];
    metrics_head(out, row->name, row->help, type[row->kind]);
    for (int i = 0; i < m->n_series[id]; i++) {
        const struct series *s = &m->series[id][i];
        if (row->kind == METRIC_HISTOGRAM)
            histogram_write(&s->histogram, row->name, s->labels.data, out);
        else metrics_sample(out, row->name, "", s->labels.data, s->value);
    }
    if (row->kind != METRIC_GAUGE) write_created(m, id, out);
}

static void read_engine(struct metrics *m, const struct engine_stats *e) {
    double usage = e->slab_total ? (double)e->slab_used / e->slab_total : 0;
    metrics_set(m, M_RUNNING, 0, e->n_running);
    metrics_set(m, M_WAITING, 0, e->n_waiting);
    metrics_set(m, M_WAITING_BY_REASON, WAITING_CAPACITY, e->n_waiting);
    metrics_set(m, M_KV_USAGE, 0, usage);
    metrics_set(m, M_OLD_KV_USAGE, 0, usage);
    metrics_set(m, M_PREEMPTIONS, 0, (double)e->n_preemption);
    metrics_set(m, M_PROMPT_TOKENS, 0, (double)e->prompt_tokens);
    metrics_set(m, M_GENERATION_TOKENS, 0, (double)e->generation_tokens);
    double cached = metrics_value(m, M_PROMPT_CACHED, 0);
    double queries = metrics_value(m, M_PREFIX_QUERIES, 0);
    double hits = metrics_value(m, M_PREFIX_HITS, 0);
    metrics_set(m, M_PROMPT_BY_SOURCE, SOURCE_CACHE, cached);
    metrics_set(m, M_PROMPT_BY_SOURCE, SOURCE_COMPUTED, fmax(0, (double)e->prompt_tokens - cached));
    metrics_set(m, M_PROMPT_CACHED_BY_SOURCE, 0, cached);
    metrics_set(m, M_OLD_PREFIX_QUERIES, 0, queries);
    metrics_set(m, M_OLD_PREFIX_HITS, 0, hits);
    metrics_set(m, M_OLD_PREFIX_RATE, 0, queries > 0 ? hits / queries : 0);
}

/* The engine counts steps by powers of two; every bound of the family is one. */
static void read_steps(struct metrics *m, const struct engine_stats *e) {
    struct histogram *h = &m->series[M_ITERATION_TOKENS][0].histogram;
    size_t bucket = 0;
    memset(h->count, 0, (h->n + 1) * sizeof *h->count);
    for (size_t i = 0; i < sizeof e->steps_by_log2 / sizeof *e->steps_by_log2; i++) {
        while (bucket < h->n && ldexp(1, (int)i) > h->bounds[bucket]) bucket++;
        h->count[bucket] += (uint64_t)e->steps_by_log2[i];
    }
    h->sum = (double)e->step_rows;
}

void metrics_write(struct metrics *m, const struct engine_stats *stats, struct buf *out) {
    read_engine(m, stats);
    read_steps(m, stats);
    for (int id = 0; id < METRIC_COUNT; id++) write_family(m, id, out);
    metrics_head(out, "vllm:cache_config_info", "Settings of the KV cache.", "gauge");
    metrics_sample(out, "vllm:cache_config_info", "", m->cache_labels.data, 1);
    http_metrics_write(m->http, out);
    process_metrics_write(m->started, out);
}
