/* Bytes of a request body in, a JSON object out; or the error answer. */
#include "serve/api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"

static sumi_status check_type(const struct http_request *r, sumi_error *err) {
    static const char json[] = "application/json";
    const char *type = http_find(r, "content-type");
    size_t n = type ? strcspn(type, "; \t") : 0;
    if (n == sizeof json - 1 && strncasecmp(type, json, n) == 0) return SUMI_OK;
    return fail_with(err, SUMI_ERR_FORMAT, "Content-Type must be application/json, found %.100s",
                     type ? type : "none");
}

static sumi_status parse(struct conn *c, struct json_object **out, sumi_error *err) {
    struct buf *body = conn_body(c);
    TRY(check_type(conn_request(c), err));
    sumi_status status = json_parse(out, buf_text(body), body->len, "request body", err);
    if (status == SUMI_ERR_FORMAT || status == SUMI_ERR_LIMIT) {
        char path[sizeof err->param];
        snprintf(path, sizeof path, "body.%.50s", err->param);
        memcpy(err->param, path, sizeof path);
        return err->status = SUMI_ERR_FORMAT;
    }
    TRY(status);
    if (json_is(*out, json_type_object)) return SUMI_OK;
    return fail_param(err, SUMI_ERR_FORMAT, "body", "the request body must be a JSON object");
}

struct json_object *api_read(struct conn *c) {
    static const char encoded[] = "compressed request bodies are not accepted";
    struct json_object *body = NULL;
    sumi_error err = {0};
    const char *encoding = http_find(conn_request(c), "content-encoding");
    if (encoding && strcasecmp(encoding, "identity") != 0) {
        struct buf answer = {0};
        error_body(&answer, 415, "UnsupportedMediaType", NULL, encoded, sizeof encoded - 1);
        conn_reply(c, 415, "application/json", buf_text(&answer), answer.len);
        buf_reset(&answer);
        return NULL;
    }
    if (parse(c, &body, &err) == SUMI_OK) {
        conn_drop_body(c);
        return body;
    }
    json_object_put(body);
    error_reply(c, &err, NULL);
    return NULL;
}

sumi_status api_check_model(const struct server *s, struct json_object *body, sumi_error *err) {
    struct json_object *v = json_get(body, "model");
    const char *name = v ? json_object_get_string(v) : "";
    if (!*name || s->config.skip_name_check) return SUMI_OK;
    struct buf served = {.max = 600};
    for (size_t i = 0; i < s->config.served_name.n; i++) {
        if (strcmp(s->config.served_name.item[i], name) == 0) {
            buf_reset(&served);
            return SUMI_OK;
        }
        buf_printf(&served, "%s%s", i ? ", " : "", s->config.served_name.item[i]);
    }
    sumi_status status = fail_param(
        err, SUMI_ERR_MISSING, "model",
        "The model \"%.200s\" does not exist. This server answers to: %s", name, buf_text(&served));
    buf_reset(&served);
    return status;
}
