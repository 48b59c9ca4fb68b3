/* POST /v1/chat/completions: a conversation in, a generation out. The request side is here; the
 * answer is parsed in chat_answer.c and streamed by chat_stream.c. */
#include "serve/chat.h"

#include <string.h>

#include "base/mem.h"
#include "serve/api.h"
#include "serve/budget.h"
#include "serve/chat_prompt.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/replay.h"

static sumi_status check_schema(struct json_object *body, sumi_error *err) {
    static const struct field own[] = {
        {"include_reasoning", FIELD_BOOL, false, NULL},
        {"return_prompt_text", FIELD_BOOL, false, NULL},
    };
    struct schema_report report = {0};
    chat_prompt_schema(&report, body);
    schema_check(&report, body, own, sizeof own / sizeof *own);
    tool_schema(&report, body);
    params_schema(&report, API_CHAT, body);
    return schema_result(&report, err);
}

/* The last message's text, when it is of the role that answers. */
static sumi_status read_echo(struct chat *x, struct json_object *messages, sumi_error *err) {
    struct json_object *last =
        json_object_array_get_idx(messages, json_object_array_length(messages) - 1);
    struct json_object *role = json_get(last, "role"), *content = json_get(last, "content");
    if (!x->g.params.echo || !json_is(role, json_type_string) ||
        strcmp(json_object_get_string(role), x->role) != 0 || !json_is(content, json_type_string))
        return SUMI_OK;
    buf_put(&x->echo, json_object_get_string(content), (size_t)json_object_get_string_len(content));
    return x->echo.failed ? NO_MEMORY(err, x->echo.cap) : SUMI_OK;
}

/* Who answers: the configured role, or that of a last message that is to be continued. */
static sumi_status read_role(struct chat *x, const struct chat_prompt *p, sumi_error *err) {
    struct json_object *messages = p->request.messages;
    const char *role = x->g.s->config.response_role ? x->g.s->config.response_role : "assistant";
    if (!p->request.add_generation_prompt) {
        struct json_object *last =
            json_object_array_get_idx(messages, json_object_array_length(messages) - 1);
        struct json_object *v = json_get(last, "role");
        if (json_is(v, json_type_string)) role = json_object_get_string(v);
    }
    x->role = mem_string(role, strlen(role));
    if (!x->role) return NO_MEMORY(err, strlen(role));
    return read_echo(x, messages, err);
}

static sumi_status settle(struct chat *x, struct ids *prompt, sumi_error *err) {
    const struct server_config *config = &x->g.s->config;
    struct params *params = &x->g.params;
    TRY(budget_truncate(config, params, prompt, err));
    TRY(budget_resolve(config, params, prompt->n, false, &params->sampling.max_tokens, err));
    /* Parsers match markers, so they must see them; what is no marker they drop themselves. */
    if (config->reasoning || config->tools) params->sampling.skip_special = false;
    return sampling_check(&params->sampling, tokenizer_size(config->tokenizer),
                          config->max_logprobs, err);
}

static sumi_status prepare(struct chat *x, struct conn *c, struct json_object *body,
                           struct ids *prompt, struct ids *replay, sumi_error *err) {
    struct server *s = conn_server(c);
    struct chat_prompt p = {0};
    bool scripted;
    sumi_status status;
    x->g.s = s;
    x->include_reasoning = true;
    TRY(check_schema(body, err));
    TRY(api_check_model(s, body, err));
    TRY(server_accepts(s, err));
    TRY(params_read(&x->g.params, API_CHAT, body, &s->config, err));
    TRY(tool_rules_read(&x->tools, body, &s->config, err));
    TRY(json_get_bool(body, "include_reasoning", &x->include_reasoning, err));
    TRY(json_get_bool(body, "return_prompt_text", &x->return_prompt_text, err));
    TRY_OUT(chat_prompt_read(&p, body, &s->config, x->tools.in_prompt, err));
    TRY_OUT(read_role(x, &p, err));
    TRY_OUT(chat_prompt_check_size(&p, &s->config, err));
    struct buf *text = x->return_prompt_text ? &x->prompt_text : NULL;
    TRY_OUT(chat_prompt_render(&p, &s->config, prompt, text, err));
    TRY_OUT(settle(x, prompt, err));
    TRY_OUT(replay_read(&s->config, body, replay, &scripted, err));
    if (s->config.replay && !scripted)
        TRY_OUT(replay_last_user(&s->config, p.request.messages, replay, err));
    TRY_OUT(generation_init(&x->g, &chat_api, c, 1, "chatcmpl-", err));
    status = chat_open(x, prompt, p.thinking, err);
out:
    chat_prompt_reset(&p);
    return status;
}

void chat_handle(struct server *s, struct conn *c) {
    struct json_object *body = api_read(c);
    (void)s;
    if (!body) return;
    sumi_error err = {0};
    struct ids prompt = {0}, replay = {0};
    struct chat *x = mem_zero(1, sizeof *x);
    sumi_status status = x ? SUMI_OK : NO_MEMORY(&err, sizeof *x);
    if (x) {
        x->g.api = &chat_api;
        status = prepare(x, c, body, &prompt, &replay, &err);
        if (status != SUMI_OK) generation_free(&x->g);
    }
    if (status == SUMI_OK) {
        status = generation_submit(&x->g, &prompt, &replay, &err);
        if (status == SUMI_OK && x->g.params.return_token_ids) {
            x->g.run[0].prompt = prompt;
            prompt = (struct ids){0};
        }
    }
    if (status != SUMI_OK) error_reply(c, &err, body);
    mem_free(replay.data);
    mem_free(prompt.data);
    json_object_put(body);
}
