/* How matrices lie in device memory: tiles of 16 output rows, each a run of chunks of 64 inputs, in
 * the order in which the lanes of a warp feed them to mma.m16n8k16 as operand A.
 *
 * The sum over inputs may run in any order that both operands share. Lane (g = lane / 4,
 * t = lane % 4) takes inputs 16t .. 16t + 15 of a chunk, for the rows g and g + 8 of the tile; step
 * s of the four steps of a chunk multiplies inputs 16t + 4s .. 16t + 4s + 3. So a lane's share of a
 * row is one scale group of NVFP4, and its share of an activation row is 32 consecutive bytes.
 *
 *   BF16   chunk: 4 planes of [lane][8 values]: row g, low and high half; row g + 8, likewise
 *   NVFP4  all chunks' codes [chunk][lane][16 bytes: 8 of row g, 8 of row g + 8], then all scales
 *          [chunk / 4][lane][chunk % 4][2 bytes: row g, row g + 8]
 *
 * Of 8 codes in a 32-bit word, value 2p is at bit 4p and value 2p + 1 at bit 16 + 4p: a shift and
 * two masks leave a pair as two bf16. Scales are unsigned, 5 bits of exponent (bias 10) and 3 of
 * fraction, always normal; a zero scale becomes zero codes. Expanded weights are 2^-16 times their
 * value, which a tile's f32 scale makes good. */
#ifndef SUMI_OPS_CUDA_LAYOUT_CUH
#define SUMI_OPS_CUDA_LAYOUT_CUH

#include <stdint.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__ static inline
#else
#define BOTH static inline
#endif

enum { TILE_ROWS = 16, CHUNK = 64, BF16_CHUNK_BYTES = 2048, NVFP4_CODE_BYTES = 512 };
enum mat_format { MAT_BF16, MAT_NVFP4 };

#define NVFP4_TILE_FACTOR 65536.0f /* 2^16: what expanded NVFP4 weights lack */

BOTH int chunks_of(int n_in) {
    return (n_in + CHUNK - 1) / CHUNK;
}

BOTH uint32_t tile_bytes_of(enum mat_format f, int n_chunk) {
    if (f == MAT_BF16) return (uint32_t)n_chunk * BF16_CHUNK_BYTES;
    return (uint32_t)n_chunk * NVFP4_CODE_BYTES + (uint32_t)((n_chunk + 3) / 4) * 256;
}

/* Byte offsets inside a tile. plane: 0 or 1, low or high half of row g; 2 or 3 of row g + 8. */
BOTH uint32_t bf16_offset(int chunk, int plane, int lane) {
    return (uint32_t)chunk * BF16_CHUNK_BYTES + (uint32_t)plane * 512 + (uint32_t)lane * 16;
}

BOTH uint32_t code_offset(int chunk, int lane) {
    return (uint32_t)chunk * NVFP4_CODE_BYTES + (uint32_t)lane * 16;
}

BOTH uint32_t scale_offset(int n_chunk, int chunk, int lane) {
    return (uint32_t)n_chunk * NVFP4_CODE_BYTES + (uint32_t)(chunk / 4) * 256 + (uint32_t)lane * 8 +
           (uint32_t)(chunk % 4) * 2;
}

/* An E4M3 block scale as 5 bits of exponent and 3 of fraction; 0 for zero. */
BOTH uint32_t scale_recode(uint32_t byte) {
    uint32_t b = byte & 0x7F, e = b >> 3, m = b & 7;
    if (b == 0x7F || b == 0) return 0;
    if (e) return (e + 3) << 3 | m;
    uint32_t p = m >= 4 ? 2 : m >= 2 ? 1 : 0; /* m * 2^-9 = 2^(p - 9) * (m / 2^p) */
    return (p + 1) << 3 | ((m << (3 - p)) & 7);
}

/* Sub-block s of a GGUF NVFP4 block (file/block.h) as two words of codes and a scale byte. */
BOTH void nvfp4_recode(const uint8_t *block, int s, uint32_t words[2], uint32_t *scale) {
    const uint8_t *q = block + 4 + 8 * s;
    words[0] = words[1] = 0;
    *scale = scale_recode(block[s]);
    if (!*scale) return;
    for (int j = 0; j < 8; j++) {
        int shift = 4 * (j / 2) + 16 * (j % 2);
        words[0] |= (uint32_t)(q[j] & 15) << shift;
        words[1] |= (uint32_t)(q[j] >> 4) << shift;
    }
}

/* Pair p of a word of codes as two bf16 patterns: e2m1 * 2^-126. */
BOTH uint32_t code_pair(uint32_t word, int p) {
    uint32_t w = word << (12 - 4 * p);
    return (w & 0x80008000u) | ((w >> 6) & 0x01C001C0u);
}

/* The factor of a scale byte, twice: scale * 2^110 in bf16. */
BOTH uint32_t scale_pair(uint32_t byte) {
    return byte * 0x00100010u + 0x71807180u; /* 227 << 7 */
}

#endif
