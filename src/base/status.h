/* Status codes, error messages and the macros that carry them upwards. */
#ifndef SUMI_BASE_STATUS_H
#define SUMI_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#include "sumi.h"

/* Fills *err (if err is not NULL) and returns code. A message names what was expected, what was
 * found, where, and what to do. */
sumi_status fail_with(sumi_error *err, sumi_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As fail_with, naming the request field or option at fault. */
sumi_status fail_param(sumi_error *err, sumi_status code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "prefix: " before an existing message, for context that the callee cannot know. */
void error_prefix(sumi_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define TRY(expr)                                       \
    do {                                                \
        sumi_status try_status_ = (expr);               \
        if (try_status_ != SUMI_OK) return try_status_; \
    } while (0)

/* For functions that clean up: sets `status` (a local) and jumps to `out`. */
#define TRY_OUT(expr)                    \
    do {                                 \
        status = (expr);                 \
        if (status != SUMI_OK) goto out; \
    } while (0)

#define NO_MEMORY(err, bytes)                                                          \
    fail_with(err, SUMI_ERR_MEMORY, "out of memory: %zu bytes could not be allocated", \
              (size_t)(bytes))

#endif
