/* What goes into a question: sampling parameters from options over the model's defaults, and
 * conversations through the template. */
#include <string.h>

#include "base/mem.h"
#include "base/option_table.h"
#include "cli/ask.h"

static sumi_status number(const struct setup *s, const char *flag, const char *key, float *out,
                          sumi_error *err) {
    double d = (double)*out;
    TRY(json_get_f64(s->sampling, key, &d, err));
    if (opt_given(s->o, flag)) d = opt_double(s->o, flag);
    *out = (float)d;
    return SUMI_OK;
}

static sumi_status whole(const struct setup *s, const char *flag, const char *key, int32_t *out,
                         sumi_error *err) {
    int64_t i = *out;
    TRY(json_get_i64(s->sampling, key, &i, err));
    if (opt_given(s->o, flag)) i = opt_int(s->o, flag);
    *out = i > INT32_MAX ? INT32_MAX : (int32_t)i;
    return SUMI_OK;
}

static sumi_status stops(const struct setup *s, struct sampling *out, size_t **len,
                         sumi_error *err) {
    struct opt_list l = opt_list(s->o, "stop");
    *len = mem_alloc(l.n * sizeof **len);
    if (!*len) return NO_MEMORY(err, l.n * sizeof **len);
    for (size_t i = 0; i < l.n; i++) {
        (*len)[i] = strlen(l.item[i]);
        if (!(*len)[i])
            return fail_param(err, SUMI_ERR_ARG, "stop", "--stop: a stop text is empty");
    }
    out->stop = l.item;
    out->stop_len = *len;
    out->n_stop = l.n;
    return SUMI_OK;
}

static sumi_status budget(const struct setup *s, size_t n_prompt, struct sampling *out,
                          sumi_error *err) {
    int64_t left = s->plan.max_model_len - (int64_t)n_prompt;
    if (left < 1)
        return fail_with(err, SUMI_ERR_LIMIT,
                         "the prompt has %zu tokens, and the context holds %d with the answer",
                         n_prompt, s->plan.max_model_len);
    int64_t want = opt_given(s->o, "max-tokens") ? opt_int(s->o, "max-tokens")
                   : s->default_max_tokens       ? s->default_max_tokens
                                                 : left;
    if (s->max_tokens_cap && want > s->max_tokens_cap) want = s->max_tokens_cap;
    out->max_tokens = (int32_t)(want < left ? want : left);
    return SUMI_OK;
}

sumi_status ask_sampling(const struct setup *s, size_t n_prompt, bool raw, struct sampling *out,
                         size_t **stop_len, sumi_error *err) {
    *out = sampling_default();
    TRY(number(s, "temperature", "temperature", &out->temperature, err));
    TRY(number(s, "top-p", "top_p", &out->top_p, err));
    TRY(number(s, "min-p", "min_p", &out->min_p, err));
    TRY(number(s, "presence-penalty", "presence_penalty", &out->presence_penalty, err));
    TRY(number(s, "frequency-penalty", "frequency_penalty", &out->frequency_penalty, err));
    TRY(number(s, "repetition-penalty", "repetition_penalty", &out->repetition_penalty, err));
    TRY(whole(s, "top-k", "top_k", &out->top_k, err));
    TRY(stops(s, out, stop_len, err));
    TRY(budget(s, n_prompt, out, err));
    out->has_seed = opt_given(s->o, "seed");
    out->seed = (uint64_t)opt_int(s->o, "seed");
    out->ignore_eos = options_verb(s->o)->bit == VERB_RUN && opt_bool(s->o, "ignore-eos");
    out->skip_special = raw || (!s->reasoning && !s->tools);
    return sampling_check(out, s->loaded.model->vocab, -1, err);
}

bool ask_thinking(const struct setup *s) {
    const char *effort = opt_string(s->o, "reasoning-effort");
    struct json_object *kwargs = opt_json(s->o, "default-chat-template-kwargs");
    bool one = false, other = false;
    if (!json_get(kwargs, "enable_thinking") && !json_get(kwargs, "thinking"))
        return !effort || strcmp(effort, "none") != 0;
    json_get_bool(kwargs, "enable_thinking", &one, NULL);
    json_get_bool(kwargs, "thinking", &other, NULL);
    return one || other;
}

sumi_status ask_render(const struct setup *s, struct json_object *messages, struct ids *out,
                       sumi_error *err) {
    struct prompt_request r = {
        .messages = messages,
        .kwargs = opt_json(s->o, "default-chat-template-kwargs"),
        .reasoning_effort = opt_string(s->o, "reasoning-effort"),
        .add_generation_prompt = true,
    };
    out->n = 0;
    return prompt_render(&s->prompt, &r, out, NULL, err);
}

sumi_status message_add(struct json_object *messages, const char *role, const char *text, size_t n,
                        sumi_error *err) {
    struct json_object *m = json_object_new_object();
    if (!m || n > INT32_MAX ||
        json_object_object_add(m, "role", json_object_new_string(role)) != 0 ||
        json_object_object_add(m, "content", json_object_new_string_len(text, (int)n)) != 0 ||
        json_object_array_add(messages, m) != 0) {
        json_object_put(m);
        return NO_MEMORY(err, n);
    }
    return SUMI_OK;
}
