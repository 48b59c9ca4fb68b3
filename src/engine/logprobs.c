/* A row of logits and a token flow in; a short list of tokens with log probability and rank flows
 * out. Knows nothing of how the token was chosen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sampler.h"

/* What is subtracted from a logit to give its log probability. */
static double normaliser(struct sampler *w, const float *row, float max, bool logits) {
    return logits ? 0 : (double)max + log(row_weigh(row, (size_t)w->vocab, max, w->weight));
}

/* 1 + how many stand before it: larger ones, and equal ones with a lower id. */
static int32_t rank_of(const struct sampler *w, const float *row, int32_t id) {
    float v = row[id];
    int32_t rank = 1;
    for (int32_t i = 0; i < id; i++) rank += row[i] >= v;
    for (int32_t i = id + 1; i < w->vocab; i++) rank += row[i] > v;
    return rank;
}

static int by_rank(const void *a, const void *b) {
    const struct token_logprob *x = a, *y = b;
    if (x->logprob != y->logprob) return x->logprob > y->logprob ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The best k of the row, best first, as logits. */
static void best(struct sampler *w, const float *row, int32_t k, struct token_logprob *top) {
    if (k == 0) return;
    float least = select_kth(w->space, row, (size_t)w->vocab, (size_t)k);
    int32_t n = 0, n_equal = k;
    for (int32_t i = 0; i < w->vocab; i++) n_equal -= row[i] > least;
    for (int32_t i = 0; i < w->vocab; i++) { /* of the equally least, the lower ids */
        if (row[i] < least || (row[i] == least && n_equal-- <= 0)) continue;
        top[n++] = (struct token_logprob){.id = i, .logprob = row[i]};
    }
    qsort(top, (size_t)n, sizeof *top, by_rank);
    for (int32_t i = 0; i < n; i++) top[i].rank = i + 1;
}

void logprob_top(struct sampler *w, const float *row, float max, int32_t id, int32_t k, bool logits,
                 struct token_logprob *top, size_t *n_top) {
    double base = normaliser(w, row, max, logits);
    if (k > w->vocab) k = w->vocab;
    best(w, row, k, top + 1);
    size_t n = (size_t)k, at = 1;
    while (at <= n && top[at].id != id) at++;
    if (at <= n) {
        top[0] = top[at];
        memmove(top + at, top + at + 1, (n - at) * sizeof *top);
    } else {
        top[0] = (struct token_logprob){.id = id, .logprob = row[id], .rank = rank_of(w, row, id)};
        n++;
    }
    for (size_t i = 0; i < n; i++) top[i].logprob = (float)((double)top[i].logprob - base);
    *n_top = n;
}

static bool listed(const struct token_logprob *top, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (top[i].id == id) return true;
    return false;
}

void logprob_listed(struct sampler *w, const float *row, float max, int32_t id,
                    const struct token_list *list, bool logits, struct token_logprob *top,
                    size_t *n_top) {
    double base = normaliser(w, row, max, logits);
    size_t n = 0;
    for (size_t i = 0; i <= list->n; i++) {
        int32_t t = i == 0 ? id : list->id[i - 1];
        if (listed(top, n, t)) continue;
        top[n++] = (struct token_logprob){
            .id = t, .logprob = (float)((double)row[t] - base), .rank = rank_of(w, row, t)};
    }
    *n_top = n;
}

sumi_status row_logprobs(struct sampler *w, const float *logits, int32_t id, int32_t k,
                         struct token_logprob *top, size_t *n_top, sumi_error *err) {
    float max;
    TRY(row_max(logits, w->vocab, &max, err));
    logprob_top(w, logits, max, id, k, false, top, n_top);
    return SUMI_OK;
}
