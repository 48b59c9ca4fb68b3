/* Fields of a chat request in, a prompt out, through chat/prompt.h. Size is looked at before any
 * work that grows with it. */
#include "serve/chat_prompt.h"

#include <stdio.h>
#include <string.h>

#include "serve/budget.h"

static const char efforts[] = "none, minimal, low, medium, high, xhigh, max";

static void check_messages(struct schema_report *r, struct json_object *messages) {
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        struct json_object *m = json_object_array_get_idx(messages, i);
        struct json_object *content = json_get(m, "content"), *calls = json_get(m, "tool_calls");
        char path[64];
        if (!json_is(m, json_type_object)) continue;
        snprintf(path, sizeof path, "messages.%zu.role", i);
        if (!json_is(json_get(m, "role"), json_type_string))
            schema_fault(r, path, "a message needs a role");
        snprintf(path, sizeof path, "messages.%zu.content", i);
        if (content && !json_is(content, json_type_string) && !json_is(content, json_type_array))
            schema_fault(r, path, "expected a string or an array of parts");
        snprintf(path, sizeof path, "messages.%zu.tool_calls", i);
        if (calls && !json_is(calls, json_type_array)) schema_fault(r, path, "expected an array");
    }
}

void chat_prompt_schema(struct schema_report *r, struct json_object *body) {
    static const struct field fields[] = {
        {"messages", FIELD_OBJECTS, true, NULL},
        {"reasoning_effort", FIELD_WORD, false, efforts},
        {"add_generation_prompt", FIELD_BOOL, false, NULL},
        {"continue_final_message", FIELD_BOOL, false, NULL},
        {"documents", FIELD_OBJECTS, false, NULL},
        {"chat_template", FIELD_STRING, false, NULL},
        {"chat_template_kwargs", FIELD_OBJECT, false, NULL},
    };
    schema_check(r, body, fields, sizeof fields / sizeof *fields);
    struct json_object *messages = json_get(body, "messages"), *documents;
    if (json_is(messages, json_type_array)) check_messages(r, messages);
    documents = json_get(body, "documents");
    for (size_t i = 0;
         json_is(documents, json_type_array) && i < json_object_array_length(documents); i++) {
        struct json_object *d = json_object_array_get_idx(documents, i);
        if (!json_is(d, json_type_object)) continue;
        json_object_object_foreach(d, key, value) {
            if (!json_is(value, json_type_string))
                schema_fault(r, "documents", "\"%.40s\" must be a string", key);
        }
    }
}

static bool add_all(struct json_object *to, struct json_object *from) {
    if (!json_is(from, json_type_object)) return true;
    json_object_object_foreach(from, key, value) {
        if (json_object_object_add(to, key, json_object_get(value)) != 0) return false;
    }
    return true;
}

/* Request arguments over the server's. */
static sumi_status merge_kwargs(struct chat_prompt *p, struct json_object *body,
                                const struct server_config *config, sumi_error *err) {
    p->kwargs = json_object_new_object();
    if (!p->kwargs || !add_all(p->kwargs, config->template_kwargs) ||
        !add_all(p->kwargs, json_get(body, "chat_template_kwargs")))
        return NO_MEMORY(err, 64);
    p->request.kwargs = p->kwargs;
    return SUMI_OK;
}

static bool given_true(struct json_object *kwargs, const char *key, bool *given) {
    struct json_object *v = json_get(kwargs, key);
    *given |= v != NULL;
    return v && json_object_get_boolean(v);
}

/* On unless one of the two arguments is given and none of them is true. An effort stands for
 * enable_thinking where that is not given. */
static bool thinking(const struct chat_prompt *p) {
    bool given = false, on = given_true(p->kwargs, "thinking", &given);
    if (!json_get(p->kwargs, "enable_thinking") && p->request.reasoning_effort) {
        given = true;
        on |= strcmp(p->request.reasoning_effort, "none") != 0;
    } else on |= given_true(p->kwargs, "enable_thinking", &given);
    return !given || on;
}

static sumi_status read_template(struct chat_prompt *p, struct json_object *body,
                                 const struct server_config *config, sumi_error *err) {
    struct json_object *text = json_get(body, "chat_template");
    bool inside = json_get(json_get(body, "chat_template_kwargs"), "chat_template") != NULL;
    if ((text || inside) && !config->trust_request_template)
        return fail_param(err, SUMI_ERR_ARG, inside ? "chat_template_kwargs" : "chat_template",
                          "a chat template in a request needs a server started with "
                          "--trust-request-chat-template");
    if (!text) return SUMI_OK;
    sumi_status status = chat_template_parse(&p->own_template, json_object_get_string(text),
                                             (size_t)json_object_get_string_len(text), err);
    if (status == SUMI_OK || status == SUMI_ERR_MEMORY) return status;
    snprintf(err->param, sizeof err->param, "chat_template");
    return err->status = SUMI_ERR_ARG;
}

/* Text that every template shows; an assistant's earlier answers it may leave out. */
static size_t text_bytes(struct json_object *messages) {
    size_t total = 0;
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        struct json_object *m = json_object_array_get_idx(messages, i);
        struct json_object *content = json_get(m, "content");
        if (strcmp(json_object_get_string(json_get(m, "role")), "user") == 0 &&
            json_is(content, json_type_string))
            total += (size_t)json_object_get_string_len(content);
    }
    return total;
}

static sumi_status read_flags(struct chat_prompt *p, struct json_object *body, sumi_error *err) {
    bool add = true, open = false;
    TRY(json_get_bool(body, "continue_final_message", &open, err));
    if (open && !json_get(body, "add_generation_prompt")) add = false;
    TRY(json_get_bool(body, "add_generation_prompt", &add, err));
    if (open && add)
        return fail_param(err, SUMI_ERR_ARG, "continue_final_message",
                          "continue_final_message excludes add_generation_prompt");
    p->request.continue_final_message = open;
    p->request.add_generation_prompt = add;
    return SUMI_OK;
}

sumi_status chat_prompt_read(struct chat_prompt *p, struct json_object *body,
                             const struct server_config *config, bool with_tools, sumi_error *err) {
    *p = (struct chat_prompt){0};
    p->request.messages = json_get(body, "messages");
    if (json_object_array_length(p->request.messages) == 0)
        return fail_param(err, SUMI_ERR_ARG, "messages", "messages must not be empty");
    p->request.tools = with_tools ? json_get(body, "tools") : NULL;
    p->request.documents = json_get(body, "documents");
    struct json_object *effort = json_get(body, "reasoning_effort");
    p->request.reasoning_effort = effort ? json_object_get_string(effort) : NULL;
    TRY(read_flags(p, body, err));
    TRY(merge_kwargs(p, body, config, err));
    p->thinking = thinking(p);
    return read_template(p, body, config, err);
}

sumi_status chat_prompt_check_size(const struct chat_prompt *p, const struct server_config *config,
                                   sumi_error *err) {
    static const struct params no_side = {0};
    const char *none = NULL;
    size_t bytes = text_bytes(p->request.messages);
    return budget_check_text(config, &no_side, &none, &bytes, err);
}

sumi_status chat_prompt_render(const struct chat_prompt *p, const struct server_config *config,
                               struct ids *out, struct buf *text, sumi_error *err) {
    struct prompt_env env = config->prompt;
    if (p->own_template) env.chat_template = p->own_template;
    sumi_status status = prompt_render(&env, &p->request, out, text, err);
    /* A template's own faults are about this request's values, not about its JSON. */
    if (status == SUMI_ERR_FORMAT) status = err->status = SUMI_ERR_ARG;
    return status;
}

void chat_prompt_reset(struct chat_prompt *p) {
    if (p->own_template) chat_template_close(p->own_template);
    json_object_put(p->kwargs);
    *p = (struct chat_prompt){0};
}
