/* POST /v1/completions: prompts as text or ids in, texts out. No reasoning, no tools. The request
 * side is here; answers are written by completions_answer.c. */
#include "serve/completions.h"

#include <string.h>

#include "base/mem.h"
#include "serve/api.h"
#include "serve/budget.h"
#include "serve/completions_prompt.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"
#include "serve/replay.h"

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
        if (!p->ids[i].n) return prompts_refuse(err, "must not be empty");
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
    TRY(prompts_schema(body, err));
    TRY(api_check_model(s, body, err));
    TRY(server_accepts(s, err));
    if (json_get(body, "suffix") && json_object_get_string_len(json_get(body, "suffix")))
        return fail_param(err, SUMI_ERR_ARG, "suffix", "suffix is not supported by this model");
    TRY(params_read(&x->g.params, API_COMPLETION, body, &s->config, err));
    TRY(prompts_read(&s->config, &x->g.params, body, p, err));
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
