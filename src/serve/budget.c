/* Prompt length, model length and the request's wishes in, a number of tokens out. */
#include "serve/budget.h"

#include <string.h>

#include "base/size.h"
#include "base/utf8.h"

/* Agents recognise an overflow by these words and then shorten the conversation. */
static sumi_status too_long(const struct server_config *config, const char *param, size_t n,
                            const char *unit, sumi_error *err) {
    return fail_param(err, SUMI_ERR_LIMIT, param,
                      "This model's maximum context length is %d tokens. However, your request has "
                      "%zu input %s. Please reduce the length of the input prompt. "
                      "(parameter=%s, value=%zu)",
                      config->max_model_len, n, unit, param, n);
}

sumi_status budget_check_text(const struct server_config *config, const struct params *p,
                              const char **text, size_t *n, sumi_error *err) {
    size_t limit;
    if (!size_mul((size_t)config->max_model_len, tokenizer_longest(config->tokenizer), &limit) ||
        *n <= limit)
        return SUMI_OK;
    if (p->side == CUT_DEFAULT) return too_long(config, "input_text", *n, "bytes", err);
    if (p->side == CUT_RIGHT) {
        *n = utf8_valid_prefix(*text, limit);
        return SUMI_OK;
    }
    size_t from = *n - limit;
    while (from < *n && ((unsigned char)(*text)[from] & 0xC0) == 0x80) from++;
    *text += from;
    *n -= from;
    return SUMI_OK;
}

sumi_status budget_truncate(const struct server_config *config, const struct params *p,
                            struct ids *prompt, sumi_error *err) {
    if (!p->has_truncate) return SUMI_OK;
    if (p->truncate > config->max_model_len)
        return fail_param(err, SUMI_ERR_ARG, "truncate_prompt_tokens",
                          "truncate_prompt_tokens must not exceed the model length of %d tokens",
                          config->max_model_len);
    size_t keep = p->truncate < 0 ? (size_t)(config->max_model_len - 1) : (size_t)p->truncate;
    if (prompt->n <= keep) return SUMI_OK;
    if (p->side != CUT_RIGHT)
        memmove(prompt->data, prompt->data + (prompt->n - keep), keep * sizeof *prompt->data);
    prompt->n = keep;
    return SUMI_OK;
}

sumi_status budget_resolve(const struct server_config *config, const struct params *p, size_t n,
                           bool echo_only, int32_t *max_tokens, sumi_error *err) {
    int64_t length = config->max_model_len;
    if (p->has_budget && p->budget > length)
        return fail_param(err, SUMI_ERR_ARG, p->budget_field,
                          "%s must not exceed the model length of %lld tokens", p->budget_field,
                          (long long)length);
    if (n > (size_t)length) return too_long(config, "input_tokens", n, "tokens", err);
    if (echo_only) {
        *max_tokens = 1;
        return SUMI_OK;
    }
    int64_t budget = length - (int64_t)n;
    if (budget < 1) {
        TRY(too_long(config, "max_tokens", n, "tokens", err));
    }
    if (p->has_budget) budget = min_i64(budget, p->budget);
    else if (config->default_max_tokens > 0) budget = min_i64(budget, config->default_max_tokens);
    if (config->max_tokens_cap > 0) budget = min_i64(budget, config->max_tokens_cap);
    if (budget < 1)
        return fail_param(err, SUMI_ERR_ARG, "max_tokens", "%s must be 1 or more", p->budget_field);
    *max_tokens = (int32_t)budget;
    return SUMI_OK;
}
