/* The linear layer, the norm and the embedding against their formulas in double precision. */
#include "base/dtype.h"
#include "check.h"
#include "file/block.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/op.h"

static void linear_case(enum dtype t, int64_t n_out, int64_t n_in, int64_t n_row,
                        struct pool *pool) {
    size_t row_bytes;
    if (!dtype_row_bytes(t, (size_t)n_in, &row_bytes)) return;
    uint64_t seed = (uint64_t)(n_out * 31 + n_in * 7 + n_row);
    uint8_t *data = malloc((size_t)n_out * row_bytes + 1);
    float *rows = malloc((size_t)(n_out * n_in) * sizeof *rows);
    float *x = random_floats((size_t)(n_row * n_in), seed);
    float *y = malloc((size_t)(n_row * n_out) * sizeof *y);
    double *want = calloc((size_t)(n_row * n_out), sizeof *want);
    uint8_t *w = data + 1; /* rows of a file may stand at odd addresses */
    for (size_t i = 0; i < (size_t)n_out * row_bytes; i++) {
        w[i] = (uint8_t)(uniform(&seed) * 127);
        /* Keep the exponents of f32, f16 and bf16 values small. */
        if (t == DT_F32 && i % 4 == 3) w[i] = (uint8_t)(0x3E | (w[i] & 0x80));
        if (t != DT_F32 && t != DT_Q4_K && i % 2 == 1 && (t == DT_BF16 || t == DT_F16))
            w[i] = (uint8_t)(0x3C | (w[i] & 0x80));
    }
    /* Scales of the blocks: f16 1/32 in the first two bytes, NVFP4 bytes stay random below 0x80. */
    const struct dtype_info *d = dtype_info(t);
    for (size_t b = 0; d->block > 1 && b < (size_t)n_out * row_bytes; b += (size_t)d->bytes) {
        if (t == DT_NVFP4) {
            for (int j = 0; j < 4; j++) w[b + (size_t)j] &= 0x3F;
        } else {
            size_t at = t == DT_Q6_K ? b + 208 : b;
            w[at] = 0;
            w[at + 1] = 0x28;
            if (t == DT_Q4_1 || t == DT_Q4_K || t == DT_Q5_K) {
                w[b + 2] = 0;
                w[b + 3] = 0x24;
            }
        }
    }
    for (int64_t o = 0; o < n_out; o++)
        block_decode(t, w + (size_t)o * row_bytes, (size_t)n_in, rows + o * n_in);
    double size = 0;
    for (int64_t r = 0; r < n_row; r++)
        for (int64_t o = 0; o < n_out; o++) {
            double s = 0;
            for (int64_t i = 0; i < n_in; i++) s += (double)x[r * n_in + i] * rows[o * n_in + i];
            want[r * n_out + o] = s * 0.5;
            size += fabs(s) / (double)(n_row * n_out);
        }
    struct weight weight = {t, w, n_out, n_in, row_bytes, 0.5f};
    linear_ref(pool, &weight, x, n_row, n_in, y, n_out, false);
    char name[96];
    snprintf(name, sizeof name, "linear %s [%d, %d] x %d", d->name, (int)n_out, (int)n_in,
             (int)n_row);
    check_close(name, y, want, (size_t)(n_row * n_out), 2e-6 * size * sqrt((double)n_in), 1e-6);
    float *one = malloc((size_t)n_out * sizeof *one);
    bool same = true;
    for (int64_t r = 0; r < n_row; r++) {
        linear_ref(NULL, &weight, x + r * n_in, 1, n_in, one, n_out, false);
        same = same && memcmp(one, y + r * n_out, (size_t)n_out * sizeof *one) == 0;
    }
    snprintf(name, sizeof name, "linear %s [%d, %d]: a row alone has the same bits", d->name,
             (int)n_out, (int)n_in);
    check_true(name, same);
    free(one);
    free(data);
    free(rows);
    free(x);
    free(y);
    free(want);
}

static void norm_case(int64_t n, float eps) {
    float *x = random_floats((size_t)n, 3), *w = random_floats((size_t)n, 4),
          *y = malloc((size_t)n * 4);
    double *want = calloc((size_t)n, sizeof *want), sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    for (int64_t i = 0; i < n; i++) want[i] = w[i] * x[i] / sqrt(sum / (double)n + eps);
    rms_norm_ref(x, w, n, eps, false, y);
    char name[64];
    snprintf(name, sizeof name, "norm of %d, eps %g", (int)n, (double)eps);
    check_close(name, y, want, (size_t)n, 1e-7, 1e-6);
    rms_norm_ref(x, w, n, eps, true, y);
    for (int64_t i = 0; i < n; i++) want[i] = (double)bf16_round((float)want[i]);
    snprintf(name, sizeof name, "rounded norm of %d", (int)n);
    check_close(name, y, want, (size_t)n, 1e-7,
                0.0079); /* one unit of bf16 where f32 lies on a tie */
    free(x);
    free(w);
    free(y);
    free(want);
}

int main(void) {
    static const enum dtype types[] = {DT_F32,  DT_F16,  DT_BF16, DT_Q8_0, DT_Q4_0,
                                       DT_Q4_1, DT_Q4_K, DT_Q5_K, DT_Q6_K, DT_NVFP4};
    static const int64_t width[] = {1, 15, 16, 17, 32, 64, 256, 512, 2048, 2304, 6144};
    static const int64_t out[] = {1, 3, 4, 5, 33};
    struct pool *pool;
    if (pool_open(&pool, 3, NULL) != SUMI_OK) return 1;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t w = 0; w < sizeof width / sizeof *width; w++)
            for (size_t o = 0; o < sizeof out / sizeof *out; o++)
                linear_case(types[t], out[o], width[w], (int64_t)(o % 3) + 1, pool);
    norm_case(1, 1e-6f);
    norm_case(64, 1e-6f);
    norm_case(2048, 1e-5f);
    norm_case(2047, 1e-5f);
    pool_close(pool);
    return n_failed != 0;
}
