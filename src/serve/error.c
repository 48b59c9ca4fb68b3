/* Status codes and messages in, HTTP error answers out. */
#include "serve/error.h"

#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/utf8.h"
#include "serve/conn.h"

enum { MAX_ECHO = 200 };

void error_body(struct buf *out, int status, const char *type, const char *param,
                const char *message, size_t n) {
    buf_puts(out, "{\"error\":{\"message\":");
    json_put_string(out, message, n);
    buf_puts(out, ",\"type\":");
    json_put_text(out, type);
    buf_puts(out, ",\"param\":");
    json_put_text(out, param);
    buf_printf(out, ",\"code\":%d}}", status);
}

int error_status(sumi_status status, const char **type) {
    switch (status) {
    case SUMI_ERR_FORMAT: *type = "Bad Request"; return 400;
    case SUMI_ERR_ARG:
    case SUMI_ERR_LIMIT:
    case SUMI_ERR_SHAPE: *type = "BadRequestError"; return 400;
    case SUMI_ERR_MISSING: *type = "NotFoundError"; return 404;
    case SUMI_ERR_UNSUPPORTED: *type = "NotImplementedError"; return 501;
    case SUMI_ERR_BUSY: *type = "Service Unavailable"; return 503;
    case SUMI_ERR_STATE:
    case SUMI_ERR_MEMORY: *type = "ServiceUnavailableError"; return 503;
    default: *type = "InternalServerError"; return 500;
    }
}

void error_put_value(struct buf *out, struct json_object *value, size_t max) {
    if (json_is(value, json_type_array)) {
        buf_printf(out, "an array of %zu", json_object_array_length(value));
    } else if (json_is(value, json_type_object)) {
        buf_printf(out, "an object of %d", json_object_object_length(value));
    } else if (json_is(value, json_type_string)) {
        const char *s = json_object_get_string(value);
        size_t n = (size_t)json_object_get_string_len(value);
        size_t cut = n > max ? utf8_valid_prefix(s, max) : n;
        buf_put(out, s, cut);
        if (cut < n) buf_puts(out, "...");
    } else {
        json_put_value(out, value, false);
    }
}

static bool breaks_rule(sumi_status status) {
    return status == SUMI_ERR_ARG || status == SUMI_ERR_LIMIT || status == SUMI_ERR_SHAPE;
}

int error_write(struct buf *out, const sumi_error *err, struct json_object *request) {
    const char *type;
    int status = error_status(err->status, &type);
    const char *param = err->param[0] && status != 501 ? err->param : NULL;
    struct buf message = {0};
    buf_puts(&message, err->msg);
    struct json_object *value = param ? json_get(request, param) : NULL;
    if (value && breaks_rule(err->status)) {
        buf_printf(&message, " (parameter=%s, value=", param);
        error_put_value(&message, value, MAX_ECHO);
        buf_putc(&message, ')');
    }
    if (message.failed) error_body(out, status, type, param, err->msg, strlen(err->msg));
    else error_body(out, status, type, param, buf_text(&message), message.len);
    buf_reset(&message);
    return status;
}

void error_reply(struct conn *c, const sumi_error *err, struct json_object *request) {
    struct buf body = {0};
    int status = error_write(&body, err, request);
    if (status == 503) buf_puts(conn_extra_headers(c), "retry-after: 1\r\n");
    conn_reply(c, status, "application/json", buf_text(&body), body.len);
    buf_reset(&body);
}
