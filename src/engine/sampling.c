/* What a request says about sampling flows in; an agreement or a refusal that names the field flows
 * out. Knows nothing of logits. */
#include "engine/sampling.h"

#include <math.h>

struct sampling sampling_default(void) {
    return (struct sampling){
        .temperature = 1,
        .top_p = 1,
        .repetition_penalty = 1,
        .max_tokens = INT32_MAX,
        .n_logprobs = -1,
        .n_prompt_logprobs = -1,
        .skip_special = true,
    };
}

static sumi_status check_range(const char *name, float x, float low, float high, sumi_error *err) {
    if (x >= low && x <= high) return SUMI_OK;
    return fail_param(err, SUMI_ERR_ARG, name, "%s must be between %g and %g, found %g", name,
                      (double)low, (double)high, (double)x);
}

static sumi_status check_least(const char *name, int32_t x, int32_t low, sumi_error *err) {
    if (x >= low) return SUMI_OK;
    return fail_param(err, SUMI_ERR_ARG, name, "%s must be at least %d, found %d", name, (int)low,
                      (int)x);
}

static sumi_status check_id(const char *name, int32_t id, int32_t vocab, sumi_error *err) {
    if (id >= 0 && id < vocab) return SUMI_OK;
    return fail_param(err, SUMI_ERR_ARG, name,
                      "%s holds token id %d, which is not in the vocabulary of %d tokens", name,
                      (int)id, (int)vocab);
}

static sumi_status check_ids(const char *name, const struct token_list *list, int32_t vocab,
                             sumi_error *err) {
    for (size_t i = 0; i < list->n; i++) TRY(check_id(name, list->id[i], vocab, err));
    return SUMI_OK;
}

static sumi_status check_numbers(struct sampling *s, sumi_error *err) {
    TRY(check_range("temperature", s->temperature, 0, 2, err));
    if (s->temperature > 0 && s->temperature < 0.01f) s->temperature = 0.01f;
    if (!(s->top_p > 0 && s->top_p <= 1))
        return fail_param(err, SUMI_ERR_ARG, "top_p",
                          "top_p must be above 0 and at most 1, found %g", (double)s->top_p);
    TRY(check_range("min_p", s->min_p, 0, 1, err));
    TRY(check_least("top_k", s->top_k, -1, err));
    TRY(check_range("presence_penalty", s->presence_penalty, -2, 2, err));
    TRY(check_range("frequency_penalty", s->frequency_penalty, -2, 2, err));
    if (!(s->repetition_penalty > 0 && isfinite(s->repetition_penalty)))
        return fail_param(err, SUMI_ERR_ARG, "repetition_penalty",
                          "repetition_penalty must be a finite number above 0, found %g",
                          (double)s->repetition_penalty);
    TRY(check_least("max_tokens", s->max_tokens, 1, err));
    TRY(check_least("min_tokens", s->min_tokens, 0, err));
    if (s->min_tokens > s->max_tokens)
        return fail_param(err, SUMI_ERR_ARG, "min_tokens",
                          "min_tokens must be at most max_tokens, which is %d, found %d",
                          (int)s->max_tokens, (int)s->min_tokens);
    return SUMI_OK;
}

/* How many log probabilities: limited by the server, and by what there is. */
static sumi_status check_logprobs(const char *name, int32_t *n, int32_t vocab, int32_t max,
                                  sumi_error *err) {
    TRY(check_least(name, *n, -1, err));
    if (max >= 0 && *n > max)
        return fail_param(err, SUMI_ERR_ARG, name,
                          "%s must be at most %d, found %d; --max-logprobs raises the limit", name,
                          (int)max, (int)*n);
    if (*n > vocab) *n = vocab;
    return SUMI_OK;
}

static sumi_status check_lists(const struct sampling *s, int32_t vocab, sumi_error *err) {
    enum { MAX_LOGPROB_IDS = 128 };
    TRY(check_ids("stop_token_ids", &s->stop_ids, vocab, err));
    TRY(check_ids("allowed_token_ids", &s->allowed, vocab, err));
    TRY(check_ids("logprob_token_ids", &s->logprob_ids, vocab, err));
    if (s->logprob_ids.n > MAX_LOGPROB_IDS)
        return fail_param(err, SUMI_ERR_ARG, "logprob_token_ids",
                          "logprob_token_ids may hold at most %d ids, found %zu", MAX_LOGPROB_IDS,
                          s->logprob_ids.n);
    for (size_t i = 0; i < s->n_bad; i++) {
        if (s->bad_words[i].n == 0)
            return fail_param(err, SUMI_ERR_ARG, "bad_words",
                              "bad_words entry %zu has no tokens; leave it out", i);
        TRY(check_ids("bad_words", &s->bad_words[i], vocab, err));
    }
    for (size_t i = 0; i < s->n_bias; i++) {
        TRY(check_id("logit_bias", s->bias[i].id, vocab, err));
        if (!isfinite(s->bias[i].bias))
            return fail_param(err, SUMI_ERR_ARG, "logit_bias",
                              "logit_bias of token id %d must be a finite number",
                              (int)s->bias[i].id);
    }
    for (size_t i = 0; i < s->n_stop; i++)
        if (s->stop_len[i] == 0)
            return fail_param(err, SUMI_ERR_ARG, "stop", "stop entry %zu is empty; leave it out",
                              i);
    return SUMI_OK;
}

sumi_status sampling_check(struct sampling *s, int32_t vocab, int32_t max_logprobs,
                           sumi_error *err) {
    TRY(check_numbers(s, err));
    TRY(check_logprobs("logprobs", &s->n_logprobs, vocab, max_logprobs, err));
    TRY(check_logprobs("prompt_logprobs", &s->n_prompt_logprobs, vocab, max_logprobs, err));
    return check_lists(s, vocab, err);
}
