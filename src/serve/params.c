/* A request body in, sampling parameters and options out; each fault names its field. It does not
 * know prompts: the output budget is settled later (budget.h). */
#include "serve/params.h"

#include <string.h>

#include "base/log.h"
#include "base/size.h"
#include "text/tokenizer.h"

static const struct field common[] = {
    {"model", FIELD_STRING, false, NULL},
    {"frequency_penalty", FIELD_NUMBER, false, NULL},
    {"presence_penalty", FIELD_NUMBER, false, NULL},
    {"repetition_penalty", FIELD_NUMBER, false, NULL},
    {"temperature", FIELD_NUMBER, false, NULL},
    {"top_p", FIELD_NUMBER, false, NULL},
    {"top_k", FIELD_INT, false, NULL},
    {"min_p", FIELD_NUMBER, false, NULL},
    {"logit_bias", FIELD_NUMBERS_BY_KEY, false, NULL},
    {"max_tokens", FIELD_INT, false, NULL},
    {"n", FIELD_INT, false, NULL},
    {"seed", FIELD_INT, false, NULL},
    {"stop", FIELD_STRING_OR_STRINGS, false, NULL},
    {"stream", FIELD_BOOL, false, NULL},
    {"stream_options", FIELD_OBJECT, false, NULL},
    {"user", FIELD_STRING, false, NULL},
    {"use_beam_search", FIELD_BOOL, false, NULL},
    {"length_penalty", FIELD_NUMBER, false, NULL},
    {"stop_token_ids", FIELD_INTS, false, NULL},
    {"include_stop_str_in_output", FIELD_BOOL, false, NULL},
    {"ignore_eos", FIELD_BOOL, false, NULL},
    {"min_tokens", FIELD_INT, false, NULL},
    {"skip_special_tokens", FIELD_BOOL, false, NULL},
    {"spaces_between_special_tokens", FIELD_BOOL, false, NULL},
    {"bad_words", FIELD_STRINGS, false, NULL},
    {"allowed_token_ids", FIELD_INTS, false, NULL},
    {"truncate_prompt_tokens", FIELD_INT, false, NULL},
    {"truncation_side", FIELD_WORD, false, "left, right"},
    {"prompt_logprobs", FIELD_INT, false, NULL},
    {"logprob_token_ids", FIELD_INTS, false, NULL},
    {"echo", FIELD_BOOL, false, NULL},
    {"add_special_tokens", FIELD_BOOL, false, NULL},
    {"response_format", FIELD_OBJECT, false, NULL},
    {"structured_outputs", FIELD_OBJECT, false, NULL},
    {"media_io_kwargs", FIELD_OBJECT, false, NULL},
    {"mm_processor_kwargs", FIELD_OBJECT, false, NULL},
    {"priority", FIELD_INT, false, NULL},
    {"request_id", FIELD_STRING, false, NULL},
    {"session_id", FIELD_STRING, false, NULL},
    {"return_tokens_as_token_ids", FIELD_BOOL, false, NULL},
    {"return_token_ids", FIELD_BOOL, false, NULL},
    {"cache_salt", FIELD_STRING, false, NULL},
    {"vllm_xargs", FIELD_OBJECT, false, NULL},
    {"kv_transfer_params", FIELD_OBJECT, false, NULL},
    {"repetition_detection", FIELD_OBJECT, false, NULL},
    {"stream_interval", FIELD_INT, false, NULL},
};

static const struct field stream_options[] = {
    {"include_usage", FIELD_BOOL, false, NULL},
    {"continuous_usage_stats", FIELD_BOOL, false, NULL},
};

static bool plain_value(struct json_object *v) {
    return json_is(v, json_type_string) || json_is(v, json_type_int) ||
           json_is(v, json_type_double);
}

/* Values are strings, numbers or arrays of those. */
static void check_xargs(struct schema_report *r, struct json_object *xargs) {
    if (!json_is(xargs, json_type_object)) return;
    json_object_object_foreach(xargs, key, value) {
        bool fits = plain_value(value);
        if (json_is(value, json_type_array)) {
            fits = true;
            for (size_t i = 0; i < json_object_array_length(value); i++)
                fits &= plain_value(json_object_array_get_idx(value, i));
        }
        if (!fits)
            schema_fault(r, "vllm_xargs",
                         "\"%.40s\" must be a string, a number or an array of those", key);
    }
}

static void check_format(struct schema_report *r, struct json_object *body) {
    static const struct field fields[] = {
        {"type", FIELD_WORD, true, "text, json_object, json_schema, structural_tag"}};
    struct json_object *format = json_get(body, "response_format");
    if (!json_is(format, json_type_object)) return;
    struct schema_report inner = {0};
    schema_check(&inner, format, fields, 1);
    if (inner.n) schema_fault(r, "response_format.type", "expected one of %s", fields[0].words);
    buf_reset(&inner.lines);
}

void params_schema(struct schema_report *r, enum api_kind api, struct json_object *body) {
    static const struct field chat[] = {{"logprobs", FIELD_BOOL, false, NULL},
                                        {"top_logprobs", FIELD_INT, false, NULL},
                                        {"max_completion_tokens", FIELD_INT, false, NULL}};
    static const struct field completion[] = {{"logprobs", FIELD_INT, false, NULL}};
    schema_check(r, body, common, sizeof common / sizeof *common);
    if (api == API_CHAT) schema_check(r, body, chat, sizeof chat / sizeof *chat);
    else schema_check(r, body, completion, 1);
    if (json_is(json_get(body, "stream_options"), json_type_object)) {
        struct schema_report inner = {0};
        schema_check(&inner, json_get(body, "stream_options"), stream_options, 2);
        if (inner.n) schema_fault(r, "stream_options", "its members must be true or false");
        buf_reset(&inner.lines);
    }
    check_xargs(r, json_get(body, "vllm_xargs"));
    check_format(r, body);
}

void params_reset(struct params *p) {
    arena_reset(&p->memory);
    *p = (struct params){0};
}

static sumi_status rule(sumi_error *err, const char *field, const char *what) {
    return fail_param(err, SUMI_ERR_ARG, field, "%s %s", field, what);
}

static sumi_status get_float(struct json_object *o, const char *key, float *out, sumi_error *err) {
    double v = (double)*out;
    TRY(json_get_f64(o, key, &v, err));
    *out = (float)v;
    return SUMI_OK;
}

static sumi_status get_i32(struct json_object *o, const char *key, int32_t *out, sumi_error *err) {
    int64_t v = *out;
    TRY(json_get_i64(o, key, &v, err));
    if (v < INT32_MIN || v > INT32_MAX) return rule(err, key, "does not fit 32 bits");
    *out = (int32_t)v;
    return SUMI_OK;
}

/* Numbers of the request over those of the server over the built-in ones: called once for each. */
static sumi_status read_sampling(struct sampling *s, struct json_object *o, sumi_error *err) {
    TRY(get_float(o, "temperature", &s->temperature, err));
    TRY(get_float(o, "top_p", &s->top_p, err));
    TRY(get_float(o, "min_p", &s->min_p, err));
    TRY(get_i32(o, "top_k", &s->top_k, err));
    TRY(get_float(o, "presence_penalty", &s->presence_penalty, err));
    TRY(get_float(o, "frequency_penalty", &s->frequency_penalty, err));
    TRY(get_float(o, "repetition_penalty", &s->repetition_penalty, err));
    return json_get_bool(o, "skip_special_tokens", &s->skip_special, err);
}

static sumi_status not_built(sumi_error *err, const char *field) {
    return fail_param(err, SUMI_ERR_UNSUPPORTED, field,
                      "%s is not supported yet; leave the field out", field);
}

/* Fields that would change the answer and are not built: refused by name, never ignored. */
static sumi_status refuse_unbuilt(struct json_object *body, sumi_error *err) {
    struct json_object *format = json_get(json_get(body, "response_format"), "type");
    if (format && strcmp(json_object_get_string(format), "text") != 0)
        return fail_param(err, SUMI_ERR_UNSUPPORTED, "response_format",
                          "response_format of type %s is not supported yet",
                          json_object_get_string(format));
    struct json_object *outputs = json_get(body, "structured_outputs");
    if (outputs && json_object_object_length(outputs)) return not_built(err, "structured_outputs");
    if (json_object_get_boolean(json_get(body, "use_beam_search")))
        return not_built(err, "use_beam_search");
    if (json_get(body, "repetition_detection")) return not_built(err, "repetition_detection");
    static const char *const media[] = {"media_io_kwargs", "mm_processor_kwargs"};
    for (int i = 0; i < 2; i++) {
        struct json_object *o = json_get(body, media[i]);
        if (o && json_object_object_length(o))
            return rule(err, media[i],
                        "is refused: this server takes no media settings from "
                        "requests");
    }
    static const char *const guided[] = {"guided_json", "guided_regex", "guided_choice",
                                         "guided_grammar"};
    for (size_t i = 0; i < sizeof guided / sizeof *guided; i++)
        if (json_get(body, guided[i]))
            log_warning("%s is no field of this API: the output is not constrained", guided[i]);
    return SUMI_OK;
}

/* A thinking budget; what a number means is not built, -1 is the default. */
static sumi_status check_thinking(struct json_object *body, const struct server_config *config,
                                  sumi_error *err) {
    struct json_object *v = json_get(body, "thinking_token_budget");
    int64_t budget = -1;
    if (!v) return SUMI_OK;
    if (!json_is(v, json_type_int)) return rule(err, "thinking_token_budget", "must be an integer");
    TRY(json_get_i64(body, "thinking_token_budget", &budget, err));
    if (budget < -1) return rule(err, "thinking_token_budget", "must be -1 or more");
    if (!config->reasoning)
        return rule(err, "thinking_token_budget", "needs a server with --reasoning-parser");
    return budget < 0 ? SUMI_OK : not_built(err, "thinking_token_budget");
}

/* A number of logprobs: -1 is the whole vocabulary, `cap` -1 no limit. */
static sumi_status logprobs_count(int64_t k, const char *field, const char *cap_field,
                                  const struct server_config *config, int32_t *out,
                                  sumi_error *err) {
    int32_t vocab = tokenizer_size(config->tokenizer), cap = config->max_logprobs;
    if (k < -1) return rule(err, field, "must be -1 or more");
    if (cap >= 0 && (k < 0 || k > cap))
        return fail_param(err, SUMI_ERR_ARG, cap_field,
                          "%s asks for %s%lld logprobs; this server returns at most %d "
                          "(--max-logprobs)",
                          field, k < 0 ? "all: " : "", (long long)(k < 0 ? vocab : k), cap);
    *out = k < 0 || k > vocab ? vocab : (int32_t)k;
    return SUMI_OK;
}

static sumi_status read_chat_logprobs(struct params *p, struct json_object *body,
                                      const struct server_config *config, sumi_error *err) {
    bool wanted = false;
    int64_t k = 0;
    TRY(json_get_bool(body, "logprobs", &wanted, err));
    TRY(json_get_i64(body, "top_logprobs", &k, err));
    if (k < -1) return rule(err, "top_logprobs", "must be -1 or more");
    if (k && !wanted) return rule(err, "top_logprobs", "needs logprobs: true");
    if (!wanted) return SUMI_OK;
    return logprobs_count(k, "top_logprobs", "logprobs", config, &p->sampling.n_logprobs, err);
}

static sumi_status read_logprobs(struct params *p, enum api_kind api, struct json_object *body,
                                 const struct server_config *config, sumi_error *err) {
    int64_t k = 0;
    if (api == API_CHAT) TRY(read_chat_logprobs(p, body, config, err));
    else if (json_get(body, "logprobs")) {
        TRY(json_get_i64(body, "logprobs", &k, err));
        TRY(logprobs_count(k, "logprobs", "logprobs", config, &p->sampling.n_logprobs, err));
    }
    if (!json_get(body, "prompt_logprobs")) return SUMI_OK;
    TRY(json_get_i64(body, "prompt_logprobs", &k, err));
    if (p->stream && (k > 0 || k == -1))
        return rule(err, "prompt_logprobs", "is not available when streaming");
    return logprobs_count(k, "prompt_logprobs", "prompt_logprobs", config,
                          &p->sampling.n_prompt_logprobs, err);
}

static sumi_status read_stream(struct params *p, struct json_object *body,
                               const struct server_config *config, sumi_error *err) {
    struct json_object *options = json_get(body, "stream_options");
    int64_t interval = 1;
    TRY(json_get_bool(body, "stream", &p->stream, err));
    if (options && !p->stream && json_object_object_length(options))
        return rule(err, "stream_options", "needs stream: true");
    TRY(json_get_bool(options, "include_usage", &p->include_usage, err));
    TRY(json_get_bool(options, "continuous_usage_stats", &p->continuous_usage, err));
    if (!p->include_usage) p->continuous_usage = false;
    if (config->force_include_usage) p->include_usage = p->continuous_usage = true;
    TRY(json_get_i64(body, "stream_interval", &interval, err));
    if (interval < 1) return rule(err, "stream_interval", "must be 1 or more");
    p->stream_interval = (int32_t)min_i64(max_i64(interval, config->stream_interval), INT32_MAX);
    return SUMI_OK;
}

static sumi_status read_budget(struct params *p, enum api_kind api, struct json_object *body,
                               sumi_error *err) {
    p->budget_field = "max_tokens";
    if (api == API_CHAT && json_get(body, "max_completion_tokens"))
        p->budget_field = "max_completion_tokens";
    p->has_budget = json_get(body, p->budget_field) != NULL;
    TRY(json_get_i64(body, p->budget_field, &p->budget, err));
    if (api == API_COMPLETION && !p->has_budget) {
        p->has_budget = true;
        p->budget = 16;
    }
    p->has_truncate = json_get(body, "truncate_prompt_tokens") != NULL;
    TRY(json_get_i64(body, "truncate_prompt_tokens", &p->truncate, err));
    if (p->has_truncate && p->truncate < -1)
        return rule(err, "truncate_prompt_tokens", "must be -1 or more");
    struct json_object *side = json_get(body, "truncation_side");
    if (side) p->side = json_object_get_string(side)[0] == 'l' ? CUT_LEFT : CUT_RIGHT;
    return SUMI_OK;
}

static sumi_status read_seed(struct params *p, struct json_object *body, sumi_error *err) {
    int64_t seed = -1;
    TRY(json_get_i64(body, "seed", &seed, err));
    p->sampling.has_seed = seed != -1;
    p->sampling.seed = (uint64_t)seed;
    return SUMI_OK;
}

static sumi_status read_n(struct params *p, struct json_object *body,
                          const struct server_config *config, sumi_error *err) {
    int64_t n = 1;
    TRY(json_get_i64(body, "n", &n, err));
    if (n < 1 || n > config->max_n)
        return fail_param(err, SUMI_ERR_ARG, "n", "n must be 1 to %d", config->max_n);
    if (n > 1 && p->sampling.temperature == 0)
        return rule(err, "n", "must be 1 with greedy sampling (temperature 0)");
    p->n = (int32_t)n;
    return SUMI_OK;
}

static sumi_status check_salt(struct json_object *body, sumi_error *err) {
    struct json_object *v = json_get(body, "cache_salt");
    if (!v) return SUMI_OK;
    const char *s = json_object_get_string(v);
    size_t n = (size_t)json_object_get_string_len(v);
    if (n == 0 || n > 128) return rule(err, "cache_salt", "must have 1 to 128 characters");
    if (strlen(s) < n || strpbrk(s, "@/\\"))
        return rule(err, "cache_salt", "must not contain @, /, \\ or NUL");
    return SUMI_OK;
}

static sumi_status read_flags(struct params *p, enum api_kind api, struct json_object *body,
                              const struct server_config *config, sumi_error *err) {
    p->add_special_tokens = api == API_COMPLETION;
    p->tokens_as_ids = config->tokens_as_ids;
    TRY(json_get_bool(body, "echo", &p->echo, err));
    TRY(json_get_bool(body, "add_special_tokens", &p->add_special_tokens, err));
    TRY(json_get_bool(body, "return_token_ids", &p->return_token_ids, err));
    TRY(json_get_bool(body, "return_tokens_as_token_ids", &p->tokens_as_ids, err));
    TRY(json_get_bool(body, "ignore_eos", &p->sampling.ignore_eos, err));
    TRY(json_get_bool(body, "include_stop_str_in_output", &p->sampling.include_stop, err));
    TRY(get_i32(body, "min_tokens", &p->sampling.min_tokens, err));
    TRY(json_get_i64(body, "priority", &p->priority, err));
    struct json_object *id = json_get(body, "request_id");
    p->request_id = id && json_object_get_string_len(id) ? json_object_get_string(id) : NULL;
    return check_salt(body, err);
}

sumi_status params_read(struct params *p, enum api_kind api, struct json_object *body,
                        const struct server_config *config, sumi_error *err) {
    *p = (struct params){.sampling = sampling_default()};
    p->sampling.n_logprobs = p->sampling.n_prompt_logprobs = -1;
    TRY(refuse_unbuilt(body, err));
    TRY(check_thinking(body, config, err));
    TRY(read_sampling(&p->sampling, config->sampling_defaults, err));
    TRY(read_sampling(&p->sampling, body, err));
    TRY(read_seed(p, body, err));
    TRY(read_n(p, body, config, err));
    TRY(read_stream(p, body, config, err));
    TRY(read_budget(p, api, body, err));
    TRY(read_logprobs(p, api, body, config, err));
    TRY(read_flags(p, api, body, config, err));
    return params_read_lists(p, body, config, err);
}
