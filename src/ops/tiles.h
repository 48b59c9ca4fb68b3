/* The CPU's own copy of a weight: 16 rows interleaved, so that one vector register holds the same
 * column of 16 rows and a product needs no sum across lanes. Values stay packed as in the file.
 *
 *   BF16   [k / 2][row][2]            u16 pairs of columns
 *   F16    [k][row]                   F32 the same
 *   Q8_0   per 32 columns: f16 d[row], i8 [32][row]
 *   NVFP4  per 64 columns: u8 scale[4][row], u32 [8][row]: eight columns' codes, lowest first
 *   Q4_K   per 256 columns: f16 d[row], dmin[row], u8 scale[8][row], min[8][row], u32 [32][row]
 *   Q6_K   per 256 columns: u32 low[32][row], u32 high[16][row] (2 bits of 16 columns),
 *          i8 scale[16][row], f16 d[row]
 *
 * Rows beyond n_out are zero. */
#ifndef SUMI_OPS_TILES_H
#define SUMI_OPS_TILES_H

#include <stdbool.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/weight.h"

enum { TILE_ROWS = 16 };

struct tiles {
    struct weight origin; /* where the values came from */
    int64_t n_tile;
    size_t tile_bytes;
    uint8_t *data; /* 64-byte aligned, [n_tile][tile_bytes] */
    float scale;   /* of the f32 sum; NVFP4: with the 2^8 that its scales lack in registers */
};

/* Formats that have tiles; others are read where they are. */
bool tiles_have(enum dtype t);

/* Bytes of the tiles of w; false if the format has none or the size overflows. */
bool tiles_bytes(const struct weight *w, size_t *tile_bytes, size_t *total);

/* Fills t->data (given by the caller, tiles_bytes) from w. Parts run on the pool, so that each
 * page is first touched by a worker. */
void tiles_pack(struct pool *pool, const struct weight *w, struct tiles *t);

/* A weight whose data is a struct tiles says so by row_bytes 0. */
static inline bool weight_is_tiled(const struct weight *w) {
    return w->n_out && w->row_bytes == 0;
}

static inline const struct tiles *weight_tiles(const struct weight *w) {
    return (const struct tiles *)w->data;
}

#endif
