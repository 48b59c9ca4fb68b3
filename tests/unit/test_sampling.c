/* engine/: random numbers, selection, sampling parameters, the choice of a token, log
 * probabilities. Expected values are worked out by hand or come from the cited publications. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/sampling.h"
#include "engine/select.h"

enum { MAX_VOCAB = 64 };

static sumi_error err;

/* One call of sample_token with everything at hand. */
struct shot {
    struct sampling s;
    struct sample_context c;
    float logits[MAX_VOCAB];
    int32_t vocab, id;
    struct token_logprob top[MAX_VOCAB + 1];
    size_t n_top;
};

static struct shot shot_of(const float *logits, int32_t vocab) {
    struct shot shot = {.s = sampling_default(), .vocab = vocab};
    memcpy(shot.logits, logits, (size_t)vocab * sizeof *logits);
    return shot;
}

static sumi_status fire(struct shot *shot) {
    struct sampler *w;
    assert_int_equal(sampler_open(&w, shot->vocab, &err), SUMI_OK);
    float row[MAX_VOCAB];
    memcpy(row, shot->logits, sizeof row);
    sumi_status status =
        sample_token(w, &shot->s, &shot->c, row, &shot->id, shot->top, &shot->n_top, &err);
    sampler_close(w);
    return status;
}

/* The logits after all processing, by id; NAN where the list lacks one. */
static void processed(struct shot *shot, float *out) {
    shot->s.n_logprobs = shot->vocab;
    shot->c.mode = PROCESSED_LOGITS;
    assert_int_equal(fire(shot), SUMI_OK);
    for (int32_t i = 0; i < shot->vocab; i++) out[i] = NAN;
    assert_int_equal(shot->n_top, shot->vocab);
    for (size_t i = 0; i < shot->n_top; i++) out[shot->top[i].id] = shot->top[i].logprob;
}

/* Which ids remain to be drawn, as a bit set. */
static unsigned kept(struct shot *shot) {
    float row[MAX_VOCAB];
    unsigned set = 0;
    processed(shot, row);
    for (int32_t i = 0; i < shot->vocab; i++)
        if (row[i] > -INFINITY) set |= 1u << i;
    return set;
}

static void log_of(const double *p, int n, float *out) {
    for (int i = 0; i < n; i++) out[i] = (float)log(p[i]);
}

/* Draws n tokens at positions 0..n-1 and returns the chi-square statistic against p. */
static double chi_square(struct shot *shot, const double *p, int n) {
    int count[MAX_VOCAB] = {0};
    struct sampler *w;
    assert_int_equal(sampler_open(&w, shot->vocab, &err), SUMI_OK);
    for (int i = 0; i < n; i++) {
        float row[MAX_VOCAB];
        memcpy(row, shot->logits, sizeof row);
        shot->c.position = i;
        assert_int_equal(
            sample_token(w, &shot->s, &shot->c, row, &shot->id, shot->top, &shot->n_top, &err),
            SUMI_OK);
        count[shot->id]++;
    }
    sampler_close(w);
    double sum = 0;
    for (int i = 0; i < shot->vocab; i++) {
        if (p[i] == 0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        double expected = p[i] * n, d = count[i] - expected;
        sum += d * d / expected;
    }
    return sum;
}

/* ---- random numbers ---- */

/* Random123 1.09, tests/kat_vectors, philox4x32 with 10 rounds. */
static void philox_gives_the_published_words(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        philox4x32(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static void seed_and_position_are_key_and_counter(void **state) {
    (void)state;
    /* The pi digits again: words are filled from the low half up. */
    uint64_t bits = random_bits(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu);
    assert_true(bits == 0x94fdccebd16cfe09u);
    double unit = random_unit(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu);
    assert_true(unit == ((double)(0x94fdccebd16cfe09u >> 12) + 0.5) / 4503599627370496.0);
}

static void random_numbers_are_uniform(void **state) {
    (void)state;
    enum { N = 16000, BINS = 16 };
    int count[BINS] = {0};
    for (int i = 0; i < N; i++) {
        double x = random_unit(7, (uint64_t)i, STREAM_TOKEN);
        assert_true(x > 0 && x < 1);
        count[(int)(x * BINS)]++;
    }
    double sum = 0;
    for (int i = 0; i < BINS; i++) {
        double d = count[i] - N / BINS;
        sum += d * d / (N / BINS);
    }
    assert_true(sum < 37.70); /* chi-square, 15 degrees of freedom, 0.999 */
}

/* ---- selection ---- */

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static void the_kth_largest_is_what_sorting_gives(void **state) {
    (void)state;
    enum { N = 500 };
    struct select_space space;
    float x[N], sorted[N];
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < N; i++) {
            double u = random_unit(1, (uint64_t)(round * N + i), 9);
            x[i] = round % 2 ? (float)(int)(u * 40 - 20) / 4 : (float)(u * 100 - 50);
            if (round > 5 && i % 7 == 0) x[i] = i % 2 ? -INFINITY : -0.0f;
        }
        memcpy(sorted, x, sizeof x);
        qsort(sorted, N, sizeof *sorted, descending);
        for (int k = 1; k <= N; k += k < 20 ? 1 : 37) {
            struct cut cut = select_cut(&space, x, NULL, N, k);
            int above = 0;
            for (int i = 0; i < N; i++) above += x[i] > sorted[k - 1];
            assert_true(cut.value == sorted[k - 1]);
            assert_int_equal((int)cut.above, above);
        }
    }
}

static void a_weighted_cut_stops_where_the_weight_is_reached(void **state) {
    (void)state;
    struct select_space space;
    const float x[] = {1, 5, -3, 2, 2}, weight[] = {4, 1, 8, 2, 2};
    struct cut cut = select_cut(&space, x, weight, 5, 1);
    assert_true(cut.value == 5 && cut.above == 0);
    cut = select_cut(&space, x, weight, 5, 1.5); /* 5 weighs 1, the two 2s reach 5 */
    assert_true(cut.value == 2 && cut.above == 1);
    cut = select_cut(&space, x, weight, 5, 9.5);
    assert_true(cut.value == -3 && cut.above == 9);
    cut = select_cut(&space, x, weight, 5, 1000); /* more than there is */
    assert_true(cut.value == -3 && cut.above == 9);
}

/* ---- drawing ---- */

static void greedy_takes_the_lowest_of_equal_ids(void **state) {
    (void)state;
    float logits[40];
    for (int i = 0; i < 40; i++) logits[i] = -1;
    logits[17] = logits[23] = logits[39] = 2;
    struct shot shot = shot_of(logits, 40);
    shot.s.temperature = 0;
    shot.s.top_k = 1, shot.s.top_p = 0.1f, shot.s.min_p = 1; /* without meaning when greedy */
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.id, 17);
    assert_int_equal(shot.n_top, 0);
}

/* 0.999 quantiles of chi-square: 10.83, 13.82, 16.27 for 1, 2, 3 degrees of freedom. */
static void draws_follow_the_softmax(void **state) {
    (void)state;
    const double p[] = {0.1, 0.2, 0.3, 0.4};
    float logits[4];
    log_of(p, 4, logits);
    struct shot shot = shot_of(logits, 4);
    shot.c.seed = 42;
    assert_true(chi_square(&shot, p, 20000) < 16.27);
    assert_true(chi_square(&shot, (double[]){0.25, 0.25, 0.25, 0.25}, 20000) > 16.27);
}

static void temperature_flattens_and_sharpens(void **state) {
    (void)state;
    /* Temperature 2 takes square roots: 1, 2, 3 from 1, 4, 9. Temperature 0.5 squares. */
    const double p[] = {1.0 / 14, 4.0 / 14, 9.0 / 14};
    float logits[3];
    log_of(p, 3, logits);
    struct shot shot = shot_of(logits, 3);
    shot.c.seed = 3;
    shot.s.temperature = 2;
    assert_true(chi_square(&shot, (double[]){1.0 / 6, 2.0 / 6, 3.0 / 6}, 20000) < 13.82);
    shot.s.temperature = 0.5f;
    assert_true(chi_square(&shot, (double[]){1.0 / 98, 16.0 / 98, 81.0 / 98}, 20000) < 13.82);
}

static void filters_leave_the_rest_in_proportion(void **state) {
    (void)state;
    const double p[] = {0.1, 0.4, 0.2, 0.3};
    float logits[4];
    log_of(p, 4, logits);
    struct shot shot = shot_of(logits, 4);
    shot.s.top_k = 3;
    assert_true(chi_square(&shot, (double[]){0, 4.0 / 9, 2.0 / 9, 3.0 / 9}, 20000) < 13.82);
    shot.s.top_k = 2;
    assert_true(chi_square(&shot, (double[]){0, 4.0 / 7, 0, 3.0 / 7}, 20000) < 10.83);
    shot.s.top_k = 0;
    shot.s.top_p = 0.65f; /* 0.4, 0.3 */
    assert_true(chi_square(&shot, (double[]){0, 4.0 / 7, 0, 3.0 / 7}, 20000) < 10.83);
}

static void top_k_keeps_ties(void **state) {
    (void)state;
    const float logits[] = {2, 3, 1, 2, 2};
    struct shot shot = shot_of(logits, 5);
    shot.s.top_k = 1;
    assert_int_equal(kept(&shot), 1 << 1);
    shot.s.top_k = 2;
    assert_int_equal(kept(&shot), 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4);
    shot.s.top_k = 4;
    assert_int_equal(kept(&shot), 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4);
    for (int32_t off = -1; off <= 0; off++) {
        shot.s.top_k = off;
        assert_int_equal(kept(&shot), 31);
    }
    shot.s.top_k = 1000; /* more than there are */
    assert_int_equal(kept(&shot), 31);
}

static void top_p_drops_the_tail_and_never_the_best(void **state) {
    (void)state;
    const double p[] = {0.125, 0.5, 0.25, 0.125};
    float logits[4];
    log_of(p, 4, logits);
    struct shot shot = shot_of(logits, 4);
    /* From the worst, equal ones by falling id: 3, 0, 2, 1 with sums 0.125, 0.25, 0.5, 1. */
    shot.s.top_p = 0.74f; /* drop while the sum <= 0.26 */
    assert_int_equal(kept(&shot), 1 << 1 | 1 << 2);
    shot.s.top_p = 0.76f; /* <= 0.24 */
    assert_int_equal(kept(&shot), 1 << 1 | 1 << 2 | 1 << 0);
    shot.s.top_p = 0.9f; /* <= 0.1 */
    assert_int_equal(kept(&shot), 15);
    shot.s.top_p = 0.01f;
    assert_int_equal(kept(&shot), 1 << 1);
    /* Four equal ones and exactly one half: 0.25 and 0.5 are both <= 0.5. */
    shot = shot_of((float[]){1, 1, 1, 1}, 4);
    shot.s.top_p = 0.5f;
    assert_int_equal(kept(&shot), 1 << 0 | 1 << 1);
}

static void top_p_counts_what_top_k_left(void **state) {
    (void)state;
    const double p[] = {0.4, 0.3, 0.2, 0.1};
    float logits[4];
    log_of(p, 4, logits);
    struct shot shot = shot_of(logits, 4);
    shot.s.top_p = 0.5f;
    assert_int_equal(kept(&shot), 1 << 0 | 1 << 1);
    shot.s.top_k = 2; /* 4/7 and 3/7: 3/7 <= 1/2 falls */
    assert_int_equal(kept(&shot), 1 << 0);
}

static void min_p_compares_with_the_best(void **state) {
    (void)state;
    const double p[] = {0.5, 0.3, 0.15, 0.05};
    float logits[4];
    log_of(p, 4, logits);
    struct shot shot = shot_of(logits, 4);
    shot.s.min_p = 0.29f; /* 0.145 */
    assert_int_equal(kept(&shot), 7);
    shot.s.min_p = 0.31f; /* 0.155 */
    assert_int_equal(kept(&shot), 3);
    shot.s.min_p = 1;
    assert_int_equal(kept(&shot), 1);
    shot.s.min_p = 0.31f;
    shot.s.temperature = 2; /* sqrt(0.15 / 0.5) = 0.55 stays, sqrt(0.1) = 0.316 stays */
    assert_int_equal(kept(&shot), 15);
}

static void a_draw_depends_on_seed_and_position_alone(void **state) {
    (void)state;
    float logits[32] = {0};
    struct sampler *w;
    int32_t first[50], again;
    size_t n_top;
    struct shot shot = shot_of(logits, 32);
    assert_int_equal(sampler_open(&w, 32, &err), SUMI_OK);
    int differ = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            int at = round == 1 ? 49 - i : i; /* in another order the second time */
            float row[32] = {0};
            shot.c.position = at;
            shot.c.seed = round == 2 ? 6 : 5;
            assert_int_equal(sample_token(w, &shot.s, &shot.c, row, &again, NULL, &n_top, &err),
                             SUMI_OK);
            if (round == 0) first[at] = again;
            if (round == 1) assert_int_equal(again, first[at]);
            if (round == 2) differ += again != first[at];
        }
    }
    assert_true(differ > 30); /* 1 in 32 agrees by chance */
    sampler_close(w);
}

/* ---- what changes logits ---- */

static void penalties_follow_their_formulas(void **state) {
    (void)state;
    const float logits[] = {2, -2, 4, 1, -8};
    const int32_t prompt[] = {0, 0, 4}, output[] = {1, 1, 2};
    struct shot shot = shot_of(logits, 5);
    shot.s.temperature = 0;
    shot.c.prompt = prompt, shot.c.n_prompt = 3;
    shot.c.output = output, shot.c.n_output = 3;
    shot.s.repetition_penalty = 2;
    float row[5];
    processed(&shot, row);
    const float repeated[] = {1, -4, 2, 1, -16};
    assert_memory_equal(row, repeated, sizeof row);
    shot.s.frequency_penalty = 0.5f;
    shot.s.presence_penalty = 0.25f;
    processed(&shot, row);
    const float all[] = {1, -4 - 1 - 0.25f, 2 - 0.5f - 0.25f, 1, -16};
    assert_memory_equal(row, all, sizeof row);
    shot.s.repetition_penalty = 1;
    shot.s.frequency_penalty = 0;
    shot.s.presence_penalty = -1; /* rewards; the prompt does not count */
    processed(&shot, row);
    const float rewarded[] = {2, -1, 5, 1, -8};
    assert_memory_equal(row, rewarded, sizeof row);
}

static void the_highest_penalty_stays_finite(void **state) {
    (void)state;
    const float logits[] = {1e30f, 2, -1e30f};
    const int32_t prompt[] = {0, 2};
    struct shot shot = shot_of(logits, 3);
    shot.c.prompt = prompt, shot.c.n_prompt = 2;
    shot.s.repetition_penalty = 1e-30f;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.id, 0);
    shot.s.temperature = 0.01f;
    shot.s.repetition_penalty = 1e30f; /* 1, 2, a very negative number */
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.id, 1);
}

static void masks_are_stronger_than_bias(void **state) {
    (void)state;
    const float logits[] = {5, 4, 3, 2, -INFINITY};
    const int32_t allowed[] = {3, 1, 3, 4};
    const struct token_bias bias[] = {{0, 100}, {3, 100}, {4, 100}};
    struct shot shot = shot_of(logits, 5);
    shot.s.temperature = 0;
    shot.s.allowed = (struct token_list){allowed, 4};
    float row[5];
    processed(&shot, row);
    const float masked[] = {-INFINITY, 4, -INFINITY, 2, -INFINITY};
    assert_memory_equal(row, masked, sizeof row);
    shot.s.bias = bias, shot.s.n_bias = 3;
    processed(&shot, row);
    const float biased[] = {-INFINITY, 4, -INFINITY, 102, -INFINITY};
    assert_memory_equal(row, biased, sizeof row);
    assert_int_equal(shot.id, 3);
}

static void bias_comes_before_penalties(void **state) {
    (void)state;
    const float logits[] = {-2, 0};
    const int32_t output[] = {0};
    const struct token_bias bias[] = {{0, 6}};
    struct shot shot = shot_of(logits, 2);
    shot.s.temperature = 0;
    shot.s.bias = bias, shot.s.n_bias = 1;
    shot.c.output = output, shot.c.n_output = 1;
    float row[2];
    shot.s.repetition_penalty = 4;
    processed(&shot, row);
    assert_true(row[0] == 1); /* 4 / 4, not -8 + 6 */
}

static void bad_words_need_their_beginning(void **state) {
    (void)state;
    const float logits[] = {5, 4, 3, 2};
    const int32_t alone[] = {0}, pair[] = {2, 1}, triple[] = {3, 2, 2};
    const struct token_list bad[] = {{alone, 1}, {pair, 2}, {triple, 3}};
    const int32_t output[] = {3, 2}, prompt[] = {3, 2};
    struct shot shot = shot_of(logits, 4);
    shot.s.temperature = 0;
    shot.s.bad_words = bad, shot.s.n_bad = 3;
    shot.c.output = output, shot.c.n_output = 2;
    float row[4];
    processed(&shot, row);
    const float both[] = {-INFINITY, -INFINITY, -INFINITY, 2};
    assert_memory_equal(row, both, sizeof row);
    shot.c.n_output = 1; /* output 3: neither beginning is complete */
    processed(&shot, row);
    const float one[] = {-INFINITY, 4, 3, 2};
    assert_memory_equal(row, one, sizeof row);
    shot.c.n_output = 0; /* the prompt does not count */
    shot.c.prompt = prompt, shot.c.n_prompt = 2;
    processed(&shot, row);
    assert_memory_equal(row, one, sizeof row);
}

static void min_tokens_masks_end_and_stop_ids(void **state) {
    (void)state;
    const float logits[] = {5, 4, 3};
    const int32_t eos[] = {0}, stop[] = {1}, output[] = {2, 2};
    struct shot shot = shot_of(logits, 3);
    shot.s.temperature = 0;
    shot.s.min_tokens = 2;
    shot.s.ignore_eos = true; /* changes nothing here */
    shot.s.stop_ids = (struct token_list){stop, 1};
    shot.c.eos = eos, shot.c.n_eos = 1;
    shot.c.output = output, shot.c.n_output = 1;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.id, 2);
    shot.c.n_output = 2;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.id, 0);
}

static void damaged_rows_are_refused(void **state) {
    (void)state;
    float logits[20] = {0};
    for (int at = 0; at < 20; at += 19) { /* inside the vector part and behind it */
        struct shot shot = shot_of(logits, 20);
        shot.logits[at] = NAN;
        assert_int_equal(fire(&shot), SUMI_ERR_NUMERIC);
        assert_non_null(strstr(err.msg, at ? "token 19" : "token 0"));
        shot.logits[at] = INFINITY;
        assert_int_equal(fire(&shot), SUMI_ERR_NUMERIC);
        shot.logits[at] = -INFINITY; /* a token without text */
        assert_int_equal(fire(&shot), SUMI_OK);
    }
    struct shot shot = shot_of((float[]){-INFINITY, -INFINITY}, 2);
    assert_int_equal(fire(&shot), SUMI_ERR_NUMERIC);
    const int32_t only[] = {1};
    shot = shot_of((float[]){1, 2}, 2);
    shot.s.allowed = (struct token_list){only, 1};
    shot.s.stop_ids = (struct token_list){only, 1};
    shot.s.min_tokens = 1;
    assert_int_equal(fire(&shot), SUMI_ERR_NUMERIC);
    assert_non_null(strstr(err.msg, "allowed_token_ids"));
}

/* ---- log probabilities ---- */

static void assert_entry(const struct token_logprob *t, int32_t id, double value, int32_t rank) {
    assert_int_equal(t->id, id);
    assert_int_equal(t->rank, rank);
    if (isinf(value)) assert_true(t->logprob == (float)value);
    else assert_true(fabs((double)t->logprob - value) < 1e-5);
}

static void the_four_modes_differ_as_named(void **state) {
    (void)state;
    const double p[] = {0.1, 0.6, 0.3};
    const struct token_bias bias[] = {{0, 100}};
    struct shot shot = shot_of((float[]){0, 0, 0}, 3);
    log_of(p, 3, shot.logits);
    for (int i = 0; i < 3; i++) shot.logits[i] += 1; /* logits need not be normalised */
    shot.s.bias = bias, shot.s.n_bias = 1;
    shot.s.top_k = 1;
    shot.s.temperature = 0.5f;
    shot.s.n_logprobs = 2;
    shot.c.mode = RAW_LOGPROBS;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.n_top, 3);
    assert_entry(&shot.top[0], 0, log(0.1), 3);
    assert_entry(&shot.top[1], 1, log(0.6), 1);
    assert_entry(&shot.top[2], 2, log(0.3), 2);
    shot.c.mode = RAW_LOGITS;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_entry(&shot.top[0], 0, log(0.1) + 1, 3);
    shot.c.mode = PROCESSED_LOGPROBS;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.n_top, 2);
    assert_entry(&shot.top[0], 0, 0, 1);
    assert_entry(&shot.top[1], 1, -INFINITY, 2);
    shot.c.mode = PROCESSED_LOGITS;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_true(fabs((double)shot.top[0].logprob - 2 * (log(0.1) + 101)) < 1e-4);
    shot.s.temperature = 0; /* greedy: as they are before temperature */
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_true(fabs((double)shot.top[0].logprob - (log(0.1) + 101)) < 1e-4);
    shot.c.mode = PROCESSED_LOGPROBS; /* the bias leaves 1 - 1e-40 for the rest */
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_entry(&shot.top[0], 0, 0, 1);
}

static void the_sampled_token_stands_first_and_once(void **state) {
    (void)state;
    const float logits[] = {1, 3, 2, 3, 0};
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += exp((double)logits[i]);
    struct sampler *w;
    struct token_logprob top[6];
    size_t n;
    assert_int_equal(sampler_open(&w, 5, &err), SUMI_OK);
    assert_int_equal(row_logprobs(w, logits, 4, 3, top, &n, &err), SUMI_OK);
    assert_int_equal(n, 4);
    assert_entry(&top[0], 4, 0 - log(sum), 5);
    assert_entry(&top[1], 1, 3 - log(sum), 1);
    assert_entry(&top[2], 3, 3 - log(sum), 2);
    assert_entry(&top[3], 2, 2 - log(sum), 3);
    assert_int_equal(row_logprobs(w, logits, 3, 3, top, &n, &err), SUMI_OK);
    assert_int_equal(n, 3);
    assert_entry(&top[0], 3, 3 - log(sum), 2);
    assert_entry(&top[1], 1, 3 - log(sum), 1);
    assert_entry(&top[2], 2, 2 - log(sum), 3);
    assert_int_equal(row_logprobs(w, logits, 3, 1, top, &n, &err), SUMI_OK);
    assert_int_equal(n, 2); /* of two equal ones the lower id is among the best */
    assert_entry(&top[0], 3, 3 - log(sum), 2);
    assert_entry(&top[1], 1, 3 - log(sum), 1);
    assert_int_equal(row_logprobs(w, logits, 2, 0, top, &n, &err), SUMI_OK);
    assert_int_equal(n, 1);
    assert_entry(&top[0], 2, 2 - log(sum), 3);
    assert_int_equal(row_logprobs(w, logits, 0, 5, top, &n, &err), SUMI_OK);
    assert_int_equal(n, 5); /* all, each once */
    const float damaged[] = {1, NAN, 2, 3, 0};
    assert_int_equal(row_logprobs(w, damaged, 0, 5, top, &n, &err), SUMI_ERR_NUMERIC);
    sampler_close(w);
}

static void listed_ids_replace_the_best(void **state) {
    (void)state;
    const int32_t list[] = {0, 2, 0, 1};
    struct shot shot = shot_of((float[]){1, 5, -INFINITY, 2}, 4);
    shot.s.temperature = 0;
    shot.s.logprob_ids = (struct token_list){list, 4};
    shot.c.mode = RAW_LOGITS;
    assert_int_equal(fire(&shot), SUMI_OK);
    assert_int_equal(shot.n_top, 3);
    assert_entry(&shot.top[0], 1, 5, 1);
    assert_entry(&shot.top[1], 0, 1, 3);
    assert_entry(&shot.top[2], 2, -INFINITY, 4);
}

/* ---- parameters ---- */

static void assert_refused(struct sampling s, const char *param) {
    memset(&err, 0, sizeof err);
    assert_int_equal(sampling_check(&s, 100, 20, &err), SUMI_ERR_ARG);
    assert_string_equal(err.param, param);
    assert_non_null(strstr(err.msg, param));
}

#define REFUSED(param, ...)                      \
    do {                                         \
        struct sampling s_ = sampling_default(); \
        struct sampling *s = &s_;                \
        __VA_ARGS__;                             \
        assert_refused(s_, param);               \
    } while (0)

static void values_out_of_range_name_their_field(void **state) {
    (void)state;
    static const int32_t below[] = {5, -1}, beyond[] = {100}, many[129];
    static const struct token_list empty = {below, 0}, foreign = {beyond, 1};
    static const struct token_bias bias[] = {{100, 1}}, endless[] = {{1, INFINITY}};
    static const char *const stop[] = {"a", ""};
    static const size_t stop_len[] = {1, 0};
    REFUSED("temperature", s->temperature = -0.1f);
    REFUSED("temperature", s->temperature = 2.1f);
    REFUSED("temperature", s->temperature = NAN);
    REFUSED("top_p", s->top_p = 0);
    REFUSED("top_p", s->top_p = 1.1f);
    REFUSED("top_p", s->top_p = NAN);
    REFUSED("min_p", s->min_p = -0.1f);
    REFUSED("min_p", s->min_p = 1.1f);
    REFUSED("top_k", s->top_k = -2);
    REFUSED("presence_penalty", s->presence_penalty = 2.5f);
    REFUSED("frequency_penalty", s->frequency_penalty = -2.5f);
    REFUSED("repetition_penalty", s->repetition_penalty = 0);
    REFUSED("repetition_penalty", s->repetition_penalty = INFINITY);
    REFUSED("max_tokens", s->max_tokens = 0);
    REFUSED("min_tokens", s->min_tokens = -1);
    REFUSED("min_tokens", s->max_tokens = 4, s->min_tokens = 5);
    REFUSED("logprobs", s->n_logprobs = 21);
    REFUSED("logprobs", s->n_logprobs = -2);
    REFUSED("prompt_logprobs", s->n_prompt_logprobs = 21);
    REFUSED("stop_token_ids", s->stop_ids = (struct token_list){below, 2});
    REFUSED("allowed_token_ids", s->allowed = foreign);
    REFUSED("logprob_token_ids", s->logprob_ids = foreign);
    REFUSED("logprob_token_ids", s->logprob_ids = (struct token_list){many, 129});
    REFUSED("bad_words", s->bad_words = &foreign, s->n_bad = 1);
    REFUSED("bad_words", s->bad_words = &empty, s->n_bad = 1);
    REFUSED("logit_bias", s->bias = bias, s->n_bias = 1);
    REFUSED("logit_bias", s->bias = endless, s->n_bias = 1);
    REFUSED("stop", s->stop = stop, s->stop_len = stop_len, s->n_stop = 2);
}

static void limits_are_inside_the_ranges(void **state) {
    (void)state;
    struct sampling s = sampling_default();
    assert_int_equal(sampling_check(&s, 100, 20, &err), SUMI_OK);
    assert_true(s.temperature == 1 && s.top_p == 1 && s.repetition_penalty == 1);
    assert_int_equal(s.n_logprobs, -1);
    s.temperature = 2, s.min_p = 1, s.top_k = -1, s.presence_penalty = -2;
    s.frequency_penalty = 2, s.n_logprobs = 20, s.n_prompt_logprobs = 0;
    s.max_tokens = s.min_tokens = 1;
    assert_int_equal(sampling_check(&s, 100, 20, &err), SUMI_OK);
    s.n_logprobs = 1000; /* without a cap: all there are */
    assert_int_equal(sampling_check(&s, 100, -1, &err), SUMI_OK);
    assert_int_equal(s.n_logprobs, 100);
    s.temperature = 0.001f;
    assert_int_equal(sampling_check(&s, 100, -1, &err), SUMI_OK);
    assert_true(s.temperature == 0.01f);
    s.temperature = 0;
    assert_int_equal(sampling_check(&s, 100, -1, &err), SUMI_OK);
    assert_true(s.temperature == 0);
}

static void a_sampler_opens_or_frees_everything(void **state) {
    (void)state;
    struct sampler *w = NULL;
    sumi_status status = SUMI_ERR_MEMORY;
    for (long n = 1; status == SUMI_ERR_MEMORY; n++) {
        mem_fail_at(n);
        status = sampler_open(&w, 10, &err);
        mem_fail_at(0);
        assert_true((status == SUMI_OK) == (w != NULL));
    }
    assert_int_equal(status, SUMI_OK);
    sampler_close(w);
    assert_int_equal(sampler_open(&w, 0, &err), SUMI_ERR_ARG);
    sampler_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_words),
        cmocka_unit_test(seed_and_position_are_key_and_counter),
        cmocka_unit_test(random_numbers_are_uniform),
        cmocka_unit_test(the_kth_largest_is_what_sorting_gives),
        cmocka_unit_test(a_weighted_cut_stops_where_the_weight_is_reached),
        cmocka_unit_test(greedy_takes_the_lowest_of_equal_ids),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(temperature_flattens_and_sharpens),
        cmocka_unit_test(filters_leave_the_rest_in_proportion),
        cmocka_unit_test(top_k_keeps_ties),
        cmocka_unit_test(top_p_drops_the_tail_and_never_the_best),
        cmocka_unit_test(top_p_counts_what_top_k_left),
        cmocka_unit_test(min_p_compares_with_the_best),
        cmocka_unit_test(a_draw_depends_on_seed_and_position_alone),
        cmocka_unit_test(penalties_follow_their_formulas),
        cmocka_unit_test(the_highest_penalty_stays_finite),
        cmocka_unit_test(masks_are_stronger_than_bias),
        cmocka_unit_test(bias_comes_before_penalties),
        cmocka_unit_test(bad_words_need_their_beginning),
        cmocka_unit_test(min_tokens_masks_end_and_stop_ids),
        cmocka_unit_test(damaged_rows_are_refused),
        cmocka_unit_test(the_four_modes_differ_as_named),
        cmocka_unit_test(the_sampled_token_stands_first_and_once),
        cmocka_unit_test(listed_ids_replace_the_best),
        cmocka_unit_test(values_out_of_range_name_their_field),
        cmocka_unit_test(limits_are_inside_the_ranges),
        cmocka_unit_test(a_sampler_opens_or_frees_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
