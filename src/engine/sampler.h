/* What the sampler's two halves share: the work space, and lists of log probabilities. */
#ifndef SUMI_ENGINE_SAMPLER_H
#define SUMI_ENGINE_SAMPLER_H

#include "engine/sampling.h"
#include "engine/select.h"

struct sampler {
    int32_t vocab;
    float *raw;     /* [vocab] the row before anything is applied, when logprobs want it */
    int32_t *count; /* [vocab] all zero between uses */
    int32_t *id;    /* [vocab] candidates, ascending */
    float *value;   /* [vocab] their logits */
    float *weight;  /* [vocab] their probabilities, not normalised */
    struct select_space *space;
};

/* The largest value of a row. SUMI_ERR_NUMERIC for a NaN, for plus infinity, and when every entry
 * is minus infinity. */
sumi_status row_max(const float *row, int32_t vocab, float *max, sumi_error *err);

/* weight[i] = e^(x[i] - max), n of them, none of x above max; returns their sum. Where e^-87 is
 * passed the weight stays at that, some 1e-38. */
double row_weigh(const float *x, size_t n, float max, float *weight);

/* Fills top [k + 1]: `id` first, then the best k of the row, each once; values are log-softmax
 * entries, or the row's own when `logits`. The row's largest value is `max`. */
void logprob_top(struct sampler *w, const float *row, float max, int32_t id, int32_t k, bool logits,
                 struct token_logprob *top, size_t *n_top);

/* As above with the listed ids, in their order, in place of the best. */
void logprob_listed(struct sampler *w, const float *row, float max, int32_t id,
                    const struct token_list *list, bool logits, struct token_logprob *top,
                    size_t *n_top);

#endif
