/* How long an answer may be, and how a prompt is cut (spec 1.5.4). */
#ifndef SUMI_SERVE_BUDGET_H
#define SUMI_SERVE_BUDGET_H

#include "serve/params.h"
#include "text/tokenizer.h"

/* A text of n bytes that cannot fit the model length, whatever its tokens: refused before it is
 * tokenised (param input_text). With an explicit truncation side *text and *n are cut instead. */
sumi_status budget_check_text(const struct server_config *config, const struct params *p,
                              const char **text, size_t *n, sumi_error *err);

/* Applies truncate_prompt_tokens; -1 leaves room for one token, since the engine runs a step even
 * when nothing is to be generated. */
sumi_status budget_truncate(const struct server_config *config, const struct params *p,
                            struct ids *prompt, sumi_error *err);

/* Sets sampling.max_tokens for a prompt of n tokens. Errors: a budget over the model length names
 * its field, a prompt over it names input_tokens, no room left names max_tokens. A completion that
 * only echoes (budget 0) runs one hidden step. */
sumi_status budget_resolve(const struct server_config *config, const struct params *p, size_t n,
                           bool echo_only, int32_t *max_tokens, sumi_error *err);

#endif
