/* Sampling parameters and the choice of a token from a row of logits.
 * Order of operations: spec "Sampling", 3.2. Random numbers: a counter-based generator keyed by
 * (seed, position), so a draw depends on nothing else. */
#ifndef SUMI_ENGINE_SAMPLING_H
#define SUMI_ENGINE_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/random.h"

enum logprobs_mode { RAW_LOGPROBS, RAW_LOGITS, PROCESSED_LOGPROBS, PROCESSED_LOGITS };

struct token_bias {
    int32_t id;
    float bias;
};
struct token_list {
    const int32_t *id;
    size_t n;
};

/* Everything a request may say about sampling. Lists are borrowed; whoever keeps a copy copies
 * them. sampling_default() gives the built-in defaults. */
struct sampling {
    float temperature; /* 0: greedy */
    float top_p, min_p;
    int32_t top_k; /* 0 or -1: off */
    float presence_penalty, frequency_penalty, repetition_penalty;
    bool has_seed;
    uint64_t seed;
    int32_t max_tokens;
    int32_t min_tokens;
    bool ignore_eos;
    int32_t n_logprobs;        /* -1: none; k: the sampled token and the top k; vocab: all */
    int32_t n_prompt_logprobs; /* as above, for each prompt token but the first */
    struct token_list stop_ids;
    struct token_list allowed;          /* n 0: no restriction */
    struct token_list logprob_ids;      /* n > 0: replaces the top-k list */
    const struct token_list *bad_words; /* [n_bad] token sequences */
    size_t n_bad;
    const struct token_bias *bias; /* [n_bias] */
    size_t n_bias;
    const char *const *stop; /* [n_stop] stop strings */
    const size_t *stop_len;
    size_t n_stop;
    bool include_stop; /* stop string or stop token's text is part of the answer */
    bool skip_special; /* special tokens release no text */
};

struct sampling sampling_default(void);

/* Ranges of spec 3.1 against a vocabulary; SUMI_ERR_ARG with err->param = the API's field name. A
 * temperature in (0, 0.01) is raised to 0.01. max_logprobs -1: no cap. */
sumi_status sampling_check(struct sampling *s, int32_t vocab, int32_t max_logprobs,
                           sumi_error *err);

struct token_logprob {
    int32_t id;
    float logprob;
    int32_t rank; /* 1 = best */
};

/* What one choice depends on besides the logits. */
struct sample_context {
    const int32_t *prompt; /* [n_prompt] for repetition_penalty */
    size_t n_prompt;
    const int32_t *output; /* [n_output] sampled so far */
    size_t n_output;
    const int32_t *eos; /* [n_eos] the model's stop ids, masked until min_tokens */
    size_t n_eos;
    int64_t position; /* index of the token to be drawn in prompt + output; keys the noise */
    uint64_t seed;
    enum logprobs_mode mode;
};

struct sampler; /* scratch for one thread: vocabulary-sized work space */
sumi_status sampler_open(struct sampler **out, int32_t vocab, sumi_error *err);
void sampler_close(struct sampler *s);

/* Chooses a token. `logits` [vocab] is overwritten. `top` has room for s->n_logprobs + 1 entries
 * (or logprob_ids.n + 1); *n_top of them are filled: the sampled token first, then the best by
 * rank, each once. A row with a NaN, or with no finite value left before sampling, is
 * SUMI_ERR_NUMERIC. Ties go to the lower id. */
sumi_status sample_token(struct sampler *w, const struct sampling *s,
                         const struct sample_context *c, float *logits, int32_t *id,
                         struct token_logprob *top, size_t *n_top, sumi_error *err);

/* Log-softmax entries of given tokens of a row, for prompt logprobs: `id` first, then the best k.
 */
sumi_status row_logprobs(struct sampler *w, const float *logits, int32_t id, int32_t k,
                         struct token_logprob *top, size_t *n_top, sumi_error *err);

#endif
