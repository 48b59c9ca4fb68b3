/* GET /v1/models and /v1/models/{id}: one card per served name. */
#include <string.h>

#include "base/jsonw.h"
#include "serve/api.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/routes.h"

static void put_card(const struct server *s, const char *name, struct buf *out) {
    buf_puts(out, "{\"id\":");
    json_put_text(out, name);
    buf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"vllm\",\"root\":",
               (long long)s->created);
    json_put_text(out, s->config.root);
    buf_printf(out,
               ",\"parent\":null,\"max_model_len\":%d,\"permission\":[{\"id\":\"modelperm-%s\","
               "\"object\":\"model_permission\",\"created\":%lld,\"allow_create_engine\":false,"
               "\"allow_sampling\":true,\"allow_logprobs\":true,\"allow_search_indices\":false,"
               "\"allow_view\":true,\"allow_fine_tuning\":false,\"organization\":\"*\","
               "\"group\":null,\"is_blocking\":false}]}",
               s->config.max_model_len, s->card_id, (long long)s->created);
}

static void reply(struct conn *c, struct buf *body) {
    sumi_error err = {0};
    if (body->failed) {
        NO_MEMORY(&err, body->cap);
        error_reply(c, &err, NULL);
    } else conn_reply(c, 200, "application/json", body->data, body->len);
    buf_reset(body);
}

void models_list(struct server *s, struct conn *c) {
    struct buf body = {0};
    buf_puts(&body, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < s->config.served_name.n; i++) {
        if (i) buf_putc(&body, ',');
        put_card(s, s->config.served_name.item[i], &body);
    }
    buf_puts(&body, "]}");
    reply(c, &body);
}

void models_get(struct server *s, struct conn *c) {
    const char *id = routes_rest(s, c);
    struct buf body = {0};
    sumi_error err = {0};
    for (size_t i = 0; i < s->config.served_name.n; i++) {
        if (strcmp(s->config.served_name.item[i], id) != 0) continue;
        put_card(s, id, &body);
        reply(c, &body);
        return;
    }
    fail_param(&err, SUMI_ERR_MISSING, "model",
               "The model \"%.200s\" does not exist. This server's first model is %.200s", id,
               s->config.served_name.item[0]);
    error_reply(c, &err, NULL);
}
