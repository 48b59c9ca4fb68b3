/* Log lines and progress on stderr. A line is written by one call, so lines of several threads do
 * not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"

static atomic_int level_now = LOG_INFO;
static atomic_bool as_json;
static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR", "OFF"};

void log_set_level(enum log_level level) {
    atomic_store(&level_now, (int)level);
}

void log_set_json(bool json) {
    atomic_store(&as_json, json);
}

bool log_level_parse(const char *name, enum log_level *out) {
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcasecmp(name, names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    if (strcasecmp(name, "warn") == 0) *out = LOG_WARNING;
    else if (strcasecmp(name, "critical") == 0) *out = LOG_ERROR;
    else return false;
    return true;
}

bool log_enabled(enum log_level level) {
    return (int)level >= atomic_load_explicit(&level_now, memory_order_relaxed);
}

void log_line(enum log_level level, const char *fmt, ...) {
    if (!log_enabled(level)) return;
    struct buf text = {.max = 1 << 20}, line = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &tm);
    if (atomic_load(&as_json)) {
        buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", stamp, names[level]);
        json_put_string(&line, text.data ? text.data : "", text.len);
        buf_puts(&line, "}\n");
    } else {
        buf_printf(&line, "%s %-7s %s\n", stamp, names[level], buf_text(&text));
    }
    if (!line.failed) fwrite(line.data, 1, line.len, stderr);
    buf_reset(&line);
    buf_reset(&text);
}

void progress(const char *what, double done, double total) {
    static double last;
    if (!isatty(STDERR_FILENO) || total <= 0) return;
    double now = clock_seconds();
    if (done < total && now - last < 0.1) return;
    last = now;
    fprintf(stderr, "\r%s %3.0f %%%s", what, 100.0 * done / total, done >= total ? "\r\033[K" : "");
    fflush(stderr);
}
