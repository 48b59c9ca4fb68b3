/* A conversation flows in; the text that the checkpoint's template makes of it, and its token ids,
 * flow out. What a template can and cannot do with a message is found by asking it (rendering a
 * tiny conversation), so no model is named here. */
#include "chat/prompt.h"

#include <stdio.h>
#include <string.h>

#include "chat/collect.h"
#include "chat/message.h"

/* Marks the end of the final message while the template runs. The blank at its end shows whether
 * the template trims what it shows. */
#define END_TAG     "SUMI-FINAL-MESSAGE-ENDS"
#define END_TAG_BIG END_TAG " "

static sumi_status no_memory(sumi_error *err) {
    return NO_MEMORY(err, sizeof(struct json_object *));
}

/* Adds a member, replacing one of that name; v is given away, also on failure. */
static sumi_status set(struct json_object *o, const char *key, struct json_object *v,
                       sumi_error *err) {
    if (json_object_object_add(o, key, v) == 0) return SUMI_OK;
    json_object_put(v);
    return no_memory(err);
}

static sumi_status set_text(struct json_object *o, const char *key, const char *text, bool trusted,
                            sumi_error *err) {
    if (!text) return SUMI_OK;
    struct json_object *v = json_object_new_string(text);
    if (!v) return no_memory(err);
    if (trusted) chat_template_trust(v);
    return set(o, key, v, err);
}

static sumi_status set_bool(struct json_object *o, const char *key, bool value, sumi_error *err) {
    struct json_object *v = json_object_new_boolean(value);
    return v ? set(o, key, v, err) : no_memory(err);
}

/* ---- what the template can do ---- */

/* Does a developer message show up in the rendered text, in a role of its own? Only then is the
 * role passed on; else it becomes system. */
static bool shows_developer(const struct prompt_env *env) {
    static const char chat[] =
        "{\"messages\":[{\"role\":\"developer\",\"content\":\"SUMI-PROBE\"},"
        "{\"role\":\"user\",\"content\":\"hi\"}],\"add_generation_prompt\":true}";
    struct template_output out = {0};
    struct template_limits limits = {0};
    struct json_object *v;
    bool shown = false;
    if (json_parse(&v, chat, sizeof chat - 1, "probe", NULL) != SUMI_OK) return false;
    if (chat_template_render(env->chat_template, v, &limits, &out, NULL) == SUMI_OK)
        shown = strstr(buf_text(&out.text), "SUMI-PROBE") != NULL;
    buf_reset(&out.text);
    buf_reset(&out.trusted);
    json_object_put(v);
    return shown;
}

static bool has_developer(struct json_object *messages) {
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        struct json_object *role = json_get(json_object_array_get_idx(messages, i), "role");
        if (json_is(role, json_type_string) && !strcmp(json_object_get_string(role), "developer"))
            return true;
    }
    return false;
}

/* ---- the final message left open ---- */

/* The member of the last message, or of its last part, that holds its text. */
static struct json_object *final_text_owner(struct json_object *messages, const char **key) {
    size_t n = json_object_array_length(messages);
    struct json_object *last = json_object_array_get_idx(messages, n - 1);
    struct json_object *content = json_get(last, "content");
    *key = "content";
    if (!json_is(content, json_type_array)) return last;
    *key = "text";
    n = json_object_array_length(content);
    return n ? json_object_array_get_idx(content, n - 1) : NULL;
}

static sumi_status tag_final_message(struct json_object *messages, sumi_error *err) {
    const char *key;
    struct json_object *owner = final_text_owner(messages, &key);
    struct json_object *text = json_get(owner, key);
    if (!json_is(text, json_type_string))
        return fail_param(err, SUMI_ERR_ARG, "continue_final_message",
                          "continue_final_message: the last message has no text to continue");
    struct buf tagged = {0};
    buf_put(&tagged, json_object_get_string(text), (size_t)json_object_get_string_len(text));
    buf_puts(&tagged, END_TAG_BIG);
    struct json_object *v = tagged.failed || tagged.len > INT32_MAX
                                ? NULL
                                : json_object_new_string_len(tagged.data, (int)tagged.len);
    buf_reset(&tagged);
    return v ? set(owner, key, v, err) : no_memory(err);
}

static size_t find_last(const char *s, size_t n, const char *what) {
    size_t len = strlen(what);
    for (size_t i = n >= len ? n - len + 1 : 0; i--;)
        if (!memcmp(s + i, what, len)) return i;
    return SIZE_MAX;
}

/* Everything behind the final message's text goes, as transformers does it: where the template
 * trimmed the message, the white space before the tag goes too. */
static sumi_status cut_at_tag(struct template_output *out, sumi_error *err) {
    const char *s = buf_text(&out->text);
    size_t at = find_last(s, out->text.len, END_TAG);
    if (at == SIZE_MAX)
        return fail_param(err, SUMI_ERR_ARG, "continue_final_message",
                          "continue_final_message: the chat template does not show the last "
                          "message's text");
    bool trimmed = out->text.len - at < strlen(END_TAG_BIG) ||
                   memcmp(s + at, END_TAG_BIG, strlen(END_TAG_BIG)) != 0;
    while (trimmed && at && chat_is_space(s[at - 1])) at--;
    buf_cut(&out->text, at);
    buf_cut(&out->trusted, at);
    return SUMI_OK;
}

/* ---- variables ---- */

/* The caller's own variables first: fields of the request win over their namesakes. */
static sumi_status set_kwargs(struct json_object *o, struct json_object *kwargs, sumi_error *err) {
    if (!kwargs) return SUMI_OK;
    if (!json_is(kwargs, json_type_object))
        return fail_param(err, SUMI_ERR_ARG, "chat_template_kwargs",
                          "chat_template_kwargs: expected an object, found %s",
                          json_type_to_name(json_object_get_type(kwargs)));
    json_object_object_foreach(kwargs, key, v) TRY(set(o, key, json_object_get(v), err));
    return SUMI_OK;
}

static sumi_status set_effort(struct json_object *o, const struct prompt_request *r,
                              sumi_error *err) {
    if (!r->reasoning_effort) return SUMI_OK;
    TRY(set_text(o, "reasoning_effort", r->reasoning_effort, false, err));
    if (r->kwargs && json_object_object_get_ex(r->kwargs, "enable_thinking", NULL)) return SUMI_OK;
    return set_bool(o, "enable_thinking", strcmp(r->reasoning_effort, "none") != 0, err);
}

/* tools and documents are none when the request has none: templates are written for that. */
static sumi_status set_variables(struct json_object *o, const struct prompt_env *env,
                                 const struct prompt_request *r, struct json_object *messages,
                                 sumi_error *err) {
    TRY(set_kwargs(o, r->kwargs, err));
    TRY(set_effort(o, r, err));
    TRY(set_text(o, "bos_token", env->bos, true, err));
    TRY(set_text(o, "eos_token", env->eos, true, err));
    TRY(set(o, "messages", json_object_get(messages), err));
    TRY(set(o, "tools", json_object_get(r->tools), err));
    TRY(set(o, "documents", json_object_get(r->documents), err));
    return set_bool(o, "add_generation_prompt",
                    r->add_generation_prompt && !r->continue_final_message, err);
}

/* ---- rendering ---- */

static sumi_status render(const struct prompt_env *env, const struct prompt_request *r,
                          struct json_object *messages, struct template_output *out,
                          sumi_error *err) {
    struct template_limits limits = {0};
    struct json_object *variables = json_object_new_object();
    if (!variables) return no_memory(err);
    sumi_status status = set_variables(variables, env, r, messages, err);
    if (status == SUMI_OK) {
        status = chat_template_render(env->chat_template, variables, &limits, out, err);
        /* What a template stumbles over is in the messages: the client is told, not the log. */
        if (status == SUMI_ERR_FORMAT) status = SUMI_ERR_ARG;
        if (status == SUMI_ERR_ARG && err) {
            error_prefix(err, "the chat template refuses these messages");
            err->status = status;
            snprintf(err->param, sizeof err->param, "messages");
        }
    }
    json_object_put(variables);
    return status;
}

static sumi_status prepare(const struct prompt_env *env, const struct prompt_request *r,
                           struct json_object **messages, sumi_error *err) {
    struct message_form form = {.parts = chat_template_wants_parts(env->chat_template)};
    form.no_developer = json_is(r->messages, json_type_array) && has_developer(r->messages) &&
                        !shows_developer(env);
    TRY(messages_prepare(r->messages, &form, messages, err));
    sumi_status status = r->continue_final_message ? tag_final_message(*messages, err) : SUMI_OK;
    if (status == SUMI_OK) return SUMI_OK;
    json_object_put(*messages);
    *messages = NULL;
    return status;
}

sumi_status prompt_render(const struct prompt_env *env, const struct prompt_request *r,
                          struct ids *out, struct buf *text, sumi_error *err) {
    if (!env->chat_template)
        return fail_param(err, SUMI_ERR_ARG, "chat_template",
                          "this model comes without a chat template, so messages cannot be turned "
                          "into a prompt; start the server with --chat-template FILE, or use the "
                          "completions API");
    struct json_object *messages;
    struct template_output rendered = {0};
    TRY(prepare(env, r, &messages, err));
    sumi_status status;
    TRY_OUT(render(env, r, messages, &rendered, err));
    if (r->continue_final_message) TRY_OUT(cut_at_tag(&rendered, err));
    TRY_OUT(tokenizer_encode(env->tokenizer, buf_text(&rendered.text), rendered.text.len,
                             (const uint8_t *)buf_text(&rendered.trusted), true, out, err));
    if (text) {
        buf_put(text, buf_text(&rendered.text), rendered.text.len);
        if (text->failed) status = NO_MEMORY(err, rendered.text.len);
    }
out:
    json_object_put(messages);
    buf_reset(&rendered.text);
    buf_reset(&rendered.trusted);
    return status;
}
