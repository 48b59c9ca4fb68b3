/* POST /v1/completions: prompts as text or ids in, texts out. No reasoning, no tools. The request
 * side is here; answers are written by completions_answer.c. */
#include "serve/completions.h"

#include <string.h>

#include "base/mem.h"
#include "serve/api.h"
#include "serve/budget.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/replay.h"

/* The prompts of a request, before the engine has them. */
struct prompts {
    struct ids *ids;           /* [n] owned */
    struct json_object **text; /* [n] the string, or NULL for ids; borrowed from the body */
    size_t n;
};

static void prompts_reset(struct prompts *p) {
    for (size_t i = 0; i < p->n; i++) mem_free(p->ids[i].data);
    mem_free(p->ids);
    mem_free(p->text);
}

static sumi_status refuse_prompt(sumi_error *err, const char *why) {
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

static sumi_status check_schema(struct json_object *body, sumi_error *err) {
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
    return out->n ? SUMI_OK : refuse_prompt(err, "must not be empty");
}

static sumi_status take_text(struct server *s, const struct params *params,
                             struct json_object *text, struct ids *out, sumi_error *err) {
    const char *p = json_object_get_string(text);
    size_t n = (size_t)json_object_get_string_len(text);
    if (!n) return refuse_prompt(err, "must not be empty");
    TRY(budget_check_text(&s->config, params, &p, &n, err));
    return tokenizer_encode(s->config.tokenizer, p, n, NULL, true, out, err);
}

static sumi_status open_prompts(struct prompts *p, size_t n, sumi_error *err) {
    p->ids = mem_zero(n, sizeof *p->ids);
    p->text = mem_zero(n, sizeof *p->text);
    if (!p->ids || !p->text) return NO_MEMORY(err, n * sizeof *p->ids);
    p->n = n;
    return SUMI_OK;
}

static sumi_status read_prompts(struct server *s, const struct params *params,
                                struct json_object *body, struct prompts *p, sumi_error *err) {
    struct json_object *prompt = json_get(body, "prompt");
    size_t n = json_is(prompt, json_type_array) ? json_object_array_length(prompt) : 1;
    if (!prompt || !n) return refuse_prompt(err, "is required and must not be empty");
    json_type type = json_is(prompt, json_type_array) ? items(prompt) : json_type_string;
    bool one = type == json_type_int || json_is(prompt, json_type_string);
    if (!one && n > (size_t)s->config.max_prompts)
        return fail_param(err, SUMI_ERR_ARG, "prompt", "%zu prompts; at most %d are taken", n,
                          s->config.max_prompts);
    TRY(open_prompts(p, one ? 1 : n, err));
    for (size_t i = 0; i < p->n; i++) {
        struct json_object *item = one ? prompt : json_object_array_get_idx(prompt, i);
        if (type == json_type_string) {
            p->text[i] = item;
            TRY(take_text(s, params, item, &p->ids[i], err));
        } else TRY(take_ids(s->config.tokenizer, item, &p->ids[i], err));
    }
    return SUMI_OK;
}

/* Cuts the prompts and settles the budget: the largest of all, which the engine lowers for each to
 * the room that is left. */
static sumi_status settle(struct completion *x, struct prompts *p, sumi_error *err) {
    const struct server_config *config = &x->g.s->config;
    struct params *params = &x->g.params;
    x->echo_only = params->echo && params->has_budget && params->budget == 0;
    for (size_t i = 0; i < p->n; i++) {
        int32_t budget;
        size_t before = p->ids[i].n;
        TRY(budget_truncate(config, params, &p->ids[i], err));
        if (p->ids[i].n < before) p->text[i] = NULL; /* an echo shows what was read */
        if (!p->ids[i].n) return refuse_prompt(err, "must not be empty");
        TRY(budget_resolve(config, params, p->ids[i].n, x->echo_only, &budget, err));
        if (budget > params->sampling.max_tokens || !i) params->sampling.max_tokens = budget;
    }
    struct sampling *sampling = &params->sampling;
    x->prompt_logprobs = sampling->n_prompt_logprobs >= 0;
    if (params->echo && sampling->n_logprobs > sampling->n_prompt_logprobs)
        sampling->n_prompt_logprobs = sampling->n_logprobs;
    return sampling_check(sampling, tokenizer_size(config->tokenizer), config->max_logprobs, err);
}

/* The prompt's text, for an echo; with token ids in the answer it is left out. */
static sumi_status keep_echo(struct completion *x, struct prompts *p, size_t i, sumi_error *err) {
    struct buf *echo = &x->prompt[i].echo;
    if (!x->g.params.echo || x->g.params.return_token_ids) return SUMI_OK;
    if (p->text[i])
        buf_put(echo, json_object_get_string(p->text[i]),
                (size_t)json_object_get_string_len(p->text[i]));
    else tokenizer_decode(x->g.s->config.tokenizer, p->ids[i].data, p->ids[i].n, false, echo);
    return echo->failed ? NO_MEMORY(err, p->ids[i].n) : SUMI_OK;
}

static sumi_status prepare(struct completion *x, struct conn *c, struct json_object *body,
                           struct prompts *p, struct ids *replay, bool *scripted, sumi_error *err) {
    struct server *s = conn_server(c);
    TRY(check_schema(body, err));
    TRY(api_check_model(s, body, err));
    TRY(server_accepts(s, err));
    if (json_get(body, "suffix") && json_object_get_string_len(json_get(body, "suffix")))
        return fail_param(err, SUMI_ERR_ARG, "suffix", "suffix is not supported by this model");
    TRY(params_read(&x->g.params, API_COMPLETION, body, &s->config, err));
    TRY(read_prompts(s, &x->g.params, body, p, err));
    x->g.s = s;
    TRY(settle(x, p, err));
    TRY(replay_read(&s->config, body, replay, scripted, err));
    TRY(generation_init(&x->g, &completion_api, c, (int32_t)p->n, "cmpl-", err));
    TRY(completion_open(x, err));
    for (size_t i = 0; i < p->n; i++) TRY(keep_echo(x, p, i, err));
    return SUMI_OK;
}

/* Ids that are part of the answer move to the run; the engine has its own copy by then. */
static void keep_ids(struct completion *x, struct prompts *p) {
    if (!x->g.params.return_token_ids) return;
    for (size_t i = 0; i < p->n; i++) {
        x->g.run[i].prompt = p->ids[i];
        p->ids[i] = (struct ids){0};
    }
}

void completions_handle(struct server *s, struct conn *c) {
    (void)s;
    struct json_object *body = api_read(c);
    if (!body) return;
    sumi_error err = {0};
    struct prompts prompts = {0};
    struct ids replay = {0};
    bool scripted = false;
    struct completion *x = mem_zero(1, sizeof *x);
    sumi_status status = x ? SUMI_OK : NO_MEMORY(&err, sizeof *x);
    if (x) {
        x->g.api = &completion_api;
        status = prepare(x, c, body, &prompts, &replay, &scripted, &err);
        if (status != SUMI_OK) generation_free(&x->g);
    }
    if (status == SUMI_OK) {
        status = generation_submit(&x->g, prompts.ids, scripted ? &replay : NULL, &err);
        if (status == SUMI_OK) keep_ids(x, &prompts);
    }
    if (status != SUMI_OK) error_reply(c, &err, body);
    mem_free(replay.data);
    prompts_reset(&prompts);
    json_object_put(body);
}
