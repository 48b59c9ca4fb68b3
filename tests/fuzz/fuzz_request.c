/* Request bodies: accept or refuse, never crash. The first byte chooses the route, the rest is the
 * body, which goes through everything up to the engine's own checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "serve/budget.h"
#include "serve/chat.h"
#include "serve/chat_prompt.h"
#include "serve/completions_prompt.h"
#include "serve/error.h"
#include "serve/replay.h"

static struct server_config config;

/* A vocabulary of the printable characters, some pairs and the markers. */
static void open_config(void) {
    static char spelling[94][2];
    static struct token_text vocab[120];
    static const struct token_text merges[] = {{"a b", 3}, {"t h", 3}};
    static const struct added_token added[] = {
        {100, "<|user|>", 8, true, false, false, false, false},
        {101, "<think>", 7, false, false, false, false, false},
        {102, "</think>", 8, false, false, false, false, false},
        {103, "<tool_call>", 11, false, false, false, false, false},
        {104, "</tool_call>", 12, false, false, false, false, false}};
    static const char text[] = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}"
                               "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}";
    struct tokenizer *tokenizer;
    struct chat_template *template;
    sumi_error err = {0};
    size_t n = 0;
    for (char c = '!'; c <= '~'; c++, n++) {
        spelling[n][0] = c;
        vocab[n] = (struct token_text){spelling[n], 1};
    }
    vocab[n++] = (struct token_text){"\xC4\xA0", 2};
    vocab[n++] = (struct token_text){"ab", 2};
    vocab[n++] = (struct token_text){"th", 2};
    const struct tokenizer_lists lists = {.vocab = vocab,
                                          .n_vocab = 110,
                                          .merges = merges,
                                          .n_merge = 2,
                                          .added = added,
                                          .n_added = 5};
    if (tokenizer_open_lists(&tokenizer, &lists, &err) != SUMI_OK ||
        chat_template_parse(&template, text, sizeof text - 1, &err) != SUMI_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    config = (struct server_config){.tokenizer = tokenizer,
                                    .prompt = {.chat_template = template, .tokenizer = tokenizer},
                                    .reasoning = dialect_find("glm47"),
                                    .tools = dialect_find("glm47"),
                                    .auto_tool_choice = true,
                                    .trust_request_template = true,
                                    .replay = true,
                                    .max_model_len = 200,
                                    .max_logprobs = 20,
                                    .max_n = 16,
                                    .max_stop = 4,
                                    .max_prompts = 16,
                                    .max_bad_words = 16,
                                    .stream_interval = 1};
}

static sumi_status settle(struct params *p, size_t n_prompt, sumi_error *err) {
    TRY(budget_resolve(&config, p, n_prompt, false, &p->sampling.max_tokens, err));
    return sampling_check(&p->sampling, tokenizer_size(config.tokenizer), config.max_logprobs, err);
}

static sumi_status chat(struct json_object *body, struct ids *prompt, struct ids *replay,
                        sumi_error *err) {
    struct schema_report report = {0};
    struct chat_prompt p = {0};
    struct params params = {0};
    struct tool_rules tools;
    bool found;
    sumi_status status;
    chat_prompt_schema(&report, body);
    tool_schema(&report, body);
    params_schema(&report, API_CHAT, body);
    TRY(schema_result(&report, err));
    TRY_OUT(params_read(&params, API_CHAT, body, &config, err));
    TRY_OUT(tool_rules_read(&tools, body, &config, err));
    TRY_OUT(chat_prompt_read(&p, body, &config, tools.in_prompt, err));
    TRY_OUT(chat_prompt_check_size(&p, &config, err));
    TRY_OUT(chat_prompt_render(&p, &config, prompt, NULL, err));
    TRY_OUT(budget_truncate(&config, &params, prompt, err));
    TRY_OUT(replay_read(&config, body, replay, &found, err));
    TRY_OUT(replay_last_user(&config, p.request.messages, replay, err));
    status = settle(&params, prompt->n, err);
out:
    params_reset(&params);
    chat_prompt_reset(&p);
    return status;
}

static sumi_status completion(struct json_object *body, struct ids *replay, sumi_error *err) {
    struct params params = {0};
    struct prompts prompts = {0};
    bool found;
    sumi_status status;
    TRY(prompts_schema(body, err));
    TRY_OUT(params_read(&params, API_COMPLETION, body, &config, err));
    TRY_OUT(prompts_read(&config, &params, body, &prompts, err));
    for (size_t i = 0; i < prompts.n; i++) {
        TRY_OUT(budget_truncate(&config, &params, &prompts.ids[i], err));
        TRY_OUT(settle(&params, prompts.ids[i].n, err));
    }
    status = replay_read(&config, body, replay, &found, err);
out:
    params_reset(&params);
    prompts_reset(&prompts);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_object *body;
    struct ids prompt = {0}, replay = {0};
    struct buf answer = {0};
    sumi_error err = {0};
    if (!config.tokenizer) open_config();
    if (!size || json_parse(&body, (const char *)data + 1, size - 1, "body", &err) != SUMI_OK)
        return 0;
    if (json_is(body, json_type_object)) {
        sumi_status status =
            data[0] == 'c' ? chat(body, &prompt, &replay, &err) : completion(body, &replay, &err);
        if (status != SUMI_OK) error_write(&answer, &err, body);
        if (answer.len > 16384) abort(); /* a refusal echoes little */
    }
    buf_reset(&answer);
    mem_free(prompt.data);
    mem_free(replay.data);
    json_object_put(body);
    return 0;
}
