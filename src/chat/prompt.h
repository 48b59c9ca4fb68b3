/* From a conversation (OpenAI chat messages) to prompt ids, through the checkpoint's template. Text
 * of users, tools and earlier answers never becomes a control token: only bytes that the template
 * itself wrote may. */
#ifndef SUMI_CHAT_PROMPT_H
#define SUMI_CHAT_PROMPT_H

#include "base/json.h"
#include "text/template.h"
#include "text/tokenizer.h"

struct prompt_request {
    struct json_object *messages; /* array; borrowed */
    struct json_object *tools;    /* array or NULL */
    struct json_object *documents;
    struct json_object *kwargs;   /* request chat_template_kwargs over server defaults, or NULL */
    const char *reasoning_effort; /* or NULL; also sets enable_thinking unless kwargs does */
    bool add_generation_prompt;
    bool continue_final_message; /* the last message is left open */
};

struct prompt_env {
    const struct chat_template *chat_template; /* NULL: chat requests are refused, saying how to
                                                  give a template */
    const struct tokenizer *tokenizer;
    const char *bos, *eos; /* texts of the tokens, or NULL */
};

/* Renders and encodes. `text` (may be NULL) receives the rendered text. SUMI_ERR_ARG for messages
 * that the API refuses or the template raises on, param = the field. Pre-processing: spec
 * "Messages" (1.5.2) and flint.md 6.2. */
sumi_status prompt_render(const struct prompt_env *env, const struct prompt_request *r,
                          struct ids *out, struct buf *text, sumi_error *err);

#endif
