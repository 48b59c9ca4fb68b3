/* Error messages: a caller's struct is filled once, by whoever detects the fault. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const char *sumi_version(void) {
    return SUMI_VERSION;
}

const char *sumi_status_text(sumi_status status) {
    static const char *const text[] = {
#define X(name, text) text,
        SUMI_STATUS_LIST(X)
#undef X
    };
    size_t i = (size_t)status;
    return i < sizeof text / sizeof *text ? text[i] : "unknown status";
}

static void fill(sumi_error *err, sumi_status code, const char *param, const char *fmt,
                 va_list ap) {
    if (!err) return;
    err->status = code;
    snprintf(err->param, sizeof err->param, "%s", param);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
}

sumi_status fail_with(sumi_error *err, sumi_status code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, "", fmt, ap);
    va_end(ap);
    return code;
}

sumi_status fail_param(sumi_error *err, sumi_status code, const char *param, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fill(err, code, param, fmt, ap);
    va_end(ap);
    return code;
}

void error_prefix(sumi_error *err, const char *fmt, ...) {
    if (!err) return;
    char old[sizeof err->msg], prefix[sizeof err->msg / 2];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    int n = snprintf(err->msg, sizeof err->msg, "%s: ", prefix);
    size_t used = n > 0 ? (size_t)n : 0;
    snprintf(err->msg + used, sizeof err->msg - used, "%.*s", (int)(sizeof old - used - 1), old);
}
