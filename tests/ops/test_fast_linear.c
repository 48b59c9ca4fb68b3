/* Every instruction set that this processor has against the reference linear layer, in each format
 * that has tiles: shapes of the presets and edges of tiles, blocks and row groups. A row must keep
 * its bits whatever stands beside it, and AVX2 must give the bits of AVX-512. */
#include "base/dtype.h"
#include "base/mem.h"
#include "check.h"
#include "device/cpu.h"
#include "ops/linear.h"
#include "ops/linear_fast.h"
#include "ops/tiles.h"

/* Random blocks whose scales are small numbers. Rows stand at an odd address. */
static uint8_t *random_rows(enum dtype t, size_t bytes, uint64_t seed) {
    const struct dtype_info *d = dtype_info(t);
    uint8_t *w = (uint8_t *)malloc(bytes + 1) + 1;
    for (size_t i = 0; i < bytes; i++) w[i] = (uint8_t)(int)(uniform(&seed) * 127);
    for (size_t b = 0; b + (size_t)d->bytes <= bytes; b += (size_t)d->bytes) {
        uint8_t *p = w + b;
        switch (t) {
        case DT_F32: p[3] = (uint8_t)(0x3E | (p[3] & 0x80)); break;
        case DT_F16:
        case DT_BF16: p[1] = (uint8_t)(0x3C | (p[1] & 0x80)); break;
        case DT_NVFP4: break; /* any byte is a scale: also bit 7, 0x7F and subnormal ones */
        case DT_Q6_K: p[208] = 0, p[209] = 0x24; break;
        case DT_Q4_K: p[2] = 0x11, p[3] = 0x24; /* fall through */
        default: p[0] = 0x33, p[1] = 0x28; break;
        }
    }
    return w;
}

static struct tiles *tiles_of(const struct weight *w, struct pool *pool) {
    struct tiles *t = malloc(sizeof *t);
    size_t total;
    if (!tiles_bytes(w, &t->tile_bytes, &total)) return NULL;
    t->data = mem_aligned(total, 64);
    tiles_pack(pool, w, t);
    return t;
}

static struct device *device_of(enum cpu_isa isa, int n_thread) {
    struct device *d;
    if (device_open_cpu(&d, n_thread, NULL) != SUMI_OK) exit(1);
    if (ops_bind_cpu_isa(d, isa, NULL) != SUMI_OK) exit(1);
    return d;
}

static double typical(const float *y, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += fabs((double)y[i]) / (double)n;
    return s;
}

static bool a_row_alone_is_the_same(struct device *d, const struct weight *w, const float *x,
                                    int64_t n_row, const float *y) {
    float *one = malloc((size_t)w->n_out * sizeof *one);
    bool same = true;
    for (int64_t r = 0; r < n_row; r++) {
        const struct product p = {w, one, w->n_out, false};
        linear_fast(d, &p, 1, x + r * w->n_in, 1, w->n_in);
        same = same && memcmp(one, y + r * w->n_out, (size_t)w->n_out * sizeof *one) == 0;
    }
    free(one);
    return same;
}

static void linear_case(enum cpu_isa best, enum dtype t, int64_t n_out, int64_t n_in,
                        int64_t n_row) {
    size_t row_bytes, n = (size_t)(n_row * n_out);
    if (!dtype_row_bytes(t, (size_t)n_in, &row_bytes)) return;
    uint64_t seed = (uint64_t)(n_out * 31 + n_in * 7 + n_row);
    uint8_t *rows = random_rows(t, (size_t)n_out * row_bytes, seed);
    struct weight w = {t, rows, n_out, n_in, row_bytes, 0.5f};
    float *x = random_floats((size_t)(n_row * n_in), seed), *y[2] = {NULL, NULL};
    float *ref = malloc(n * sizeof *ref);
    double *want = malloc(n * sizeof *want);
    char name[128];
    linear_ref(NULL, &w, x, n_row, n_in, ref, n_out, false);
    for (size_t i = 0; i < n; i++) want[i] = (double)ref[i];
    double size = typical(ref, n);
    for (enum cpu_isa isa = CPU_ISA_AVX2; isa <= best; isa++) {
        struct device *d = device_of(isa, 3);
        struct tiles *tiles = tiles_of(&w, d->pool);
        struct weight tiled = w;
        tiled.data = tiles;
        tiled.row_bytes = 0;
        float *out = y[isa - CPU_ISA_AVX2] = malloc((n + 1) * sizeof *out);
        out[n] = 1234;
        const struct product p = {&tiled, out, n_out, false};
        linear_fast(d, &p, 1, x, n_row, n_in);
        snprintf(name, sizeof name, "%s %s [%d, %d] x %d", cpu_isa_name(isa), dtype_info(t)->name,
                 (int)n_out, (int)n_in, (int)n_row);
        check_close(name, out, want, n, 1e-6 * size * sqrt((double)n_in), 1e-6);
        snprintf(name, sizeof name, "%s %s [%d, %d] x %d: a row alone has the same bits",
                 cpu_isa_name(isa), dtype_info(t)->name, (int)n_out, (int)n_in, (int)n_row);
        check_true(name, a_row_alone_is_the_same(d, &tiled, x, n_row, out) && out[n] == 1234);
        mem_free(tiles->data);
        free(tiles);
        device_close(d);
    }
    if (y[0] && y[1]) check_true("avx2 has the bits of avx512", memcmp(y[0], y[1], n * 4) == 0);
    free(y[0]);
    free(y[1]);
    free(ref);
    free(want);
    free(x);
    free(rows - 1);
}

/* Infinities and NaN in a row spoil that row alone, where the reference has them. */
static void a_bad_row_stays_alone(enum cpu_isa best, enum dtype t) {
    enum { OUT = 40, IN = 256, ROWS = 5 };
    size_t row_bytes;
    dtype_row_bytes(t, IN, &row_bytes);
    uint8_t *rows = random_rows(t, OUT * row_bytes, 5);
    struct weight w = {t, rows, OUT, IN, row_bytes, 1};
    float *x = random_floats(ROWS * IN, 6), ref[ROWS * OUT], y[ROWS * OUT];
    x[IN + 3] = INFINITY;
    x[3 * IN + 250] = NAN;
    linear_ref(NULL, &w, x, ROWS, IN, ref, OUT, false);
    for (enum cpu_isa isa = CPU_ISA_AVX2; isa <= best; isa++) {
        struct device *d = device_of(isa, 1);
        struct tiles *tiles = tiles_of(&w, NULL);
        struct weight tiled = {t, tiles, OUT, IN, 0, 1};
        const struct product p = {&tiled, y, OUT, false};
        linear_fast(d, &p, 1, x, ROWS, IN);
        bool same = true;
        for (int i = 0; i < ROWS * OUT; i++) {
            bool finite = isfinite(y[i]), nan_row = i / OUT == 3, inf_row = i / OUT == 1;
            same = same && (nan_row ? isnan(y[i]) : inf_row ? !finite || isfinite(ref[i]) : finite);
        }
        char name[96];
        snprintf(name, sizeof name, "%s %s: a bad row stays alone", cpu_isa_name(isa),
                 dtype_info(t)->name);
        check_true(name, same);
        mem_free(tiles->data);
        free(tiles);
        device_close(d);
    }
    free(x);
    free(rows - 1);
}

static void levels_are_refused_by_name(enum cpu_isa best) {
    sumi_error err = {0};
    enum cpu_isa isa;
    check_true("auto is the best level",
               cpu_isa_choose(CPU_ISA_AUTO, &isa, &err) == SUMI_OK && isa == best);
    check_true("ref is always there",
               cpu_isa_choose(CPU_ISA_REF, &isa, &err) == SUMI_OK && isa == CPU_ISA_REF);
    if (best < CPU_ISA_AVX512)
        check_true("a level the processor lacks is refused",
                   cpu_isa_choose(CPU_ISA_AVX512, &isa, &err) == SUMI_ERR_UNSUPPORTED &&
                       strstr(err.msg, cpu_isa_name(best)));
    check_true("an unknown level is refused",
               cpu_isa_parse("sse9", &isa, &err) == SUMI_ERR_ARG && strstr(err.msg, "sse9"));
}

int main(void) {
    static const enum dtype types[] = {DT_F32,  DT_F16,   DT_BF16, DT_Q8_0,
                                       DT_Q4_K, DT_NVFP4, DT_Q6_K};
    static const int64_t shapes[][2] = {{1, 1},     {15, 2},    {16, 3},    {17, 32},
                                        {33, 64},   {31, 256},  {128, 512}, {512, 128},
                                        {48, 1088}, {64, 2304}, {256, 512}};
    static const int64_t n_row[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 70};
    enum cpu_isa best = cpu_isa_best();
    levels_are_refused_by_name(best);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t r = 0; r < sizeof n_row / sizeof *n_row; r++)
                linear_case(best, types[t], shapes[s][0], shapes[s][1], n_row[r]);
        linear_case(best, types[t], 32, 512, 600);
        a_bad_row_stays_alone(best, types[t]);
    }
    return n_failed != 0;
}
