/* Decoding of stored number formats to f32: the definition every fast version is compared with.
 * Formulas: docs/formats.md. */
#ifndef SUMI_FILE_BLOCK_H
#define SUMI_FILE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* Decodes n values (a multiple of the format's block) from src to dst. F32, F16, BF16, E4M3 and all
 * GGUF blocks; NVFP4 without its per-tensor scale. src may be misaligned. Integer formats are not
 * decoded: calling with one is a bug. */
void block_decode(enum dtype t, const void *src, size_t n, float *dst);

float e4m3_to_f32(uint8_t x);  /* signed OCP E4M3: 0x7F and 0xFF are NaN */
float ue4m3_to_f32(uint8_t x); /* GGUF's block scale: bit 7 ignored, 0x7F is 0 */
float e2m1_to_f32(uint8_t code);

/* NVFP4 from the ModelOpt layout (two codes a byte, low nibble first; scales apart) to GGUF's
 * 64-value blocks, lossless for scales that are neither negative nor NaN (their bit 7 is dropped).
 * weight: n_row * n_col / 2 bytes, scale: n_row * n_col / 16, n_col a multiple of 64. dst:
 * n_row * n_col / 64 * 36 bytes. */
void nvfp4_from_modelopt(const uint8_t *weight, const uint8_t *scale, size_t n_row, size_t n_col,
                         uint8_t *dst);

#endif
