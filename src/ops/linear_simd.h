/* Products with tiles, compiled once per instruction set.
 *
 * Bound: bytes of the weights for a few rows, f32 multiply-adds for many. One register holds a
 * column of 16 rows of w; each of up to MAX_T rows of x has an accumulator for each of two tiles,
 * and its element is broadcast. Formats with block scales sum codes within a scale's group, then
 * add group * scale to the row's sum. More rows than MAX_T share a panel: a piece of both tiles
 * expanded to f32 in the L2 cache. Both ways do the same operations in the same order.
 *
 * f32 multiply-adds rather than vdpbf16ps: on Sapphire and Emerald Rapids vdpbf16ps takes 2.2
 * cycles for 32 products, and two fused multiply-adds take one. */
#include "ops/kernels.h"
#include "ops/simd.h"

/* Rows that one inner loop takes: their sums for both tiles must fit into the registers. */
#ifdef __AVX512F__
enum { STEP_T = 8 };
#else
enum { STEP_T = 2 };
#endif
enum { MAX_T = 8, PANEL_K = 1024, PANEL_MIN_ROWS = 17 };

/* Formats of an inner loop: those of tiles.h, and panels by group size. */
enum inner { IN_BF16, IN_F16, IN_F32, IN_Q8_0, IN_NVFP4, IN_Q4_K, IN_Q6_K, IN_PANEL };

struct groups {
    enum inner in;
    int size;    /* columns that share a scale; 0: no scales */
    bool minima; /* value = scale * code - minimum */
    int block;   /* columns of a block of the tile */
    int bytes;   /* of that block, 16 rows */
};

INLINE struct groups groups_of(enum dtype t) {
    switch (t) {
    case DT_BF16: return (struct groups){IN_BF16, 0, false, 2, 64};
    case DT_F16: return (struct groups){IN_F16, 0, false, 1, 32};
    case DT_Q8_0: return (struct groups){IN_Q8_0, 32, false, 32, 544};
    case DT_NVFP4: return (struct groups){IN_NVFP4, 16, false, 64, 576};
    case DT_Q4_K: return (struct groups){IN_Q4_K, 32, true, 256, 2368};
    case DT_Q6_K: return (struct groups){IN_Q6_K, 16, false, 256, 3360};
    default: return (struct groups){IN_F32, 0, false, 1, 64};
    }
}

static const float e2m1_value[16] __attribute__((aligned(64))) = {
    0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};
static const float nibble_value[16]
    __attribute__((aligned(64))) = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/* Low four bits hold two neighbouring pairs; the lower one counts, as the upper bits of a code. */
static const float pair_value[16] __attribute__((aligned(64))) = {-32, -16, 0, 16, -32, -16, 0, 16,
                                                                  -32, -16, 0, 16, -32, -16, 0, 16};

/* Column o + i of group g of a block, o a multiple of 8 and i < 8: its 16 codes. */
INLINE vf code(enum inner in, const uint8_t *block, int g, int o, int i) {
    switch (in) {
    case IN_Q8_0: return vi_to_float(vi_i8(block + 32 + 16 * (o + i)));
    case IN_NVFP4:
        return vf_lookup(e2m1_value, vi_srl(vi_load(block + 64 + 128 * g + 8 * o), 4 * i));
    case IN_Q4_K:
        return vf_lookup(nibble_value, vi_srl(vi_load(block + 320 + 256 * g + 8 * o), 4 * i));
    case IN_Q6_K:
        return vf_add(vf_lookup(nibble_value, vi_srl(vi_load(block + 128 * g + 8 * o), 4 * i)),
                      vf_lookup(pair_value, vi_srl(vi_load(block + 2048 + 64 * g), 2 * (o + i))));
    default: return vf_zero();
    }
}

/* Scale of group g, and the minimum where the format has one. */
INLINE vf scale_of(enum inner in, const uint8_t *block, int g, vf *minimum) {
    switch (in) {
    case IN_Q8_0: return vf_f16(block);
    case IN_NVFP4: return vf_ue4m3_small(block + 16 * g);
    case IN_Q4_K:
        *minimum = vf_mul(vf_f16(block + 32), vi_to_float(vi_u8(block + 192 + 16 * g)));
        return vf_mul(vf_f16(block), vi_to_float(vi_u8(block + 64 + 16 * g)));
    case IN_Q6_K: return vf_mul(vf_f16(block + 3328), vi_to_float(vi_i8(block + 3072 + 16 * g)));
    default: return vf_zero();
    }
}

/* Two expanded tiles: codes [k][2][16], scales and minima [k / group][2][16]. */
struct panel {
    float code[PANEL_K * 2 * LANES];
    float scale[PANEL_K / 16 * 2 * LANES], minimum[PANEL_K / 32 * 2 * LANES];
};

/* The next tile at the place where this one is read: a stream of tiles changes its 4 KiB page too
 * often for the processor's own prefetch. */
INLINE void fetch_ahead(const uint8_t *p, int bytes, size_t ahead) {
    for (int i = 0; i < bytes; i += 64) _mm_prefetch(p + ahead + i, _MM_HINT_T1);
}

INLINE float sum_32(const float *x) {
    return vf_sum(vf_add(vf_load(x), vf_load(x + 16)));
}

/* sum[n][t] += columns [k0, k1) of tiles without scales; k0 is even. */
INLINE void plain_columns(enum inner in, int n_t, const uint8_t *const *tile, const float *const *x,
                          int64_t k0, int64_t k1, size_t ahead, vf sum[2][MAX_T]) {
    const uint8_t *p = tile[0], *q = tile[1];
    int64_t k = k0;
    if (in == IN_BF16) {
        for (; k + 2 <= k1; k += 2) {
            if (ahead) {
                fetch_ahead(p + k * 32, 64, ahead);
                fetch_ahead(q + k * 32, 64, ahead);
            }
            vi a = vi_load(p + k * 32), b = vi_load(q + k * 32);
            vi mask = vi_set1((int32_t)0xFFFF0000);
            vf a0 = vi_as_float(vi_sll(a, 16)), b0 = vi_as_float(vi_sll(b, 16));
            vf a1 = vi_as_float(vi_and(a, mask)), b1 = vi_as_float(vi_and(b, mask));
#pragma GCC unroll 8
            for (int t = 0; t < n_t; t++) {
                vf v = vf_set1(x[t][k]), u = vf_set1(x[t][k + 1]);
                sum[0][t] = vf_fma(a1, u, vf_fma(a0, v, sum[0][t]));
                sum[1][t] = vf_fma(b1, u, vf_fma(b0, v, sum[1][t]));
            }
        }
        if (k == k1) return;
    }
    for (; k < k1; k++) {
        vf a, b;
        if (ahead) {
            int width = in == IN_F32 ? 64 : 32;
            fetch_ahead(p + k * width, 64, ahead);
            fetch_ahead(q + k * width, 64, ahead);
        }
        if (in == IN_BF16) {
            a = vi_as_float(vi_sll(vi_load(p + k * 32), 16));
            b = vi_as_float(vi_sll(vi_load(q + k * 32), 16));
        } else if (in == IN_F16) {
            a = vf_f16(p + k * 32);
            b = vf_f16(q + k * 32);
        } else {
            a = vf_load((const float *)(const void *)p + k * 16);
            b = vf_load((const float *)(const void *)q + k * 16);
        }
#pragma GCC unroll 8
        for (int t = 0; t < n_t; t++) {
            vf v = vf_set1(x[t][k]);
            sum[0][t] = vf_fma(a, v, sum[0][t]);
            sum[1][t] = vf_fma(b, v, sum[1][t]);
        }
    }
}

/* The end of a group: its sums join the rows' sums. */
INLINE void join_group(const struct groups f, int n_t, vf part[2][MAX_T], const vf scale[2],
                       const vf minimum[2], const float *const *x, int64_t k, vf sum[2][MAX_T]) {
#pragma GCC unroll 8
    for (int t = 0; t < n_t; t++) {
        sum[0][t] = vf_fma(part[0][t], scale[0], sum[0][t]);
        sum[1][t] = vf_fma(part[1][t], scale[1], sum[1][t]);
        if (!f.minima) continue;
        vf total = vf_set1(sum_32(x[t] + k));
        sum[0][t] = vf_fnma(minimum[0], total, sum[0][t]);
        sum[1][t] = vf_fnma(minimum[1], total, sum[1][t]);
    }
}

/* sum[n][t] += all columns of packed tiles with scales. */
INLINE void scaled_columns(const struct groups f, int n_t, const uint8_t *const *tile,
                           const float *const *x, int64_t n_in, size_t ahead, vf sum[2][MAX_T]) {
    const uint8_t *p = tile[0], *q = tile[1];
    for (int64_t k0 = 0; k0 < n_in; k0 += f.block, p += f.bytes, q += f.bytes) {
        if (ahead) {
            fetch_ahead(p, f.bytes, ahead);
            fetch_ahead(q, f.bytes, ahead);
        }
        for (int g = 0; g < f.block / f.size; g++) {
            vf part[2][MAX_T], scale[2], minimum[2];
            int64_t k = k0 + g * f.size;
#pragma GCC unroll 8
            for (int t = 0; t < n_t; t++) part[0][t] = part[1][t] = vf_zero();
#pragma GCC unroll 2
            for (int o = 0; o < f.size; o += 8)
#pragma GCC unroll 8
                for (int i = 0; i < 8; i++) {
                    vf a = code(f.in, p, g, o, i), b = code(f.in, q, g, o, i);
#pragma GCC unroll 8
                    for (int t = 0; t < n_t; t++) {
                        vf v = vf_set1(x[t][k + o + i]);
                        part[0][t] = vf_fma(a, v, part[0][t]);
                        part[1][t] = vf_fma(b, v, part[1][t]);
                    }
                }
            scale[0] = scale_of(f.in, p, g, &minimum[0]);
            scale[1] = scale_of(f.in, q, g, &minimum[1]);
            join_group(f, n_t, part, scale, minimum, x, k, sum);
        }
    }
}

/* sum[n][t] += columns [k0, k0 + n) of a panel. */
INLINE void panel_columns(const struct groups f, int n_t, const struct panel *p,
                          const float *const *x, int64_t k0, int64_t n, vf sum[2][MAX_T]) {
    const float *c = p->code;
    if (!f.size) {
        for (int64_t k = 0; k < n; k++, c += 32) {
            vf a = vf_load(c), b = vf_load(c + 16);
#pragma GCC unroll 8
            for (int t = 0; t < n_t; t++) {
                vf v = vf_set1(x[t][k0 + k]);
                sum[0][t] = vf_fma(a, v, sum[0][t]);
                sum[1][t] = vf_fma(b, v, sum[1][t]);
            }
        }
        return;
    }
    for (int64_t g = 0; g < n / f.size; g++) {
        vf part[2][MAX_T], minimum[2] = {vf_zero(), vf_zero()};
#pragma GCC unroll 8
        for (int t = 0; t < n_t; t++) part[0][t] = part[1][t] = vf_zero();
        for (int i = 0; i < f.size; i++, c += 32) {
            vf a = vf_load(c), b = vf_load(c + 16);
#pragma GCC unroll 8
            for (int t = 0; t < n_t; t++) {
                vf v = vf_set1(x[t][k0 + g * f.size + i]);
                part[0][t] = vf_fma(a, v, part[0][t]);
                part[1][t] = vf_fma(b, v, part[1][t]);
            }
        }
        const vf scale[2] = {vf_load(p->scale + g * 32), vf_load(p->scale + g * 32 + 16)};
        if (f.minima) {
            minimum[0] = vf_load(p->minimum + g * 32);
            minimum[1] = vf_load(p->minimum + g * 32 + 16);
        }
        join_group(f, n_t, part, scale, minimum, x, k0 + g * f.size, sum);
    }
}

/* Expands columns [k0, k0 + n) of tile `side`. */
INLINE void expand_as(const struct groups f, const uint8_t *tile, int64_t k0, int64_t n, int side,
                      struct panel *p) {
    float *c = p->code + side * LANES;
    for (int64_t k = 0; !f.size && k < n; k++) {
        int64_t at = k0 + k;
        vf v = f.in == IN_F16   ? vf_f16(tile + at * 32)
               : f.in == IN_F32 ? vf_load((const float *)(const void *)tile + at * 16)
               : at % 2
                   ? vi_as_float(vi_and(vi_load(tile + at / 2 * 64), vi_set1((int32_t)0xFFFF0000)))
                   : vi_as_float(vi_sll(vi_load(tile + at / 2 * 64), 16));
        vf_store(c + k * 32, v);
    }
    for (int64_t k = 0; f.size && k < n; k += f.size) {
        const uint8_t *block = tile + (k0 + k) / f.block * f.bytes;
        int g = (int)((k0 + k) % f.block / f.size);
        vf minimum = vf_zero();
        vf_store(p->scale + k / f.size * 32 + side * LANES, scale_of(f.in, block, g, &minimum));
        if (f.minima) vf_store(p->minimum + k / f.size * 32 + side * LANES, minimum);
#pragma GCC unroll 2
        for (int o = 0; o < f.size; o += 8)
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) vf_store(c + (k + o + i) * 32, code(f.in, block, g, o, i));
    }
}

static void expand(enum dtype t, const uint8_t *tile, int64_t k0, int64_t n, int side,
                   struct panel *p) {
    switch (t) {
    case DT_BF16: expand_as(groups_of(DT_BF16), tile, k0, n, side, p); break;
    case DT_F16: expand_as(groups_of(DT_F16), tile, k0, n, side, p); break;
    case DT_Q8_0: expand_as(groups_of(DT_Q8_0), tile, k0, n, side, p); break;
    case DT_NVFP4: expand_as(groups_of(DT_NVFP4), tile, k0, n, side, p); break;
    case DT_Q4_K: expand_as(groups_of(DT_Q4_K), tile, k0, n, side, p); break;
    case DT_Q6_K: expand_as(groups_of(DT_Q6_K), tile, k0, n, side, p); break;
    default: expand_as(groups_of(DT_F32), tile, k0, n, side, p); break;
    }
}

/* One call of an inner loop: n_t rows of x from row i of the job. */
struct piece {
    const struct tile_job *job;
    const uint8_t *tile[2];
    int64_t i;
    const struct panel *panel; /* NULL: packed tiles, all columns */
    int64_t k0, n;             /* columns of the panel */
};

INLINE void rows_at(const struct piece *p, int n_t, const float **x) {
    const struct tile_job *j = p->job;
    for (int t = 0; t < n_t; t++) {
        int64_t r = p->i + t;
        x[t] = j->x + (j->slot ? j->slot[r] / j->per_row : r) * j->x_stride;
    }
}

/* Lanes of tile n that are rows of w. */
INLINE int64_t lanes_of(const struct tile_job *j, int n) {
    int64_t left = j->w[n]->origin.n_out - j->tile[n] * LANES;
    return left < LANES ? left : LANES;
}

INLINE void load_sums(const struct piece *p, int n_t, vf sum[2][MAX_T]) {
    const struct tile_job *j = p->job;
    for (int n = 0; n < 2; n++)
#pragma GCC unroll 8
        for (int t = 0; t < n_t; t++)
            sum[n][t] = p->k0 && j->w[n]
                            ? vf_load_n(j->y[n] + (p->i + t) * j->stride, lanes_of(j, n))
                            : vf_zero();
}

INLINE void store_sums(const struct piece *p, int n_t, vf sum[2][MAX_T]) {
    const struct tile_job *j = p->job;
    bool last = p->k0 + p->n == j->w[0]->origin.n_in;
    for (int n = 0; n < 2; n++) {
        if (!j->w[n]) continue;
        vf scale = vf_set1(j->w[n]->scale);
#pragma GCC unroll 8
        for (int t = 0; t < n_t; t++) {
            vf v = last ? vf_mul(sum[n][t], scale) : sum[n][t];
            if (last && j->rounded) v = vf_bf16_round(v);
            float *y = j->y[n] + (p->i + t) * j->stride;
            if (lanes_of(j, n) == LANES) vf_store(y, v);
            else vf_store_n(y, v, lanes_of(j, n));
        }
    }
}

INLINE void run_piece(const struct groups f, bool panel, int n_t, const struct piece *p) {
    const float *x[MAX_T];
    vf sum[2][MAX_T];
    rows_at(p, n_t, x);
    load_sums(p, n_t, sum);
    if (panel) panel_columns(f, n_t, p->panel, x, p->k0, p->n, sum);
    else if (f.size) scaled_columns(f, n_t, p->tile, x, p->n, p->job->ahead, sum);
    else plain_columns(f.in, n_t, p->tile, x, 0, p->n, p->job->ahead, sum);
    store_sums(p, n_t, sum);
}

#define PIECES(name, f, panel)                          \
    static void name(int n_t, const struct piece *p) {  \
        switch (n_t) {                                  \
        case 1: run_piece(f, panel, 1, p); break;       \
        case 2: run_piece(f, panel, 2, p); break;       \
        case 4:                                         \
            if (STEP_T >= 4) run_piece(f, panel, 4, p); \
            break;                                      \
        default:                                        \
            if (STEP_T >= 8) run_piece(f, panel, 8, p); \
            break;                                      \
        }                                               \
    }
PIECES(bf16_rows, groups_of(DT_BF16), false)
PIECES(f16_rows, groups_of(DT_F16), false)
PIECES(f32_rows, groups_of(DT_F32), false)
PIECES(q8_0_rows, groups_of(DT_Q8_0), false)
PIECES(nvfp4_rows, groups_of(DT_NVFP4), false)
PIECES(q4_k_rows, groups_of(DT_Q4_K), false)
PIECES(q6_k_rows, groups_of(DT_Q6_K), false)
PIECES(panel_rows, ((struct groups){IN_PANEL, 0, false, 0, 0}), true)
PIECES(panel_16_rows, ((struct groups){IN_PANEL, 16, false, 0, 0}), true)
PIECES(panel_32_rows, ((struct groups){IN_PANEL, 32, false, 0, 0}), true)
PIECES(panel_min_rows, ((struct groups){IN_PANEL, 32, true, 0, 0}), true)
#undef PIECES

typedef void rows_fn(int n_t, const struct piece *p);

static rows_fn *packed_rows(enum dtype t) {
    switch (t) {
    case DT_BF16: return bf16_rows;
    case DT_F16: return f16_rows;
    case DT_Q8_0: return q8_0_rows;
    case DT_NVFP4: return nvfp4_rows;
    case DT_Q4_K: return q4_k_rows;
    case DT_Q6_K: return q6_k_rows;
    default: return f32_rows;
    }
}

static rows_fn *expanded_rows(enum dtype t) {
    struct groups f = groups_of(t);
    return f.minima       ? panel_min_rows
           : f.size == 32 ? panel_32_rows
           : f.size == 16 ? panel_16_rows
                          : panel_rows;
}

/* All rows, in the sizes that there are loops for. */
static void over_rows(rows_fn *rows, struct piece *p) {
    int64_t n = p->job->n_row;
    for (p->i = 0; p->i < n;) {
        int64_t left = n - p->i;
        int n_t = STEP_T;
        while (n_t > left) n_t /= 2;
        rows(n_t, p);
        p->i += n_t;
    }
}

static void tile_linear(const struct tile_job *j) {
    const struct weight *w = &j->w[0]->origin;
    struct piece p = {.job = j, .n = w->n_in};
    for (int n = 0; n < 2; n++) {
        int m = j->w[n] ? n : 0; /* a missing tile repeats the first and is not stored */
        p.tile[n] = j->w[m]->data + (size_t)j->tile[m] * j->w[m]->tile_bytes;
    }
    if (j->n_row < PANEL_MIN_ROWS) {
        over_rows(packed_rows(w->dtype), &p);
        return;
    }
    struct panel panel;
    p.panel = &panel;
    for (; p.k0 < w->n_in; p.k0 += p.n) {
        p.n = w->n_in - p.k0 < PANEL_K ? w->n_in - p.k0 : PANEL_K;
        for (int n = 0; n < 2; n++) expand(w->dtype, p.tile[n], p.k0, p.n, n, &panel);
        over_rows(expanded_rows(w->dtype), &p);
    }
}
