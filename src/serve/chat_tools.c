/* `tools` and `tool_choice` in, rules for prompt and parser out. */
#include <stdio.h>
#include <string.h>

#include "serve/chat.h"

static bool is_text(struct json_object *v) {
    return json_is(v, json_type_string) && json_object_get_string_len(v) > 0;
}

void tool_schema(struct schema_report *r, struct json_object *body) {
    static const struct field fields[] = {{"tools", FIELD_OBJECTS, false, NULL},
                                          {"tool_choice", FIELD_STRING_OR_OBJECT, false, NULL},
                                          {"parallel_tool_calls", FIELD_BOOL, false, NULL}};
    schema_check(r, body, fields, sizeof fields / sizeof *fields);
    struct json_object *tools = json_get(body, "tools");
    for (size_t i = 0; json_is(tools, json_type_array) && i < json_object_array_length(tools);
         i++) {
        struct json_object *tool = json_object_array_get_idx(tools, i);
        struct json_object *type = json_get(tool, "type"), *function = json_get(tool, "function");
        char path[64];
        if (!json_is(tool, json_type_object)) continue;
        snprintf(path, sizeof path, "tools.%zu.function.name", i);
        if (!is_text(json_get(function, "name")))
            schema_fault(r, path, "a tool needs a function with a name");
        struct json_object *parameters = json_get(function, "parameters");
        snprintf(path, sizeof path, "tools.%zu.function.parameters", i);
        if (parameters && !json_is(parameters, json_type_object))
            schema_fault(r, path, "expected an object (a JSON schema)");
        snprintf(path, sizeof path, "tools.%zu.type", i);
        if (type && (!is_text(type) || strcmp(json_object_get_string(type), "function") != 0))
            schema_fault(r, path, "expected \"function\"");
    }
}

static bool names_tool(struct json_object *tools, const char *name) {
    for (size_t i = 0; i < json_object_array_length(tools); i++) {
        struct json_object *f = json_get(json_object_array_get_idx(tools, i), "function");
        if (strcmp(json_object_get_string(json_get(f, "name")), name) == 0) return true;
    }
    return false;
}

static sumi_status refuse(sumi_error *err, const char *why) {
    return fail_param(err, SUMI_ERR_ARG, "tool_choice", "tool_choice %s", why);
}

/* {"type":"function","function":{"name":...}} */
static sumi_status check_named(struct json_object *choice, struct json_object *tools,
                               sumi_error *err) {
    struct json_object *name = json_get(json_get(choice, "function"), "name");
    if (!is_text(name))
        return refuse(err, "must be none, auto, required or {\"type\":\"function\",\"function\":"
                           "{\"name\":...}}");
    if (!names_tool(tools, json_object_get_string(name)))
        return fail_param(err, SUMI_ERR_ARG, "tool_choice",
                          "tool_choice names \"%.100s\", which is not among the tools",
                          json_object_get_string(name));
    return SUMI_OK;
}

static sumi_status read_choice(struct tool_rules *t, struct json_object *choice,
                               const struct server_config *config, sumi_error *err) {
    bool text = json_is(choice, json_type_string);
    const char *word = text ? json_object_get_string(choice) : "";
    bool none = text && strcmp(word, "none") == 0;
    if (choice && !none && !t->list) return refuse(err, "needs tools");
    if (!t->list || none) {
        t->drop = true;
        t->in_prompt = !none || !config->exclude_tools_when_none;
        return SUMI_OK;
    }
    if (!choice || (text && strcmp(word, "auto") == 0)) {
        if (!config->auto_tool_choice || !config->tools)
            return refuse(err, "\"auto\" (the default with tools) needs a server started with "
                               "--enable-auto-tool-choice and --tool-call-parser");
        return SUMI_OK;
    }
    t->forced = true;
    if (!text) {
        t->named = true;
        TRY(check_named(choice, t->list, err));
    } else if (strcmp(word, "required") != 0) return refuse(err, "must be none, auto or required");
    if (!config->tools)
        return refuse(err, "other than \"auto\" and \"none\" needs a server started with "
                           "--tool-call-parser");
    return SUMI_OK;
}

sumi_status tool_rules_read(struct tool_rules *t, struct json_object *body,
                            const struct server_config *config, sumi_error *err) {
    bool parallel = true;
    *t = (struct tool_rules){.list = json_get(body, "tools"), .in_prompt = true};
    if (t->list && json_object_array_length(t->list) == 0)
        return fail_param(err, SUMI_ERR_ARG, "tools", "tools must not be empty; leave it out");
    TRY(json_get_bool(body, "parallel_tool_calls", &parallel, err));
    t->single = !parallel;
    return read_choice(t, json_get(body, "tool_choice"), config, err);
}
