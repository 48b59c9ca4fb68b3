/* Sixteen f32 lanes, as one 512-bit register or two of 256 bits, for files compiled once per
 * instruction set. Both spellings do the same arithmetic in the same order, fused multiply-adds
 * included, so AVX2 and AVX-512 give the same bits. */
#ifndef SUMI_OPS_SIMD_H
#define SUMI_OPS_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16 };

#ifdef __AVX512F__

#define ISA(name) name##_avx512
typedef __m512 vf;
typedef __m512i vi;

INLINE vf vf_zero(void) {
    return _mm512_setzero_ps();
}
INLINE vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}
INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void vf_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
INLINE vf vf_load_n(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
INLINE void vf_store_n(float *p, vf x, int64_t n) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}
INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
INLINE vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}
INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
INLINE vf vf_div(vf a, vf b) {
    return _mm512_div_ps(a, b);
}
INLINE vf vf_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
}
INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
INLINE vf vf_fnma(vf a, vf b, vf c) {
    return _mm512_fnmadd_ps(a, b, c);
}
INLINE vf vf_nearest(vf a) {
    return _mm512_roundscale_ps(a, 8);
}
INLINE vi vf_to_int(vf a) {
    return _mm512_cvtps_epi32(a);
}
INLINE vf vi_to_float(vi a) {
    return _mm512_cvtepi32_ps(a);
}
INLINE vf vi_as_float(vi a) {
    return _mm512_castsi512_ps(a);
}
INLINE vi vf_as_int(vf a) {
    return _mm512_castps_si512(a);
}
INLINE vi vi_set1(int32_t x) {
    return _mm512_set1_epi32(x);
}
INLINE vi vi_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE vi vi_add(vi a, vi b) {
    return _mm512_add_epi32(a, b);
}
INLINE vi vi_and(vi a, vi b) {
    return _mm512_and_si512(a, b);
}
INLINE vi vi_or(vi a, vi b) {
    return _mm512_or_si512(a, b);
}
INLINE vi vi_srl(vi a, int n) {
    return _mm512_srli_epi32(a, (unsigned)n);
}
INLINE vi vi_sll(vi a, int n) {
    return _mm512_slli_epi32(a, (unsigned)n);
}
/* a < b ? x : y, lane by lane; false where a or b is NaN. */
INLINE vf vf_less(vf a, vf b, vf x, vf y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
/* x where a is not NaN, else a. */
INLINE vf vf_keep_nan(vf a, vf x) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), x, a);
}
INLINE vf vf_u16_high(const uint16_t *p) {
    __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(u), 16));
}
INLINE vf vf_f16(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vi vi_u8(const void *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi vi_i8(const void *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
/* UE4M3 scales times 2^-8: the bits of an f16 with a smaller bias, subnormals included. */
INLINE vf vf_ue4m3_small(const void *p) {
    __m256i u = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    return _mm512_cvtph_ps(_mm256_slli_epi16(u, 7));
}
/* table[low four bits of each lane] */
INLINE vf vf_lookup(const float *table, vi index) {
    return _mm512_permutexvar_ps(index, _mm512_load_ps(table));
}

#else

#define ISA(name) name##_avx2
typedef struct {
    __m256 a, b;
} vf;
typedef struct {
    __m256i a, b;
} vi;

INLINE vf vf_of(__m256 a, __m256 b) {
    return (vf){a, b};
}
INLINE vi vi_of(__m256i a, __m256i b) {
    return (vi){a, b};
}
INLINE vf vf_zero(void) {
    return vf_of(_mm256_setzero_ps(), _mm256_setzero_ps());
}
INLINE vf vf_set1(float x) {
    return vf_of(_mm256_set1_ps(x), _mm256_set1_ps(x));
}
INLINE vf vf_load(const float *p) {
    return vf_of(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
INLINE void vf_store(float *p, vf x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
INLINE vf vf_load_n(const float *p, int64_t n) {
    float t[LANES] = {0};
    memcpy(t, p, (size_t)n * sizeof *p);
    return vf_load(t);
}
INLINE void vf_store_n(float *p, vf x, int64_t n) {
    float t[LANES];
    vf_store(t, x);
    memcpy(p, t, (size_t)n * sizeof *p);
}
#define VF_2(name, op)                            \
    INLINE vf name(vf x, vf y) {                  \
        return vf_of(op(x.a, y.a), op(x.b, y.b)); \
    }
VF_2(vf_add, _mm256_add_ps)
VF_2(vf_sub, _mm256_sub_ps)
VF_2(vf_mul, _mm256_mul_ps)
VF_2(vf_div, _mm256_div_ps)
VF_2(vf_max, _mm256_max_ps)
#undef VF_2
INLINE vf vf_fma(vf x, vf y, vf z) {
    return vf_of(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
INLINE vf vf_fnma(vf x, vf y, vf z) {
    return vf_of(_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b));
}
INLINE vf vf_nearest(vf x) {
    return vf_of(_mm256_round_ps(x.a, 8), _mm256_round_ps(x.b, 8));
}
INLINE vi vf_to_int(vf x) {
    return vi_of(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
}
INLINE vf vi_to_float(vi x) {
    return vf_of(_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b));
}
INLINE vf vi_as_float(vi x) {
    return vf_of(_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b));
}
INLINE vi vf_as_int(vf x) {
    return vi_of(_mm256_castps_si256(x.a), _mm256_castps_si256(x.b));
}
INLINE vi vi_set1(int32_t x) {
    return vi_of(_mm256_set1_epi32(x), _mm256_set1_epi32(x));
}
INLINE vi vi_load(const void *p) {
    const __m256i *q = p;
    return vi_of(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1));
}
#define VI_2(name, op)                            \
    INLINE vi name(vi x, vi y) {                  \
        return vi_of(op(x.a, y.a), op(x.b, y.b)); \
    }
VI_2(vi_add, _mm256_add_epi32)
VI_2(vi_and, _mm256_and_si256)
VI_2(vi_or, _mm256_or_si256)
#undef VI_2
INLINE vi vi_srl(vi x, int n) {
    return vi_of(_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n));
}
INLINE vi vi_sll(vi x, int n) {
    return vi_of(_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n));
}
INLINE vf vf_less(vf a, vf b, vf x, vf y) {
    return vf_of(_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)));
}
INLINE vf vf_keep_nan(vf a, vf x) {
    return vf_of(_mm256_blendv_ps(x.a, a.a, _mm256_cmp_ps(a.a, a.a, _CMP_UNORD_Q)),
                 _mm256_blendv_ps(x.b, a.b, _mm256_cmp_ps(a.b, a.b, _CMP_UNORD_Q)));
}
INLINE __m128i half_load(const void *p, int i) {
    return _mm_loadu_si128((const __m128i *)p + i);
}
INLINE vf vf_u16_high(const uint16_t *p) {
    return vi_as_float(vi_of(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half_load(p, 0)), 16),
                             _mm256_slli_epi32(_mm256_cvtepu16_epi32(half_load(p, 1)), 16)));
}
INLINE vf vf_f16(const void *p) {
    return vf_of(_mm256_cvtph_ps(half_load(p, 0)), _mm256_cvtph_ps(half_load(p, 1)));
}
INLINE vi vi_u8(const void *p) {
    __m128i u = half_load(p, 0);
    return vi_of(_mm256_cvtepu8_epi32(u), _mm256_cvtepu8_epi32(_mm_srli_si128(u, 8)));
}
INLINE vi vi_i8(const void *p) {
    __m128i u = half_load(p, 0);
    return vi_of(_mm256_cvtepi8_epi32(u), _mm256_cvtepi8_epi32(_mm_srli_si128(u, 8)));
}
INLINE vf vf_ue4m3_small(const void *p) {
    __m256i u = _mm256_slli_epi16(_mm256_cvtepu8_epi16(half_load(p, 0)), 7);
    return vf_of(_mm256_cvtph_ps(_mm256_castsi256_si128(u)),
                 _mm256_cvtph_ps(_mm256_extracti128_si256(u, 1)));
}
INLINE __m256 lookup_half(const float *table, __m256i index) {
    __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), index);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), index);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
INLINE vf vf_lookup(const float *table, vi index) {
    return vf_of(lookup_half(table, index.a), lookup_half(table, index.b));
}

#endif

/* Sum of the lanes in a fixed order: halves are added until one lane is left. */
INLINE float vf_sum(vf x) {
#ifdef __AVX512F__
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
#else
    __m256 h = _mm256_add_ps(x.a, x.b);
#endif
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* Round to bf16, nearest even; NaN stays NaN. */
INLINE vf vf_bf16_round(vf x) {
    vi u = vf_as_int(x);
    vi odd = vi_and(vi_srl(u, 16), vi_set1(1));
    vi r = vi_and(vi_add(vi_add(u, vi_set1(0x7FFF)), odd), vi_set1((int32_t)0xFFFF0000));
    return vf_keep_nan(x, vi_as_float(r));
}

/* e^x to about one unit in the last place; 0 below the smallest normal result, inf above. */
INLINE vf vf_exp(vf x) {
    vf n = vf_nearest(vf_mul(x, vf_set1(1.44269504f)));
    n = vf_less(n, vf_set1(-126.0f), vf_set1(-126.0f), n);
    n = vf_less(vf_set1(127.0f), n, vf_set1(127.0f), n);
    vf r = vf_fnma(n, vf_set1(0.693359375f), x);
    r = vf_fnma(n, vf_set1(-2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_add(vf_fma(p, vf_mul(r, r), r), vf_set1(1.0f));
    vf y = vf_mul(p, vi_as_float(vi_sll(vi_add(vf_to_int(n), vi_set1(127)), 23)));
    y = vf_less(x, vf_set1(-87.33654f), vf_zero(), y);
    y = vf_less(vf_set1(88.72283f), x, vf_set1(__builtin_inff()), y);
    return vf_keep_nan(x, y);
}

#endif
