/* The request's messages flow in, messages for a template flow out. It knows the shapes of the API,
 * not the template; media are refused by name. */
#include "chat/message.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "chat/collect.h"
#include "text/template.h"

#define BILLING_HEADER "x-anthropic-billing-header"

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};

/* Text part types: the member that holds the text, and whether null is skipped. */
static const struct {
    const char *type, *member;
    bool skip_null;
} text_parts[] = {{"text", "text", true},
                  {"input_text", "text", false},
                  {"output_text", "text", false},
                  {"refusal", "refusal", true},
                  {"thinking", "thinking", false}};

static const char *const media_parts[] = {
    "image_url",    "input_image",  "image",        "input_audio", "audio_url",    "video_url",
    "image_embeds", "audio_embeds", "video_embeds", "image_pil",   "prompt_embeds"};

enum { N_TEXT = sizeof text_parts / sizeof *text_parts };
enum { N_MEDIA = sizeof media_parts / sizeof *media_parts };

static sumi_status refuse(sumi_error *err, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static sumi_status refuse(sumi_error *err, const char *where, const char *fmt, ...) {
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return fail_param(err, SUMI_ERR_ARG, "messages", "%s: %s", where, why);
}

static const char *type_of(struct json_object *v) {
    return json_type_to_name(json_object_get_type(v));
}

static struct json_object *string_of(const char *s, size_t n, sumi_error *err,
                                     sumi_status *status) {
    struct json_object *v = n <= INT32_MAX ? json_object_new_string_len(s, (int)n) : NULL;
    if (!v) *status = NO_MEMORY(err, n);
    return v;
}

/* Adds a member; the value is given away, also when that fails. */
static sumi_status add(struct json_object *o, const char *key, struct json_object *v,
                       sumi_error *err) {
    if (json_object_object_add(o, key, v) == 0) return SUMI_OK;
    json_object_put(v);
    return NO_MEMORY(err, strlen(key));
}

static sumi_status append(struct json_object *list, struct json_object *v, sumi_error *err) {
    if (json_object_array_add(list, v) == 0) return SUMI_OK;
    json_object_put(v);
    return NO_MEMORY(err, sizeof v);
}

static sumi_status make(struct json_object *v, struct json_object **out, sumi_error *err) {
    *out = v;
    return v ? SUMI_OK : NO_MEMORY(err, sizeof(void *));
}

/* ---- content ---- */

/* The text of a text part, without the line that only bills; NULL: the part says nothing. */
struct part {
    const char *text;
    size_t n;
};

static void drop_billing_line(struct part *p) {
    if (!p->text || p->n < strlen(BILLING_HEADER) ||
        memcmp(p->text, BILLING_HEADER, strlen(BILLING_HEADER)) != 0)
        return;
    const char *line = memchr(p->text, '\n', p->n);
    p->n = line ? p->n - (size_t)(line + 1 - p->text) : 0;
    p->text = p->n ? line + 1 : NULL;
}

static void list_types(char *out, size_t n) {
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < N_TEXT + N_MEDIA && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%s", i ? ", " : "",
                               i < N_TEXT ? text_parts[i].type : media_parts[i - N_TEXT]);
}

/* The type of a part: its own, or that of a known member when it names none. */
static const char *part_type(struct json_object *part) {
    struct json_object *type = json_get(part, "type");
    if (type) return json_is(type, json_type_string) ? json_object_get_string(type) : NULL;
    for (size_t i = 0; i < N_TEXT; i++)
        if (json_object_object_get_ex(part, text_parts[i].type, NULL)) return text_parts[i].type;
    for (size_t i = 0; i < N_MEDIA; i++)
        if (json_object_object_get_ex(part, media_parts[i], NULL)) return media_parts[i];
    return NULL;
}

static sumi_status refuse_part(const char *type, const char *where, sumi_error *err) {
    char known[256];
    for (size_t i = 0; type && i < N_MEDIA; i++)
        if (!strcmp(type, media_parts[i]))
            return refuse(err, where,
                          "a content part of type \"%s\", but this model reads text only", type);
    list_types(known, sizeof known);
    if (!type) return refuse(err, where, "a content part needs a type, one of: %s", known);
    return refuse(err, where, "unknown content part type \"%.64s\"; known types are: %s", type,
                  known);
}

static sumi_status read_part(struct json_object *v, const char *where, struct part *out,
                             sumi_error *err) {
    *out = (struct part){0};
    struct json_object *text = v;
    if (!json_is(v, json_type_string)) {
        if (!json_is(v, json_type_object))
            return refuse(err, where, "expected a content part (an object or a string), found %s",
                          type_of(v));
        const char *type = part_type(v);
        size_t i = 0;
        while (i < N_TEXT && (!type || strcmp(type, text_parts[i].type) != 0)) i++;
        if (i == N_TEXT) return refuse_part(type, where, err);
        text = json_get(v, text_parts[i].member);
        if (!text && text_parts[i].skip_null) return SUMI_OK;
        if (!json_is(text, json_type_string))
            return refuse(err, where, "expected a string in \"%s\", found %s", text_parts[i].member,
                          type_of(text));
    }
    out->text = json_object_get_string(text);
    out->n = (size_t)json_object_get_string_len(text);
    return SUMI_OK;
}

/* What content becomes: parts are appended to a list, or to one string. */
struct content {
    struct json_object *list; /* NULL: a string is wanted */
    struct buf text;
    bool bills; /* a system message: see drop_billing_line */
};

static sumi_status put_part(struct content *c, struct part p, sumi_error *err) {
    if (c->bills) drop_billing_line(&p);
    if (!p.text) return SUMI_OK;
    if (!c->list) {
        if (c->text.len && p.n) buf_putc(&c->text, '\n');
        buf_put(&c->text, p.text, p.n);
        return c->text.failed ? NO_MEMORY(err, p.n) : SUMI_OK;
    }
    struct json_object *o;
    sumi_status status = SUMI_OK;
    TRY(make(json_object_new_object(), &o, err));
    TRY_OUT(add(o, "type", string_of("text", 4, err, &status), err));
    TRY_OUT(status);
    TRY_OUT(add(o, "text", string_of(p.text, p.n, err, &status), err));
    TRY_OUT(status);
    return append(c->list, o, err);
out:
    json_object_put(o);
    return status;
}

static sumi_status put_content(struct content *c, struct json_object *v, const char *where,
                               sumi_error *err) {
    struct part p;
    if (!v) return SUMI_OK;
    if (json_is(v, json_type_string)) {
        TRY(read_part(v, where, &p, err));
        return put_part(c, p, err);
    }
    if (!json_is(v, json_type_array))
        return refuse(err, where, "expected a string, null or a list of parts, found %s",
                      type_of(v));
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        char at[96];
        snprintf(at, sizeof at, "%s[%zu]", where, i);
        TRY(read_part(json_object_array_get_idx(v, i), at, &p, err));
        TRY(put_part(c, p, err));
    }
    return SUMI_OK;
}

static sumi_status add_content(struct json_object *o, struct json_object *v, const char *role,
                               bool parts, const char *where, sumi_error *err) {
    struct content c = {.bills = !strcmp(role, "system") || !strcmp(role, "developer")};
    char at[64];
    snprintf(at, sizeof at, "%s.content", where);
    if (parts && strcmp(role, "tool") != 0) TRY(make(json_object_new_array(), &c.list, err));
    sumi_status status = put_content(&c, v, at, err);
    if (status == SUMI_OK && !c.list)
        c.list = string_of(buf_text(&c.text), c.text.len, err, &status);
    buf_reset(&c.text);
    if (status == SUMI_OK) return add(o, "content", c.list, err);
    json_object_put(c.list);
    return status;
}

/* ---- tool calls ---- */

static sumi_status read_arguments(struct json_object *v, const char *where,
                                  struct json_object **out, sumi_error *err) {
    if (json_is(v, json_type_object)) return make(json_object_get(v), out, err);
    if (!v) return make(json_object_new_object(), out, err);
    if (!json_is(v, json_type_string))
        return refuse(err, where, "expected a JSON object or its text, found %s", type_of(v));
    const char *text = json_object_get_string(v);
    size_t n = (size_t)json_object_get_string_len(v);
    if (chat_is_blank(text, n)) return make(json_object_new_object(), out, err);
    sumi_error why = {0};
    sumi_status status = json_parse(out, text, n, where, &why);
    if (status == SUMI_ERR_MEMORY) return NO_MEMORY(err, n);
    if (status != SUMI_OK) return fail_param(err, SUMI_ERR_ARG, "messages", "%s", why.msg);
    if (!*out) return make(json_object_new_object(), out, err);
    if (json_is(*out, json_type_object)) return SUMI_OK;
    status = refuse(err, where, "expected the text of a JSON object, found %s", type_of(*out));
    json_object_put(*out);
    *out = NULL;
    return status;
}

/* A copy of `from` without its null members and without the member `except`. */
static sumi_status copy_members(struct json_object *to, struct json_object *from,
                                const char *const *except, sumi_error *err) {
    json_object_object_foreach(from, key, v) {
        const char *const *e = except;
        while (*e && strcmp(*e, key) != 0) e++;
        if (!*e && v) TRY(add(to, key, json_object_get(v), err));
    }
    return SUMI_OK;
}

static sumi_status add_function(struct json_object *call, struct json_object *function,
                                const char *where, sumi_error *err) {
    static const char *const except[] = {"arguments", NULL};
    struct json_object *copy, *arguments;
    char at[160];
    if (!json_is(json_get(function, "name"), json_type_string))
        return refuse(err, where,
                      "expected a function with a name (calls of other types are not "
                      "supported)");
    snprintf(at, sizeof at, "%s.function.arguments", where);
    TRY(make(json_object_new_object(), &copy, err));
    sumi_status status = copy_members(copy, function, except, err);
    if (status == SUMI_OK)
        status = read_arguments(json_get(function, "arguments"), at, &arguments, err);
    if (status == SUMI_OK) status = add(copy, "arguments", arguments, err);
    if (status == SUMI_OK) return add(call, "function", copy, err);
    json_object_put(copy);
    return status;
}

static sumi_status add_call(struct json_object *list, struct json_object *call, const char *where,
                            sumi_error *err) {
    static const char *const except[] = {"function", NULL};
    struct json_object *copy, *type = json_get(call, "type");
    if (!json_is(call, json_type_object))
        return refuse(err, where, "expected an object, found %s", type_of(call));
    if (type &&
        (!json_is(type, json_type_string) || strcmp(json_object_get_string(type), "function") != 0))
        return refuse(err, where, "only calls of type \"function\" are supported");
    TRY(make(json_object_new_object(), &copy, err));
    sumi_status status = copy_members(copy, call, except, err);
    if (status == SUMI_OK) status = add_function(copy, json_get(call, "function"), where, err);
    if (status == SUMI_OK) return append(list, copy, err);
    json_object_put(copy);
    return status;
}

static sumi_status add_calls(struct json_object *o, struct json_object *calls, const char *where,
                             sumi_error *err) {
    struct json_object *list;
    char at[96];
    if (calls && !json_is(calls, json_type_array))
        return refuse(err, where, "tool_calls: expected a list, found %s", type_of(calls));
    if (!calls || !json_object_array_length(calls)) return SUMI_OK;
    TRY(make(json_object_new_array(), &list, err));
    sumi_status status = SUMI_OK;
    for (size_t i = 0; i < json_object_array_length(calls) && status == SUMI_OK; i++) {
        snprintf(at, sizeof at, "%s.tool_calls[%zu]", where, i);
        status = add_call(list, json_object_array_get_idx(calls, i), at, err);
    }
    if (status == SUMI_OK) return add(o, "tool_calls", list, err);
    json_object_put(list);
    return status;
}

/* ---- messages ---- */

static sumi_status add_role(struct json_object *o, const char *role, sumi_error *err) {
    sumi_status status = SUMI_OK;
    struct json_object *v = string_of(role, strlen(role), err, &status);
    TRY(status);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i])) chat_template_trust(v);
    return add(o, "role", v, err);
}

static sumi_status add_reasoning(struct json_object *o, struct json_object *message,
                                 const char *where, sumi_error *err) {
    struct json_object *v = json_get(message, "reasoning");
    if (!v) v = json_get(message, "reasoning_content");
    if (!v) return SUMI_OK;
    if (!json_is(v, json_type_string))
        return refuse(err, where, "reasoning: expected a string, found %s", type_of(v));
    TRY(add(o, "reasoning", json_object_get(v), err));
    return add(o, "reasoning_content", json_object_get(v), err);
}

static sumi_status fill(struct json_object *o, struct json_object *message,
                        const struct message_form *form, const char *where, sumi_error *err) {
    static const char *const assistant[] = {"role",      "content",           "tool_calls",
                                            "reasoning", "reasoning_content", NULL};
    static const char *const others[] = {"role", "content", NULL};
    const char *role = json_object_get_string(json_get(message, "role"));
    bool answers = !strcmp(role, "assistant");
    if (form->no_developer && !strcmp(role, "developer")) role = "system";
    TRY(add_role(o, role, err));
    TRY(add_content(o, json_get(message, "content"), role, form->parts, where, err));
    if (answers) {
        TRY(add_reasoning(o, message, where, err));
        TRY(add_calls(o, json_get(message, "tool_calls"), where, err));
    }
    return copy_members(o, message, answers ? assistant : others, err);
}

static sumi_status prepare(struct json_object *list, struct json_object *message,
                           const struct message_form *form, const char *where, sumi_error *err) {
    struct json_object *o;
    if (!json_is(message, json_type_object))
        return refuse(err, where, "expected an object, found %s", type_of(message));
    if (!json_is(json_get(message, "role"), json_type_string))
        return refuse(err, where, "role: expected a string, found %s",
                      type_of(json_get(message, "role")));
    TRY(make(json_object_new_object(), &o, err));
    sumi_status status = fill(o, message, form, where, err);
    if (status == SUMI_OK) return append(list, o, err);
    json_object_put(o);
    return status;
}

sumi_status messages_prepare(struct json_object *messages, const struct message_form *form,
                             struct json_object **out, sumi_error *err) {
    *out = NULL;
    if (!json_is(messages, json_type_array))
        return refuse(err, "messages", "expected a list, found %s", type_of(messages));
    if (!json_object_array_length(messages))
        return refuse(err, "messages", "expected at least one message, found none");
    struct json_object *list;
    TRY(make(json_object_new_array(), &list, err));
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        char where[48];
        snprintf(where, sizeof where, "messages[%zu]", i);
        sumi_status status =
            prepare(list, json_object_array_get_idx(messages, i), form, where, err);
        if (status != SUMI_OK) {
            json_object_put(list);
            return status;
        }
    }
    *out = list;
    return SUMI_OK;
}
