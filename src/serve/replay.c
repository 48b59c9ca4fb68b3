/* Scripts in, token ids out. */
#include "serve/replay.h"

#include <string.h>

#include "serve/schema.h"

static sumi_status read_ids(const struct tokenizer *t, struct json_object *list, struct ids *out,
                            sumi_error *err) {
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        int64_t id = -1;
        if (schema_int(json_object_array_get_idx(list, i), &id) != SUMI_OK || id < 0 ||
            id >= tokenizer_size(t))
            return fail_param(err, SUMI_ERR_ARG, "vllm_xargs",
                              "replay_ids: item %zu is not an id of the vocabulary", i);
        if (!ids_push(out, (int32_t)id)) return NO_MEMORY(err, sizeof id);
    }
    return SUMI_OK;
}

sumi_status replay_read(const struct server_config *config, struct json_object *body,
                        struct ids *out, bool *found, sumi_error *err) {
    struct json_object *xargs = json_get(body, "vllm_xargs");
    struct json_object *text = json_get(xargs, "replay"), *ids = json_get(xargs, "replay_ids");
    *found = config->replay && (text || ids);
    if (!*found) return SUMI_OK;
    if (ids && json_is(ids, json_type_array)) return read_ids(config->tokenizer, ids, out, err);
    if (!text || !json_is(text, json_type_string))
        return fail_param(err, SUMI_ERR_ARG, "vllm_xargs",
                          "replay must be a text, replay_ids an array of token ids");
    return tokenizer_encode(config->tokenizer, json_object_get_string(text),
                            (size_t)json_object_get_string_len(text), NULL, true, out, err);
}

static struct json_object *last_user(struct json_object *messages) {
    for (size_t i = json_object_array_length(messages); i > 0; i--) {
        struct json_object *m = json_object_array_get_idx(messages, i - 1);
        struct json_object *role = json_get(m, "role");
        if (json_is(role, json_type_string) && strcmp(json_object_get_string(role), "user") == 0)
            return json_get(m, "content");
    }
    return NULL;
}

sumi_status replay_last_user(const struct server_config *config, struct json_object *messages,
                             struct ids *out, sumi_error *err) {
    struct json_object *content = last_user(messages);
    struct buf text = {0};
    if (json_is(content, json_type_string)) {
        buf_put(&text, json_object_get_string(content),
                (size_t)json_object_get_string_len(content));
    } else if (json_is(content, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(content); i++) {
            struct json_object *part = json_object_array_get_idx(content, i);
            struct json_object *s = json_is(part, json_type_string) ? part : json_get(part, "text");
            if (!json_is(s, json_type_string)) continue;
            if (text.len) buf_putc(&text, '\n');
            buf_put(&text, json_object_get_string(s), (size_t)json_object_get_string_len(s));
        }
    }
    sumi_status status = text.failed ? NO_MEMORY(err, text.cap)
                                     : tokenizer_encode(config->tokenizer, buf_text(&text),
                                                        text.len, NULL, false, out, err);
    buf_reset(&text);
    return status;
}
