/* POST /tokenize and /detokenize: text or messages to ids and back. No length limit applies. */
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "serve/api.h"
#include "serve/chat.h"
#include "serve/chat_prompt.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/response.h"
#include "serve/schema.h"

static sumi_status check_schema(struct json_object *body, bool chat, sumi_error *err) {
    static const struct field own[] = {{"model", FIELD_STRING, false, NULL},
                                       {"add_special_tokens", FIELD_BOOL, false, NULL},
                                       {"return_token_strs", FIELD_BOOL, false, NULL}};
    static const struct field prompt[] = {{"prompt", FIELD_STRING, true, NULL}};
    struct schema_report report = {0};
    schema_check(&report, body, own, sizeof own / sizeof *own);
    if (chat) {
        chat_prompt_schema(&report, body);
        tool_schema(&report, body);
    } else schema_check(&report, body, prompt, 1);
    return schema_result(&report, err);
}

static sumi_status encode_messages(struct server *s, struct json_object *body, struct ids *out,
                                   sumi_error *err) {
    struct chat_prompt p = {0};
    sumi_status status = chat_prompt_read(&p, body, &s->config, true, err);
    if (status == SUMI_OK) status = chat_prompt_render(&p, &s->config, out, NULL, err);
    chat_prompt_reset(&p);
    return status;
}

static sumi_status encode(struct server *s, struct json_object *body, struct ids *out,
                          sumi_error *err) {
    bool chat = json_get(body, "messages") != NULL;
    TRY(check_schema(body, chat, err));
    TRY(api_check_model(s, body, err));
    if (chat) return encode_messages(s, body, out, err);
    struct json_object *text = json_get(body, "prompt");
    return tokenizer_encode(s->config.tokenizer, json_object_get_string(text),
                            (size_t)json_object_get_string_len(text), NULL, true, out, err);
}

static void put_spellings(const struct tokenizer *t, const struct ids *ids, struct buf *out) {
    buf_putc(out, '[');
    for (size_t i = 0; i < ids->n; i++) {
        size_t n = 0;
        const char *text = tokenizer_spelling(t, ids->data[i], &n);
        if (i) buf_putc(out, ',');
        json_put_string(out, text ? text : "", text ? n : 0);
    }
    buf_putc(out, ']');
}

static void answer(struct conn *c, struct buf *out) {
    sumi_error err = {0};
    if (out->failed) {
        NO_MEMORY(&err, out->cap);
        error_reply(c, &err, NULL);
    } else conn_reply(c, 200, "application/json", out->data, out->len);
    buf_reset(out);
}

void tokenize_handle(struct server *s, struct conn *c) {
    struct json_object *body = api_read(c);
    if (!body) return;
    sumi_error err = {0};
    struct ids ids = {0};
    struct buf out = {0};
    if (encode(s, body, &ids, &err) != SUMI_OK) error_reply(c, &err, body);
    else {
        buf_printf(&out, "{\"count\":%zu,\"max_model_len\":%d,\"tokens\":", ids.n,
                   s->config.max_model_len);
        response_put_ids(ids.data, ids.n, &out);
        buf_puts(&out, ",\"token_strs\":");
        if (json_object_get_boolean(json_get(body, "return_token_strs")))
            put_spellings(s->config.tokenizer, &ids, &out);
        else buf_puts(&out, "null");
        buf_putc(&out, '}');
        answer(c, &out);
    }
    mem_free(ids.data);
    json_object_put(body);
}

static sumi_status decode(struct server *s, struct json_object *body, struct buf *text,
                          sumi_error *err) {
    static const struct field fields[] = {{"model", FIELD_STRING, false, NULL},
                                          {"tokens", FIELD_INTS, true, NULL}};
    struct schema_report report = {0};
    struct ids ids = {0};
    sumi_status status = SUMI_OK;
    schema_check(&report, body, fields, 2);
    TRY(schema_result(&report, err));
    TRY(api_check_model(s, body, err));
    struct json_object *list = json_get(body, "tokens");
    for (size_t i = 0; i < json_object_array_length(list) && status == SUMI_OK; i++) {
        int64_t id = -1;
        schema_int(json_object_array_get_idx(list, i), &id);
        if (id < 0 || id >= tokenizer_size(s->config.tokenizer))
            status = fail_param(err, SUMI_ERR_ARG, "tokens",
                                "tokens: item %zu is %lld, which is not in the vocabulary of %d "
                                "ids",
                                i, (long long)id, tokenizer_size(s->config.tokenizer));
        else if (!ids_push(&ids, (int32_t)id)) status = NO_MEMORY(err, sizeof id);
    }
    if (status == SUMI_OK) tokenizer_decode(s->config.tokenizer, ids.data, ids.n, false, text);
    mem_free(ids.data);
    return status;
}

void detokenize_handle(struct server *s, struct conn *c) {
    struct json_object *body = api_read(c);
    if (!body) return;
    sumi_error err = {0};
    struct buf text = {0}, out = {0};
    if (decode(s, body, &text, &err) != SUMI_OK) error_reply(c, &err, body);
    else {
        buf_puts(&out, "{\"prompt\":");
        json_put_string(&out, buf_text(&text), text.len);
        buf_putc(&out, '}');
        out.failed |= text.failed;
        answer(c, &out);
    }
    buf_reset(&text);
    json_object_put(body);
}
