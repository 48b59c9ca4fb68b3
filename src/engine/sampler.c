/* A row of logits and what one choice depends on flow in; a token flows out. The order of the steps
 * is vLLM's, so that a request means the same here. Knows nothing of queues, pages or text.
 *
 * The draw is the inverse of the cumulative distribution over the remaining tokens in the order of
 * their ids, at one number in (0, 1) that depends on seed and position alone. */
#include "engine/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

sumi_status sampler_open(struct sampler **out, int32_t vocab, sumi_error *err) {
    *out = NULL;
    if (vocab < 1) return fail_with(err, SUMI_ERR_ARG, "a vocabulary of %d tokens", (int)vocab);
    struct sampler *w = mem_zero(1, sizeof *w);
    if (!w) return NO_MEMORY(err, sizeof *w);
    size_t n = (size_t)vocab;
    w->vocab = vocab;
    w->raw = mem_zero(n, sizeof *w->raw);
    w->count = mem_zero(n, sizeof *w->count);
    w->id = mem_zero(n, sizeof *w->id);
    w->value = mem_zero(n, sizeof *w->value);
    w->weight = mem_zero(n, sizeof *w->weight);
    w->space = mem_zero(1, sizeof *w->space);
    if (!w->raw || !w->count || !w->id || !w->value || !w->weight || !w->space) {
        sampler_close(w);
        return NO_MEMORY(err, 5 * n * sizeof(float));
    }
    *out = w;
    return SUMI_OK;
}

void sampler_close(struct sampler *w) {
    if (!w) return;
    mem_free(w->raw);
    mem_free(w->count);
    mem_free(w->id);
    mem_free(w->value);
    mem_free(w->weight);
    mem_free(w->space);
    mem_free(w);
}

enum { LANES = 16 }; /* independent chains, so that the compiler can use vectors */

static sumi_status report_row(const float *row, int32_t vocab, sumi_error *err) {
    for (int32_t i = 0; i < vocab; i++)
        if (isnan(row[i]) || row[i] == INFINITY)
            return fail_with(err, SUMI_ERR_NUMERIC,
                             "the logit of token %d is %s, expected a finite number or -inf; the "
                             "weights or the computation are damaged",
                             (int)i, isnan(row[i]) ? "not a number" : "infinite");
    return fail_with(err, SUMI_ERR_NUMERIC,
                     "no token of %d is left to choose from; allowed_token_ids, bad_words and "
                     "min_tokens exclude them all",
                     (int)vocab);
}

sumi_status row_max(const float *row, int32_t vocab, float *max, sumi_error *err) {
    float m[LANES];
    int32_t nan[LANES] = {0};
    for (int j = 0; j < LANES; j++) m[j] = -INFINITY;
    int32_t i = 0;
    for (; i + LANES <= vocab; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            float x = row[i + j];
            m[j] = x > m[j] ? x : m[j];
            nan[j] |= x != x;
        }
    }
    for (; i < vocab; i++) {
        m[0] = row[i] > m[0] ? row[i] : m[0];
        nan[0] |= isnan(row[i]);
    }
    for (int j = 1; j < LANES; j++) {
        m[0] = m[j] > m[0] ? m[j] : m[0];
        nan[0] |= nan[j];
    }
    *max = m[0];
    return nan[0] || isinf(m[0]) ? report_row(row, vocab, err) : SUMI_OK;
}

/* e^-d for d >= 0, at most 87; relative error below 1.1e-7. Unlike the library's it is cheap in
 * vectors and gives the same bits everywhere, so a seed means the same on every machine. */
static float exp_minus(float d) {
    const float most = 87, shift = 0x1.8p23f; /* adding it leaves the nearest integer below */
    int32_t bits, limit;
    memcpy(&bits, &d, sizeof bits);
    memcpy(&limit, &most, sizeof limit);
    if (bits > limit) bits = limit; /* floats that are not negative order as their bits do */
    memcpy(&d, &bits, sizeof d);
    /* e^-d = 2^n e^r, n the nearest integer to -d / ln 2; ln 2 in two parts, the first short
     * enough to be exact times n. */
    float n = d * -0x1.715476p0f + shift;
    memcpy(&bits, &n, sizeof bits);
    n -= shift;
    float r = -d - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
    float e =
        1 +
        r * (1 +
             r * (0x1p-1f +
                  r * (1.0f / 6 +
                       r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))))));
    bits = (int32_t)((uint32_t)(bits + 127) << 23);
    memcpy(&n, &bits, sizeof n);
    return e * n;
}

double row_weigh(const float *x, size_t n, float max, float *weight) {
    double sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; j++) weight[i + (size_t)j] = exp_minus(max - x[i + (size_t)j]);
        for (int j = 0; j < LANES; j++) sum[j] += (double)weight[i + (size_t)j];
    }
    for (; i < n; i++) sum[0] += (double)(weight[i] = exp_minus(max - x[i]));
    for (int j = 1; j < LANES; j++) sum[0] += sum[j];
    return sum[0];
}

/* Finite in, finite out: a large bias or penalty must not make an infinity of a logit. */
static float bounded(float x) {
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x;
}

static void mask_all_but(struct sampler *w, const struct token_list *allowed, float *logits) {
    for (size_t i = 0; i < allowed->n; i++) w->count[allowed->id[i]] = 1;
    for (int32_t i = 0; i < w->vocab; i++)
        if (!w->count[i]) logits[i] = -INFINITY;
    for (size_t i = 0; i < allowed->n; i++) w->count[allowed->id[i]] = 0;
}

/* Masks the last token of a sequence whose other tokens are the last of the output. */
static void mask_bad_words(const struct sampling *s, const struct sample_context *c,
                           float *logits) {
    for (size_t i = 0; i < s->n_bad; i++) {
        const struct token_list *bad = &s->bad_words[i];
        size_t n = bad->n - 1;
        if (n > c->n_output) continue;
        if (n > 0 && memcmp(bad->id, c->output + c->n_output - n, n * sizeof *bad->id) != 0)
            continue;
        logits[bad->id[n]] = -INFINITY;
    }
}

static void mask_stops(const struct sampling *s, const struct sample_context *c, float *logits) {
    for (size_t i = 0; i < c->n_eos; i++) logits[c->eos[i]] = -INFINITY;
    for (size_t i = 0; i < s->stop_ids.n; i++) logits[s->stop_ids.id[i]] = -INFINITY;
}

static void add_bias(const struct sampling *s, float *logits) {
    for (size_t i = 0; i < s->n_bias; i++) {
        float *x = &logits[s->bias[i].id];
        if (*x > -INFINITY) *x = bounded(*x + s->bias[i].bias);
    }
}

static void repeat_penalty(struct sampler *w, const int32_t *ids, size_t n, float penalty,
                           float *logits) {
    for (size_t i = 0; i < n; i++) {
        float *x = &logits[ids[i]];
        if (w->count[ids[i]]++ > 0 || *x == -INFINITY) continue;
        *x = bounded(*x > 0 ? *x / penalty : *x * penalty);
    }
}

static void clear_counts(struct sampler *w, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) w->count[ids[i]] = 0;
}

static void apply_penalties(struct sampler *w, const struct sampling *s,
                            const struct sample_context *c, float *logits) {
    if (s->repetition_penalty != 1) {
        repeat_penalty(w, c->prompt, c->n_prompt, s->repetition_penalty, logits);
        repeat_penalty(w, c->output, c->n_output, s->repetition_penalty, logits);
        clear_counts(w, c->prompt, c->n_prompt);
        clear_counts(w, c->output, c->n_output);
    }
    if (s->frequency_penalty == 0 && s->presence_penalty == 0) return;
    for (size_t i = 0; i < c->n_output; i++) w->count[c->output[i]]++;
    for (size_t i = 0; i < c->n_output; i++) { /* each token once: its count is taken away */
        int32_t id = c->output[i], count = w->count[id];
        if (count == 0) continue;
        w->count[id] = 0;
        if (logits[id] == -INFINITY) continue;
        logits[id] -= s->frequency_penalty * (float)count;
        logits[id] -= s->presence_penalty;
    }
}

/* Steps 3 to 6: everything that changes logits before greedy choice. False when nothing did. */
static bool process(struct sampler *w, const struct sampling *s, const struct sample_context *c,
                    float *logits) {
    bool young = c->n_output < (size_t)s->min_tokens;
    bool penalties =
        s->repetition_penalty != 1 || s->frequency_penalty != 0 || s->presence_penalty != 0;
    if (s->allowed.n) mask_all_but(w, &s->allowed, logits);
    mask_bad_words(s, c, logits);
    if (young) mask_stops(s, c, logits);
    add_bias(s, logits);
    if (penalties) apply_penalties(w, s, c, logits);
    return s->allowed.n || s->n_bad || young || s->n_bias || penalties;
}

/* The candidates that temperature, min_p and top_k leave, in w->id and w->value; how many. */
static size_t candidates(struct sampler *w, const struct sampling *s, float *logits, float *max) {
    for (int32_t i = 0; i < w->vocab; i++) {
        float x = logits[i] / s->temperature;
        logits[i] = x > FLT_MAX ? FLT_MAX : x;
    }
    *max = bounded(*max / s->temperature);
    float least = -FLT_MAX;
    /* p >= min_p * max p, as logits */
    if (s->min_p > 0) least = *max + logf(s->min_p);
    if (s->top_k > 0 && s->top_k < w->vocab) {
        float kth = select_kth(w->space, logits, (size_t)w->vocab, (size_t)s->top_k);
        if (kth > least) least = kth;
    }
    size_t n = 0;
    for (int32_t i = 0; i < w->vocab; i++) { /* written first, counted if it stays: no branch */
        w->id[n] = i;
        w->value[n] = logits[i];
        n += logits[i] >= least;
    }
    return n;
}

/* Drops candidates that weigh less than `least`. */
static size_t drop_light(struct sampler *w, size_t n, float least) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        w->id[kept] = w->id[i];
        w->value[kept] = w->value[i];
        w->weight[kept] = w->weight[i];
        kept += w->weight[i] >= least;
    }
    return kept;
}

/* Drops the tail that top_p excludes. Counted from the best, a token stays while those before it
 * weigh less than top_p; of equal ones the lower id comes first. */
static size_t nucleus(struct sampler *w, size_t n, float top_p, double total) {
    double target = (double)top_p * total;
    /* n tokens below this could not outweigh the tail together; mostly that leaves few to select
     * from. */
    n = drop_light(w, n, (float)((total - target) / (double)n));
    struct cut cut = select_cut(w->space, w->value, w->weight, n, target);
    double before = cut.above;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (w->value[i] < cut.value) continue;
        if (w->value[i] == cut.value) {
            if (before >= target) continue;
            before += (double)w->weight[i];
        }
        w->id[kept] = w->id[i];
        w->value[kept] = w->value[i];
        w->weight[kept++] = w->weight[i];
    }
    return kept;
}

static double sum_of(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i];
    return sum;
}

/* Steps 8 and 9. *n_left candidates remain in w->id and w->value. */
static int32_t draw(struct sampler *w, const struct sampling *s, const struct sample_context *c,
                    float *logits, float max, size_t *n_left) {
    size_t n = candidates(w, s, logits, &max);
    double total = row_weigh(w->value, n, max, w->weight);
    if (s->top_p < 1) {
        n = nucleus(w, n, s->top_p, total);
        total = sum_of(w->weight, n);
    }
    *n_left = n;
    double mark = random_unit(c->seed, (uint64_t)c->position, STREAM_TOKEN) * total, sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)w->weight[i];
        if (sum > mark) return w->id[i];
    }
    return w->id[n - 1]; /* the sum fell short of the total by rounding */
}

static int32_t first_of(const float *row, float value) {
    int32_t i = 0;
    while (row[i] != value) i++;
    return i;
}

sumi_status sample_token(struct sampler *w, const struct sampling *s,
                         const struct sample_context *c, float *logits, int32_t *id,
                         struct token_logprob *top, size_t *n_top, sumi_error *err) {
    bool wanted = s->n_logprobs >= 0 || s->logprob_ids.n > 0;
    bool raw = c->mode == RAW_LOGPROBS || c->mode == RAW_LOGITS;
    float max, raw_max;
    TRY(row_max(logits, w->vocab, &raw_max, err));
    if (wanted && raw) memcpy(w->raw, logits, (size_t)w->vocab * sizeof *logits);
    max = raw_max;
    if (process(w, s, c, logits)) TRY(row_max(logits, w->vocab, &max, err));
    if (s->temperature == 0) {
        *id = first_of(logits, max);
    } else {
        size_t n;
        *id = draw(w, s, c, logits, max, &n);
        if (wanted && !raw) {
            for (int32_t i = 0; i < w->vocab; i++) logits[i] = -INFINITY;
            for (size_t i = 0; i < n; i++) logits[w->id[i]] = w->value[i];
            max = bounded(max / s->temperature);
        }
    }
    *n_top = 0;
    if (!wanted) return SUMI_OK;
    const float *row = raw ? w->raw : logits;
    bool as_logits = c->mode == RAW_LOGITS || c->mode == PROCESSED_LOGITS;
    if (s->logprob_ids.n > 0)
        logprob_listed(w, row, raw ? raw_max : max, *id, &s->logprob_ids, as_logits, top, n_top);
    else logprob_top(w, row, raw ? raw_max : max, *id, s->n_logprobs, as_logits, top, n_top);
    return SUMI_OK;
}
