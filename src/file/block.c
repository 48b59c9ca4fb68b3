/* Stored values flow in, f32 values flow out, one block at a time and as plainly as the formulas in
 * docs/formats.md. Refuses to be fast: it is what fast versions are compared with. */
#include "file/block.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "file/le.h"

float e2m1_to_f32(uint8_t code) {
    static const float value[16] = {0, .5f,  1,  1.5f,  2,  3,  4,  6,
                                    0, -.5f, -1, -1.5f, -2, -3, -4, -6};
    return value[code & 15];
}

static float e4m3_magnitude(int bits) {
    int e = bits >> 3, m = bits & 7;
    return e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
}

float e4m3_to_f32(uint8_t x) {
    float v = (x & 0x7F) == 0x7F ? NAN : e4m3_magnitude(x & 0x7F);
    return x & 0x80 ? -v : v;
}

float ue4m3_to_f32(uint8_t x) {
    return (x & 0x7F) == 0x7F ? 0 : e4m3_magnitude(x & 0x7F);
}

static float le_half(const uint8_t *p) {
    return f16_to_f32(le16(p));
}

static void f32_value(const uint8_t *src, float *y) {
    *y = le_f32(src);
}

static void f16_value(const uint8_t *src, float *y) {
    *y = le_half(src);
}

static void bf16_value(const uint8_t *src, float *y) {
    *y = bf16_to_f32(le16(src));
}

static void e4m3_value(const uint8_t *src, float *y) {
    *y = e4m3_to_f32(*src);
}

/* f16 d, 16 bytes of nibbles: value j low in byte j, value j + 16 high. */
static void q4_0_block(const uint8_t *src, float *y) {
    float d = le_half(src);
    const uint8_t *q = src + 2;
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)((q[j] & 15) - 8);
        y[j + 16] = d * (float)((q[j] >> 4) - 8);
    }
}

/* f16 d, f16 m, nibbles as Q4_0. */
static void q4_1_block(const uint8_t *src, float *y) {
    float d = le_half(src), m = le_half(src + 2);
    const uint8_t *q = src + 4;
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)(q[j] & 15) + m;
        y[j + 16] = d * (float)(q[j] >> 4) + m;
    }
}

/* f16 d, 32 signed bytes. */
static void q8_0_block(const uint8_t *src, float *y) {
    float d = le_half(src);
    for (int j = 0; j < 32; j++) y[j] = d * (float)(int8_t)src[2 + j];
}

/* The 6-bit scale and minimum of group g of a Q4_K or Q5_K block, packed into 12 bytes. */
static void k_scale(const uint8_t *s, int g, int *scale, int *minimum) {
    if (g < 4) {
        *scale = s[g] & 63;
        *minimum = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
        *minimum = (s[g + 4] >> 4) | (s[g] >> 6) << 4;
    }
}

/* 8 groups of 32 values: f16 d, f16 dmin, 12 bytes of scales, [high: a fifth bit of each value,]
 * nibbles. high is NULL for Q4_K. */
static void k_block(const uint8_t *src, const uint8_t *high, const uint8_t *q, float *y) {
    float d = le_half(src), dmin = le_half(src + 2);
    for (int g = 0; g < 8; g++) {
        int scale, minimum;
        k_scale(src + 4, g, &scale, &minimum);
        float a = d * (float)scale, b = dmin * (float)minimum;
        for (int i = 0; i < 32; i++) {
            int v = q[g / 2 * 32 + i] >> (g % 2 * 4) & 15;
            if (high) v |= (high[i] >> g & 1) << 4;
            y[g * 32 + i] = a * (float)v - b;
        }
    }
}

static void q4_k_block(const uint8_t *src, float *y) {
    k_block(src, NULL, src + 16, y);
}

static void q5_k_block(const uint8_t *src, float *y) {
    k_block(src, src + 16, src + 48, y);
}

/* 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales of 16 values, f16 d. */
static void q6_k_block(const uint8_t *src, float *y) {
    const uint8_t *low = src, *high = src + 128, *scale = src + 192;
    float d = le_half(src + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i % 128 / 32, l = i % 32;
        int nibble = low[64 * half + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
        int pair = high[32 * half + l] >> (2 * quarter) & 3;
        y[i] = d * (float)(int8_t)scale[i / 16] * (float)((nibble | pair << 4) - 32);
    }
}

/* 4 scales of 16 values, then 4 times 8 bytes: value j low in byte j, value j + 8 high. */
static void nvfp4_block(const uint8_t *src, float *y) {
    for (int s = 0; s < 4; s++) {
        float d = ue4m3_to_f32(src[s]);
        const uint8_t *q = src + 4 + 8 * s;
        for (int j = 0; j < 8; j++) {
            y[16 * s + j] = d * e2m1_to_f32(q[j] & 15);
            y[16 * s + j + 8] = d * e2m1_to_f32(q[j] >> 4);
        }
    }
}

static void (*block_function(enum dtype t))(const uint8_t *, float *) {
    switch (t) {
    case DT_F32: return f32_value;
    case DT_F16: return f16_value;
    case DT_BF16: return bf16_value;
    case DT_E4M3: return e4m3_value;
    case DT_Q4_0: return q4_0_block;
    case DT_Q4_1: return q4_1_block;
    case DT_Q8_0: return q8_0_block;
    case DT_Q4_K: return q4_k_block;
    case DT_Q5_K: return q5_k_block;
    case DT_Q6_K: return q6_k_block;
    case DT_NVFP4: return nvfp4_block;
    case DT_U8:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_F64:
    case DT_BOOL:
    case DT_COUNT: break;
    }
    return NULL;
}

void block_decode(enum dtype t, const void *src, size_t n, float *dst) {
    const struct dtype_info *d = dtype_info(t);
    void (*decode)(const uint8_t *, float *) = block_function(t);
    const uint8_t *p = src;
    assert(decode && n % (size_t)d->block == 0);
    for (size_t i = 0; i < n; i += (size_t)d->block, p += d->bytes) decode(p, dst + i);
}

/* Codes 2i and 2i + 1 share byte i of src; codes j and j + 8 share byte j of dst. */
static void repack_group(const uint8_t src[8], uint8_t dst[8]) {
    for (int j = 0; j < 8; j++) {
        int low = src[j / 2] >> (j % 2 * 4) & 15, high = src[4 + j / 2] >> (j % 2 * 4) & 15;
        dst[j] = (uint8_t)(low | high << 4);
    }
}

void nvfp4_from_modelopt(const uint8_t *weight, const uint8_t *scale, size_t n_row, size_t n_col,
                         uint8_t *dst) {
    size_t n_block = n_row * (n_col / 64);
    for (size_t b = 0; b < n_block; b++, weight += 32, scale += 4, dst += 36)
        for (int s = 0; s < 4; s++) {
            dst[s] = scale[s] & 0x7F;
            repack_group(weight + 8 * s, dst + 4 + 8 * s);
        }
}
