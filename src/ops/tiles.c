/* Rows of a file's blocks flow in, tiles of 16 interleaved rows flow out; no value is changed.
 * Refuses to know instruction sets: every vector width reads the same tiles. */
#include "ops/tiles.h"

#include <string.h>

#include "base/size.h"

enum { R = TILE_ROWS };

/* Columns and bytes of one step of a tile (16 rows). */
struct step_size {
    int64_t columns;
    size_t bytes;
};

static struct step_size step_of(enum dtype t) {
    switch (t) {
    case DT_BF16: return (struct step_size){2, 2 * 2 * R};
    case DT_F16: return (struct step_size){1, 2 * R};
    case DT_F32: return (struct step_size){1, 4 * R};
    case DT_Q8_0: return (struct step_size){32, 34 * R};
    case DT_NVFP4: return (struct step_size){64, 36 * R};
    case DT_Q4_K: return (struct step_size){256, 148 * R};
    case DT_Q6_K: return (struct step_size){256, 210 * R};
    case DT_Q4_0:
    case DT_Q4_1:
    case DT_Q5_K:
    case DT_E4M3:
    case DT_U8:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_F64:
    case DT_BOOL:
    case DT_COUNT: break;
    }
    return (struct step_size){0, 0};
}

bool tiles_have(enum dtype t) {
    return step_of(t).columns != 0;
}

bool tiles_bytes(const struct weight *w, size_t *tile_bytes, size_t *total) {
    struct step_size s = step_of(w->dtype);
    if (!s.columns) return false;
    size_t steps = (size_t)((w->n_in + s.columns - 1) / s.columns);
    return size_mul(steps, s.bytes, tile_bytes) &&
           size_mul(*tile_bytes, (size_t)((w->n_out + R - 1) / R), total);
}

static void put_nibble(uint8_t *words, int row, int column, unsigned code) {
    words[(column / 8 * R + row) * 4 + column % 8 / 2] |= (uint8_t)(code << (column % 2 * 4));
}

/* 4 scales, then 4 times 8 bytes: column j low in byte j, column j + 8 high. A scale of 0x7F means
 * 0, and bit 7 means nothing: both are settled here. */
static void nvfp4_block(const uint8_t *src, int row, uint8_t *dst) {
    for (int g = 0; g < 4; g++) {
        uint8_t scale = src[g] & 0x7F;
        dst[g * R + row] = scale == 0x7F ? 0 : scale;
        for (int j = 0; j < 8; j++) {
            uint8_t byte = src[4 + 8 * g + j];
            put_nibble(dst + 4 * R, row, 16 * g + j, byte & 15);
            put_nibble(dst + 4 * R, row, 16 * g + j + 8, byte >> 4);
        }
    }
}

static void q8_0_block(const uint8_t *src, int row, uint8_t *dst) {
    memcpy(dst + 2 * row, src, 2);
    for (int j = 0; j < 32; j++) dst[2 * R + j * R + row] = src[2 + j];
}

static void q4_k_block(const uint8_t *src, int row, uint8_t *dst) {
    const uint8_t *s = src + 4;
    memcpy(dst + 2 * row, src, 2);
    memcpy(dst + 2 * R + 2 * row, src + 2, 2);
    for (int g = 0; g < 8; g++) {
        int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
        int minimum = g < 4 ? s[g + 4] & 63 : (s[g + 4] >> 4) | (s[g] >> 6) << 4;
        dst[4 * R + g * R + row] = (uint8_t)scale;
        dst[12 * R + g * R + row] = (uint8_t)minimum;
        for (int i = 0; i < 32; i++)
            put_nibble(dst + 20 * R, row, 32 * g + i, src[16 + g / 2 * 32 + i] >> (g % 2 * 4) & 15);
    }
}

static void q6_k_block(const uint8_t *src, int row, uint8_t *dst) {
    const uint8_t *low = src, *high = src + 128;
    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i % 128 / 32, l = i % 32;
        unsigned nibble = low[64 * half + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
        unsigned pair = high[32 * half + l] >> (2 * quarter) & 3;
        put_nibble(dst, row, i, nibble);
        dst[128 * R + (i / 16 * R + row) * 4 + i % 16 / 4] |= (uint8_t)(pair << (i % 4 * 2));
    }
    for (int g = 0; g < 16; g++) dst[192 * R + g * R + row] = src[192 + g];
    memcpy(dst + 208 * R + 2 * row, src + 208, 2);
}

/* Formats of single values: v bytes each, `pair` columns side by side. */
static void plain_row(const struct weight *w, const uint8_t *src, size_t v, int64_t pair, int row,
                      uint8_t *dst) {
    for (int64_t k = 0; k < w->n_in; k++)
        memcpy(dst + ((size_t)(k / pair * R + row) * (size_t)pair + (size_t)(k % pair)) * v,
               src + (size_t)k * v, v);
}

static void block_row(const struct weight *w, const uint8_t *src, int row, uint8_t *dst) {
    struct step_size s = step_of(w->dtype);
    size_t bytes = (size_t)dtype_info(w->dtype)->bytes;
    for (int64_t k = 0; k < w->n_in; k += s.columns, src += bytes, dst += s.bytes) {
        if (w->dtype == DT_NVFP4) nvfp4_block(src, row, dst);
        else if (w->dtype == DT_Q8_0) q8_0_block(src, row, dst);
        else if (w->dtype == DT_Q4_K) q4_k_block(src, row, dst);
        else q6_k_block(src, row, dst);
    }
}

struct pack_job {
    const struct weight *w;
    struct tiles *t;
};

static void pack_tile(void *ctx, int64_t tile) {
    const struct pack_job *j = ctx;
    const struct weight *w = j->w;
    uint8_t *dst = j->t->data + (size_t)tile * j->t->tile_bytes;
    memset(dst, 0, j->t->tile_bytes);
    for (int row = 0; row < R && tile * R + row < w->n_out; row++) {
        const uint8_t *src = (const uint8_t *)w->data + (size_t)(tile * R + row) * w->row_bytes;
        if (w->dtype == DT_BF16) plain_row(w, src, 2, 2, row, dst);
        else if (w->dtype == DT_F16) plain_row(w, src, 2, 1, row, dst);
        else if (w->dtype == DT_F32) plain_row(w, src, 4, 1, row, dst);
        else block_row(w, src, row, dst);
    }
}

void tiles_pack(struct pool *pool, const struct weight *w, struct tiles *t) {
    size_t total;
    tiles_bytes(w, &t->tile_bytes, &total);
    t->origin = *w;
    t->n_tile = (w->n_out + R - 1) / R;
    t->scale = w->dtype == DT_NVFP4 ? w->scale * 256.0f : w->scale;
    struct pack_job j = {w, t};
    pool_run(pool, t->n_tile, pack_tile, &j);
}
