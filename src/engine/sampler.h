/* What the sampler's two halves share: the work space, and lists of log probabilities. */
#ifndef SUMI_ENGINE_SAMPLER_H
#define SUMI_ENGINE_SAMPLER_H

#include "engine/sampling.h"

struct sampler {
    int32_t vocab;
    float *raw;     /* [vocab] the row before anything is applied, when logprobs want it */
    int32_t *count; /* [vocab] all zero between uses */
    int32_t *id;    /* [vocab] candidates, ascending */
    float *value;   /* [vocab] their logits */
    float *weight;  /* [vocab] their probabilities, not normalised */
    double *bin;    /* [SELECT_BINS] */
};

/* The largest value of a row. SUMI_ERR_NUMERIC for a NaN, for plus infinity, and when every entry
 * is minus infinity. */
sumi_status row_max(const float *row, int32_t vocab, float *max, sumi_error *err);

/* Fills top [k + 1]: `id` first, then the best k of the row, each once; values are log-softmax
 * entries, or the row's own when `logits`. The row's largest value is `max`. */
void logprob_top(struct sampler *w, const float *row, float max, int32_t id, int32_t k, bool logits,
                 struct token_logprob *top, size_t *n_top);

/* As above with the listed ids, in their order, in place of the best. */
void logprob_listed(struct sampler *w, const float *row, float max, int32_t id,
                    const struct token_list *list, bool logits, struct token_logprob *top,
                    size_t *n_top);

#endif
