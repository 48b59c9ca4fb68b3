/* How a conversation becomes a prompt and an answer a message: template, parsers by name, sampling
 * defaults. In come options and loaded files; nothing runs here. */
#include <string.h>

#include "base/log.h"
#include "base/option_table.h"
#include "cli/setup.h"

/* Which parsers a model of this family means when none is named. */
static const char *family_parser(const struct model *m) {
    return strcmp(m->family, "flint") == 0 ? "glm47" : NULL;
}

static sumi_status find_parser(const struct options *o, const char *flag, const char *fallback,
                               const struct dialect **out, sumi_error *err) {
    const char *name = opt_string(o, flag);
    *out = NULL;
    if (!name || (!*name && !opt_given(o, flag))) name = fallback;
    if (!name || !*name || strcmp(name, "none") == 0) return SUMI_OK;
    *out = dialect_find(name);
    if (*out) return SUMI_OK;
    return fail_param(err, SUMI_ERR_UNSUPPORTED, flag,
                      "--%s %.100s is not known; the parsers are: %s", flag, name, dialect_names());
}

static sumi_status find_parsers(struct setup *s, sumi_error *err) {
    const struct options *o = s->o;
    bool serve = options_verb(o)->bit == VERB_SERVE;
    const char *fallback = family_parser(s->loaded.model);
    if (serve && (!s->shipped || opt_given(o, "reasoning-parser") ||
                  opt_given(o, "tool-call-parser") || opt_given(o, "enable-auto-tool-choice")))
        fallback = NULL;
    TRY(find_parser(o, "reasoning-parser", fallback, &s->reasoning, err));
    return find_parser(o, "tool-call-parser", fallback, &s->tools, err);
}

static sumi_status parse_template(struct setup *s, sumi_error *err) {
    const struct loaded *l = &s->loaded;
    if (l->chat_template) {
        sumi_status status =
            chat_template_parse(&s->chat_template, l->chat_template, strlen(l->chat_template), err);
        /* A template of the checkpoint that cannot be read only rules out chat. */
        if (status != SUMI_OK && opt_string(s->o, "chat-template")) return status;
        if (status == SUMI_ERR_MEMORY) return status;
        if (status != SUMI_OK)
            log_warning("the model's chat template cannot be used, chat is off: %s",
                        err ? err->msg : "");
    }
    s->prompt = (struct prompt_env){
        .chat_template = s->chat_template, .tokenizer = l->tokenizer, .bos = l->bos, .eos = l->eos};
    return SUMI_OK;
}

static sumi_status add_members(struct json_object *into, struct json_object *from,
                               sumi_error *err) {
    if (!json_is(from, json_type_object)) return SUMI_OK;
    json_object_object_foreach(from, key, value) {
        if (json_object_object_add(into, key, json_object_get(value)) != 0) {
            json_object_put(value);
            return NO_MEMORY(err, 64);
        }
    }
    return SUMI_OK;
}

static sumi_status budget(struct json_object *o, const char *what, int32_t *out, sumi_error *err) {
    int64_t n = 0;
    TRY(json_get_i64(o, "max_new_tokens", &n, err));
    if (n < 0 || n > INT32_MAX)
        return fail_param(err, SUMI_ERR_ARG, "override-generation-config",
                          "%s: max_new_tokens %lld is out of range", what, (long long)n);
    if (n) *out = (int32_t)n;
    return SUMI_OK;
}

/* The checkpoint's defaults under the override. A length that somebody chose here (a folder, the
 * override) is a cap; one that the checkpoint ships with is only a default. */
static sumi_status sampling_defaults(struct setup *s, sumi_error *err) {
    const char *from = opt_string(s->o, "generation-config");
    struct json_object *over = opt_json(s->o, "override-generation-config");
    bool file = strcmp(from, "vllm") != 0, automatic = strcmp(from, "auto") == 0;
    s->sampling = json_object_new_object();
    if (!s->sampling) return NO_MEMORY(err, 64);
    if (file) {
        TRY(add_members(s->sampling, s->loaded.generation, err));
        TRY(budget(s->loaded.generation, "generation_config.json",
                   automatic ? &s->default_max_tokens : &s->max_tokens_cap, err));
    }
    TRY(add_members(s->sampling, over, err));
    return budget(over, "--override-generation-config", &s->max_tokens_cap, err);
}

sumi_status setup_chat(struct setup *s, sumi_error *err) {
    TRY(find_parsers(s, err));
    TRY(parse_template(s, err));
    return sampling_defaults(s, err);
}
