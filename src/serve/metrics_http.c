/* Series of the HTTP side and of the process. Handlers come from the route table and methods from a
 * short list, so the number of series is bounded whatever clients send. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <dirent.h>

#include "base/mem.h"
#include "serve/metrics.h"

enum { MAX_SERIES = 512 };

static const double coarse[] = {0.1, 0.5, 1};
static const double fine[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1,  1.5, 2,
                              2.5,  3,     3.5,  4,     4.5, 5,    7.5, 10,   30, 60};

/* One handler and method; requests by status class. */
struct http_series {
    const char *handler, *method;
    double requests[6]; /* [status / 100] */
    struct histogram duration;
    double request_bytes, response_bytes, n;
};

struct http_metrics {
    struct http_series *series; /* [n] */
    size_t n;
    struct histogram duration;
};

static bool open_histogram(struct histogram *h, const double *bounds, size_t n) {
    h->bounds = bounds;
    h->n = n;
    h->count = mem_zero(n + 1, sizeof *h->count);
    return h->count != NULL;
}

struct http_metrics *http_metrics_open(void) {
    struct http_metrics *h = mem_zero(1, sizeof *h);
    if (h && !open_histogram(&h->duration, fine, sizeof fine / sizeof *fine)) {
        mem_free(h);
        h = NULL;
    }
    return h;
}

void http_metrics_close(struct http_metrics *h) {
    if (!h) return;
    for (size_t i = 0; i < h->n; i++) mem_free(h->series[i].duration.count);
    mem_free(h->series);
    mem_free(h->duration.count);
    mem_free(h);
}

static const char *known_method(const char *method) {
    static const char *const known[] = {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], method) == 0) return known[i];
    return "OTHER";
}

static struct http_series *find(struct http_metrics *h, const char *handler, const char *method) {
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->series[i].handler, handler) == 0 && h->series[i].method == method)
            return &h->series[i];
    if (h->n == MAX_SERIES) return NULL;
    struct http_series *p = mem_resize(h->series, h->n + 1, sizeof *p);
    if (!p) return NULL;
    h->series = p;
    p += h->n;
    *p = (struct http_series){.handler = handler, .method = method};
    if (!open_histogram(&p->duration, coarse, sizeof coarse / sizeof *coarse)) return NULL;
    h->n++;
    return p;
}

void http_metrics_add(struct http_metrics *h, const char *handler, const char *method, int status,
                      double seconds, size_t request_bytes, size_t response_bytes) {
    struct http_series *s = find(h, handler, known_method(method));
    histogram_observe(&h->duration, seconds, 1);
    if (!s) return;
    s->requests[status >= 100 && status < 600 ? status / 100 : 0]++;
    histogram_observe(&s->duration, seconds, 1);
    s->request_bytes += (double)request_bytes;
    s->response_bytes += (double)response_bytes;
    s->n++;
}

static void put_labels(struct buf *labels, const struct http_series *s, int class) {
    buf_clear(labels);
    buf_printf(labels, "handler=\"%s\",method=\"%s\"", s->handler, s->method);
    if (class) buf_printf(labels, ",status=\"%dxx\"", class);
}

/* Sums over the methods of a handler: these summaries carry the handler alone. */
static void write_sizes(const struct http_metrics *h, const char *name, const char *help,
                        bool response, struct buf *out) {
    struct buf labels = {0};
    metrics_head(out, name, help, "summary");
    for (size_t i = 0; i < h->n; i++) {
        bool first = true;
        double n = 0, sum = 0;
        for (size_t k = 0; k < h->n; k++) {
            const struct http_series *s = &h->series[k];
            if (strcmp(s->handler, h->series[i].handler) != 0) continue;
            if (k < i) first = false;
            n += s->n;
            sum += response ? s->response_bytes : s->request_bytes;
        }
        if (!first) continue;
        buf_clear(&labels);
        buf_printf(&labels, "handler=\"%s\"", h->series[i].handler);
        metrics_sample(out, name, "_count", buf_text(&labels), n);
        metrics_sample(out, name, "_sum", buf_text(&labels), sum);
    }
    buf_reset(&labels);
}

void http_metrics_write(const struct http_metrics *h, struct buf *out) {
    struct buf labels = {0};
    metrics_head(out, "http_requests_total", "Requests by handler, method and status.", "counter");
    for (size_t i = 0; i < h->n; i++)
        for (int class = 1; class < 6; class ++) {
            if (h->series[i].requests[class] == 0) continue;
            put_labels(&labels, &h->series[i], class);
            metrics_sample(out, "http_requests_total", "", buf_text(&labels),
                           h->series[i].requests[class]);
        }
    write_sizes(h, "http_request_size_bytes", "Request body bytes by handler.", false, out);
    write_sizes(h, "http_response_size_bytes", "Answer body bytes by handler.", true, out);
    metrics_head(out, "http_request_duration_highr_seconds", "Duration of all requests.",
                 "histogram");
    histogram_write(&h->duration, "http_request_duration_highr_seconds", "", out);
    metrics_head(out, "http_request_duration_seconds", "Duration by handler and method.",
                 "histogram");
    for (size_t i = 0; i < h->n; i++) {
        put_labels(&labels, &h->series[i], 0);
        histogram_write(&h->series[i].duration, "http_request_duration_seconds", buf_text(&labels),
                        out);
    }
    buf_reset(&labels);
}

static double count_descriptors(void) {
    DIR *d = opendir("/proc/self/fd");
    double n = 0;
    if (!d) return 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* without the directory itself */
}

static void memory_bytes(double *virtual, double *resident) {
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long v = 0, r = 0;
    if (f && fscanf(f, "%llu %llu", &v, &r) != 2) v = r = 0;
    if (f) fclose(f);
    double page = (double)sysconf(_SC_PAGESIZE);
    *virtual = (double)v * page;
    *resident = (double)r * page;
}

static void write_one(struct buf *out, const char *name, const char *help, const char *type,
                      double value) {
    metrics_head(out, name, help, type);
    metrics_sample(out, name, "", "", value);
}

void process_metrics_write(double started, struct buf *out) {
    struct rusage use = {0};
    struct rlimit limit = {0};
    double virtual, resident;
    memory_bytes(&virtual, &resident);
    getrusage(RUSAGE_SELF, &use);
    getrlimit(RLIMIT_NOFILE, &limit);
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
    write_one(out, "process_virtual_memory_bytes", "Virtual memory size.", "gauge", virtual);
    write_one(out, "process_resident_memory_bytes", "Resident memory size.", "gauge", resident);
    write_one(out, "process_start_time_seconds", "Start time since the epoch.", "gauge", started);
    write_one(out, "process_cpu_seconds_total", "User and system time.", "counter", cpu);
    write_one(out, "process_open_fds", "Open descriptors.", "gauge", count_descriptors());
    write_one(out, "process_max_fds", "Most descriptors allowed.", "gauge", (double)limit.rlim_cur);
}
