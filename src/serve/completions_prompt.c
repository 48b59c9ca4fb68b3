/* The `prompt` of a completion request in, token ids per prompt out. */
#include "serve/completions_prompt.h"

#include "base/mem.h"
#include "serve/budget.h"

void prompts_reset(struct prompts *p) {
    for (size_t i = 0; i < p->n; i++) mem_free(p->ids[i].data);
    mem_free(p->ids);
    mem_free(p->text);
}

sumi_status prompts_refuse(sumi_error *err, const char *why) {
    return fail_param(err, SUMI_ERR_ARG, "prompt", "prompt %s", why);
}

/* What an array holds decides what it is: strings, ids of one prompt, or arrays of ids. */
static json_type items(struct json_object *array) {
    json_type type = json_object_get_type(json_object_array_get_idx(array, 0));
    return type == json_type_double ? json_type_int : type;
}

static bool well_typed(struct json_object *prompt) {
    if (json_is(prompt, json_type_string)) return true;
    if (!json_is(prompt, json_type_array)) return false;
    json_type type = json_object_array_length(prompt) ? items(prompt) : json_type_string;
    for (size_t i = 0; i < json_object_array_length(prompt); i++) {
        struct json_object *item = json_object_array_get_idx(prompt, i);
        int64_t id;
        bool fits = type == json_type_int ? schema_int(item, &id) == SUMI_OK
                                          : json_object_get_type(item) == type;
        for (size_t k = 0; type == json_type_array && fits && k < json_object_array_length(item);
             k++)
            fits = schema_int(json_object_array_get_idx(item, k), &id) == SUMI_OK;
        if (!fits) return false;
    }
    return type == json_type_string || type == json_type_int || type == json_type_array;
}

sumi_status prompts_schema(struct json_object *body, sumi_error *err) {
    struct schema_report report = {0};
    struct json_object *prompt = json_get(body, "prompt");
    if (prompt && !well_typed(prompt))
        schema_fault(&report, "prompt",
                     "expected a string, an array of strings, of token ids, or of arrays of ids");
    static const struct field own[] = {{"suffix", FIELD_STRING, false, NULL}};
    schema_check(&report, body, own, 1);
    params_schema(&report, API_COMPLETION, body);
    return schema_result(&report, err);
}

static sumi_status take_ids(const struct tokenizer *t, struct json_object *list, struct ids *out,
                            sumi_error *err) {
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        int64_t id = -1;
        schema_int(json_object_array_get_idx(list, i), &id);
        if (id < 0 || id >= tokenizer_size(t) || !tokenizer_has(t, (int32_t)id))
            return fail_param(err, SUMI_ERR_ARG, "prompt",
                              "prompt: token id %lld is not in the vocabulary of %d ids",
                              (long long)id, tokenizer_size(t));
        if (!ids_push(out, (int32_t)id)) return NO_MEMORY(err, sizeof id);
    }
    return out->n ? SUMI_OK : prompts_refuse(err, "must not be empty");
}

static sumi_status take_text(const struct server_config *config, const struct params *params,
                             struct json_object *text, struct ids *out, sumi_error *err) {
    const char *p = json_object_get_string(text);
    size_t n = (size_t)json_object_get_string_len(text);
    if (!n) return prompts_refuse(err, "must not be empty");
    TRY(budget_check_text(config, params, &p, &n, err));
    return tokenizer_encode(config->tokenizer, p, n, NULL, true, out, err);
}

static sumi_status open_prompts(struct prompts *p, size_t n, sumi_error *err) {
    p->ids = mem_zero(n, sizeof *p->ids);
    p->text = mem_zero(n, sizeof *p->text);
    if (!p->ids || !p->text) return NO_MEMORY(err, n * sizeof *p->ids);
    p->n = n;
    return SUMI_OK;
}

sumi_status prompts_read(const struct server_config *config, const struct params *params,
                         struct json_object *body, struct prompts *p, sumi_error *err) {
    struct json_object *prompt = json_get(body, "prompt");
    size_t n = json_is(prompt, json_type_array) ? json_object_array_length(prompt) : 1;
    if (!prompt || !n) return prompts_refuse(err, "is required and must not be empty");
    json_type type = json_is(prompt, json_type_array) ? items(prompt) : json_type_string;
    bool one = type == json_type_int || json_is(prompt, json_type_string);
    if (!one && n > (size_t)config->max_prompts)
        return fail_param(err, SUMI_ERR_ARG, "prompt", "%zu prompts; at most %d are taken", n,
                          config->max_prompts);
    TRY(open_prompts(p, one ? 1 : n, err));
    for (size_t i = 0; i < p->n; i++) {
        struct json_object *item = one ? prompt : json_object_array_get_idx(prompt, i);
        if (type == json_type_string) {
            p->text[i] = item;
            TRY(take_text(config, params, item, &p->ids[i], err));
        } else TRY(take_ids(config->tokenizer, item, &p->ids[i], err));
    }
    return SUMI_OK;
}
