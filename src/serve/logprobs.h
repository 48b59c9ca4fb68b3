/* Log probabilities as the two APIs write them. Entries are appended to JSON lists as tokens come;
 * -infinity is written as -9999.0. */
#ifndef SUMI_SERVE_LOGPROBS_H
#define SUMI_SERVE_LOGPROBS_H

#include "base/buf.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

struct logprobs_style {
    const struct tokenizer *tokenizer;
    int32_t k;                       /* entries of a top list; with listed ids: those */
    bool as_ids;                     /* tokens are written "token_id:<n>" */
    const struct token_list *listed; /* logprob_token_ids, or NULL */
};

/* Appends the shown text of a token. */
void logprobs_token_text(const struct logprobs_style *s, int32_t id, struct buf *out);

/* Chat: one member of "content", commas between members included. */
void logprobs_put_chat(const struct logprobs_style *s, const struct token_event *e,
                       struct buf *list);

/* Completions: four lists side by side. */
struct logprobs_lists {
    struct buf offset, logprob, token, top;
    size_t chars; /* running sum of the lengths of tokens, in characters */
};
/* The first prompt token has no logprob (n_top 0): null in two of the lists. */
void logprobs_put_lists(const struct logprobs_style *s, const struct token_event *e,
                        struct logprobs_lists *l);
/* The object; the lists are emptied, `chars` stays. */
void logprobs_write_lists(struct logprobs_lists *l, struct buf *out);
void logprobs_reset_lists(struct logprobs_lists *l);

/* The prompt_logprobs value: null for the first token, then objects by id. */
void logprobs_write_prompt(const struct logprobs_style *s, const struct token_event *e, size_t n,
                           struct buf *out);

#endif
