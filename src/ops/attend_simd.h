/* Attention of some queries over one page, compiled once per instruction set.
 *
 * Bound: bytes of keys and values for one query group, multiply-adds for many. Keys are widened to
 * f32 once and serve every query from the first cache, then values take their place. A query's sums
 * depend only on the positions it sees: scores one by one, values from the lowest position up. */
#include <math.h>

#include "base/pages.h"
#include "ops/kernels.h"
#include "ops/simd.h"

enum { ATTEND_DIM = 512, ATTEND_WIDE = 8 }; /* registers of output in flight */

/* Rows [from, to] of a page's keys or values to f32, each padded with zeros to whole registers. */
static void widen(const struct attend_job *j, const uint8_t *page, int32_t from, int32_t to,
                  int64_t stride, float *out) {
    for (int32_t r = from; r <= to; r++) {
        float *row = out + r * stride;
        int64_t d = j->head_dim, i = 0;
        const uint8_t *src = page + (size_t)(r * d) * (j->bf16 ? 2 : 4);
        if (!j->bf16) {
            memcpy(row, src, (size_t)d * sizeof *row);
            i = d;
        }
        for (; i + LANES <= d; i += LANES)
            vf_store(row + i, vf_u16_high((const uint16_t *)(const void *)src + i));
        for (; i < d; i++) {
            uint32_t u = (uint32_t)((const uint16_t *)(const void *)src)[i] << 16;
            memcpy(row + i, &u, 4);
        }
        for (; i < stride; i++) row[i] = 0;
    }
}

/* The sums of four registers, each in the order of vf_sum. */
INLINE __m128 sum_4(vf a, vf b, vf c, vf d) {
#ifdef __AVX512F__
#define FOLD(x) _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1))
#else
#define FOLD(x) _mm256_add_ps(x.a, x.b)
#endif
#define QUARTER(h) _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1))
    __m256 fa = FOLD(a), fb = FOLD(b), fc = FOLD(c), fd = FOLD(d);
    __m128 qa = QUARTER(fa), qb = QUARTER(fb), qc = QUARTER(fc), qd = QUARTER(fd);
    __m128 ab = _mm_add_ps(_mm_shuffle_ps(qa, qb, 0x44), _mm_shuffle_ps(qa, qb, 0xEE));
    __m128 cd = _mm_add_ps(_mm_shuffle_ps(qc, qd, 0x44), _mm_shuffle_ps(qc, qd, 0xEE));
    return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xDD));
#undef FOLD
#undef QUARTER
}

/* score[r] = scale * q . k[r] for r in [from, to], four at a time: beyond `to` rows repeat. */
INLINE void scores_of(const float *q, const float *keys, int64_t stride, int64_t width,
                      int32_t from, int32_t to, float scale, float *score) {
    for (int32_t r = from; r <= to; r += 4) {
        const float *k0 = keys + r * stride, *k1 = r + 1 > to ? k0 : k0 + stride;
        const float *k2 = r + 2 > to ? k0 : k0 + 2 * stride;
        const float *k3 = r + 3 > to ? k0 : k0 + 3 * stride;
        vf a = vf_zero(), b = a, c = a, d = a;
        for (int64_t i = 0; i < width; i += LANES) {
            vf v = vf_load(q + i);
            a = vf_fma(v, vf_load(k0 + i), a);
            b = vf_fma(v, vf_load(k1 + i), b);
            c = vf_fma(v, vf_load(k2 + i), c);
            d = vf_fma(v, vf_load(k3 + i), d);
        }
        float four[4];
        _mm_storeu_ps(four, _mm_mul_ps(sum_4(a, b, c, d), _mm_set1_ps(scale)));
        memcpy(score + r, four, (size_t)(to - r + 1 < 4 ? to - r + 1 : 4) * sizeof *four);
    }
}

/* Scores become weights exp(s - max); the state and the output so far move to the new maximum.
 * Scores outside [from, to] are -infinity and become 0. */
INLINE void soften(const struct attend_job *j, float *score, struct attend_state *state, float *o,
                   int64_t stride) {
    vf most = vf_set1(-INFINITY);
    for (int i = 0; i < PAGE_TOKENS; i += LANES) most = vf_max(vf_load(score + i), most);
    float lane[LANES], max = state->max;
    vf_store(lane, most);
    for (int i = 0; i < LANES; i++) max = lane[i] > max ? lane[i] : max;
    if (max > state->max) {
        float factor = expf(state->max - max);
        state->sum *= factor;
        for (int64_t i = 0; i < stride; i += LANES)
            vf_store(o + i, vf_mul(vf_load(o + i), vf_set1(factor)));
        state->max = max;
    }
    vf sum = vf_zero();
    for (int i = 0; i < PAGE_TOKENS; i += LANES) {
        vf e = vf_exp(vf_sub(vf_load(score + i), vf_set1(max)));
        sum = vf_add(sum, e);
        vf_store(score + i, j->bf16 ? vf_bf16_round(e) : e);
    }
    state->sum += vf_sum(sum);
}

/* o[0..16 n) += sum over r in [from, to] of weight[r] * v[r] */
INLINE void weigh_values(const int n, const float *weight, const float *v, int64_t stride,
                         int32_t from, int32_t to, float *o) {
    vf sum[ATTEND_WIDE];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) sum[i] = vf_load(o + i * LANES);
    for (int32_t r = from; r <= to; r++) {
        vf w = vf_set1(weight[r]);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) sum[i] = vf_fma(w, vf_load(v + r * stride + i * LANES), sum[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) vf_store(o + i * LANES, sum[i]);
}

static void all_values(const float *weight, const float *v, int64_t stride, int32_t from,
                       int32_t to, float *o) {
    int64_t i = 0;
    for (; i + 8 * LANES <= stride; i += 8 * LANES)
        weigh_values(8, weight, v + i, stride, from, to, o + i);
    for (; i + 2 * LANES <= stride; i += 2 * LANES)
        weigh_values(2, weight, v + i, stride, from, to, o + i);
    for (; i < stride; i += LANES) weigh_values(1, weight, v + i, stride, from, to, o + i);
}

/* The part of the page that query i sees, as rows; false if none. */
static bool seen(const struct attend_job *j, int32_t i, int32_t *from, int32_t *to) {
    *from = j->first[i] > j->page ? j->first[i] - j->page : 0;
    *to = j->last[i] - j->page < PAGE_TOKENS - 1 ? j->last[i] - j->page : PAGE_TOKENS - 1;
    return *from <= *to;
}

static void attend_page(const struct attend_job *j) {
    int64_t stride = (j->head_dim + LANES - 1) / LANES * LANES;
    float *wide = j->scratch, *scores = wide + PAGE_TOKENS * stride;
    int32_t low = PAGE_TOKENS, high = -1, from, to;
    for (int32_t i = 0; i < j->n_query; i++)
        if (seen(j, i, &from, &to)) {
            low = from < low ? from : low;
            high = to > high ? to : high;
        }
    widen(j, j->keys, low, high, stride, wide);
    for (int32_t i = 0; i < j->n_query; i++) {
        float q[ATTEND_DIM] = {0}, *score = scores + i * PAGE_TOKENS;
        if (!seen(j, i, &from, &to)) continue;
        memcpy(q, j->q[i], (size_t)j->head_dim * sizeof *q);
        for (int r = 0; r < PAGE_TOKENS; r++) score[r] = -INFINITY;
        if (stride == 8 * LANES) scores_of(q, wide, stride, 8 * LANES, from, to, j->scale, score);
        else scores_of(q, wide, stride, stride, from, to, j->scale, score);
        soften(j, score, &j->state[i], j->o + i * stride, stride);
    }
    widen(j, j->values, low, high, stride, wide);
    for (int32_t i = 0; i < j->n_query; i++)
        if (seen(j, i, &from, &to))
            all_values(scores + i * PAGE_TOKENS, wide, stride, from, to, j->o + i * stride);
}

static void attend_join(struct attend_state *total, float *o, const struct attend_state *part,
                        const float *part_o, int32_t d) {
    float max = part->max > total->max ? part->max : total->max;
    float old = total->sum == 0 ? 0 : expf(total->max - max), new = expf(part->max - max);
    total->sum = total->sum * old + part->sum * new;
    total->max = max;
    for (int32_t i = 0; i < d; i += LANES) {
        int64_t m = d - i < LANES ? d - i : LANES;
        vf v = vf_mul(vf_load_n(o + i, m), vf_set1(old));
        vf_store_n(o + i, vf_fma(vf_load_n(part_o + i, m), vf_set1(new), v), m);
    }
}
