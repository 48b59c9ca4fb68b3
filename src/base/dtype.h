/* Number formats of stored tensors, and bf16/f16 conversion. */
#ifndef SUMI_BASE_DTYPE_H
#define SUMI_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* enumerator, name, values per block, bytes per block. The quantised ones are GGUF's blocks; their
 * layout and formula stand in file/block.h. */
#define DTYPE_LIST(X)         \
    X(F32, "F32", 1, 4)       \
    X(F16, "F16", 1, 2)       \
    X(BF16, "BF16", 1, 2)     \
    X(Q4_0, "Q4_0", 32, 18)   \
    X(Q4_1, "Q4_1", 32, 20)   \
    X(Q8_0, "Q8_0", 32, 34)   \
    X(Q4_K, "Q4_K", 256, 144) \
    X(Q5_K, "Q5_K", 256, 176) \
    X(Q6_K, "Q6_K", 256, 210) \
    X(NVFP4, "NVFP4", 64, 36) \
    X(E4M3, "F8_E4M3", 1, 1)  \
    X(U8, "U8", 1, 1)         \
    X(I8, "I8", 1, 1)         \
    X(I16, "I16", 1, 2)       \
    X(I32, "I32", 1, 4)       \
    X(I64, "I64", 1, 8)       \
    X(F64, "F64", 1, 8)       \
    X(BOOL, "BOOL", 1, 1)

enum dtype {
#define X(name, text, values, bytes) DT_##name,
    DTYPE_LIST(X)
#undef X
        DT_COUNT
};

struct dtype_info {
    const char *name; /* as in safetensors headers and GGUF lists */
    int block;        /* values per block; a row's length is a multiple of it */
    int bytes;        /* bytes per block */
};

const struct dtype_info *dtype_info(enum dtype t);
bool dtype_parse(const char *name, enum dtype *out);

/* Bytes of a row of n values; false if n is no multiple of the block or the size overflows. */
bool dtype_row_bytes(enum dtype t, size_t n, size_t *bytes);

typedef uint16_t bf16;

static inline float bf16_to_f32(bf16 x) {
    uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* Round to nearest even; NaN stays NaN. */
static inline bf16 bf16_from_f32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (bf16)(u >> 16 | 0x40);
    return (bf16)((u + 0x7FFFu + (u >> 16 & 1)) >> 16);
}

static inline float bf16_round(float f) {
    return bf16_to_f32(bf16_from_f32(f));
}

float f16_to_f32(uint16_t x);
uint16_t f16_from_f32(float f); /* round to nearest even */

#endif
