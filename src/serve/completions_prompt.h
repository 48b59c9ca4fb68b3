/* The prompts of a completion request: a text, texts, ids, or lists of ids. */
#ifndef SUMI_SERVE_COMPLETIONS_PROMPT_H
#define SUMI_SERVE_COMPLETIONS_PROMPT_H

#include "serve/params.h"
#include "text/tokenizer.h"

/* Before the engine has them. */
struct prompts {
    struct ids *ids;           /* [n] owned */
    struct json_object **text; /* [n] the string, or NULL for ids; borrowed from the body */
    size_t n;
};

/* Checks the schema of a whole completion request. */
sumi_status prompts_schema(struct json_object *body, sumi_error *err);
/* After that. prompts_reset is to be called in any case. */
sumi_status prompts_read(const struct server_config *config, const struct params *params,
                         struct json_object *body, struct prompts *p, sumi_error *err);
void prompts_reset(struct prompts *p);

/* SUMI_ERR_ARG about the prompt: "prompt <why>". */
sumi_status prompts_refuse(sumi_error *err, const char *why);

#endif
