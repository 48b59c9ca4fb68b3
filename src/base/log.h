/* One log for the whole program: a line to stderr, with time and level. */
#ifndef SUMI_BASE_LOG_H
#define SUMI_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_OFF };

void log_set_level(enum log_level level);
void log_set_json(bool json); /* one JSON object per line instead of text */
bool log_level_parse(const char *name, enum log_level *out); /* case ignored */
bool log_enabled(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...)   log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)

/* A progress line on a terminal's stderr, redrawn in place at most ten times a second; silent in a
 * pipe. done == total ends the line. */
void progress(const char *what, double done, double total);

#endif
