/* Reference linear layer: decode a few rows of the matrix, take dot products with every row of x.
 * The sums keep 16 partial results so that a compiler can use vector registers of any width without
 * changing a bit; there is no fused multiply-add for the same reason. */
#include <string.h>

#include "file/block.h"
#include "ops/linear.h"
#include "ops/op.h"

enum { LANES = 16, ROWS = 4 };

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

static float fold(const float *acc) {
    float s[LANES];
    memcpy(s, acc, sizeof s);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) s[i] += s[i + width];
    return s[0];
}

WIDEST static void dot_lanes(const float *restrict a, const float *restrict b, int64_t n,
                             float *restrict acc) {
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) acc[j] += a[i + j] * b[i + j];
}

/* Four rows of w at once share the loads of x; each row's sum is that of dot_lanes. */
WIDEST static void dot_lanes_4(const float *restrict x, const float *restrict w, int64_t stride,
                               int64_t n, float *restrict acc) {
    const float *w0 = w, *w1 = w + stride, *w2 = w + 2 * stride, *w3 = w + 3 * stride;
    float s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0}, s3[LANES] = {0};
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            s0[j] += x[i + j] * w0[i + j];
            s1[j] += x[i + j] * w1[i + j];
            s2[j] += x[i + j] * w2[i + j];
            s3[j] += x[i + j] * w3[i + j];
        }
    memcpy(acc, s0, sizeof s0);
    memcpy(acc + LANES, s1, sizeof s1);
    memcpy(acc + 2 * LANES, s2, sizeof s2);
    memcpy(acc + 3 * LANES, s3, sizeof s3);
}

static float finish(const float *a, const float *b, int64_t n, float *acc) {
    for (int64_t i = n / LANES * LANES; i < n; i++) acc[i % LANES] += a[i] * b[i];
    return fold(acc);
}

float dot_ref(const float *a, const float *b, int64_t n) {
    float acc[LANES] = {0};
    dot_lanes(a, b, n, acc);
    return finish(a, b, n, acc);
}

struct job {
    const struct weight *w;
    const float *x;
    int64_t n_row, x_stride;
    float *y;
    int64_t y_stride;
    bool rounded;
};

static void store(const struct job *j, int64_t r, int64_t o, float sum) {
    float v = sum * j->w->scale;
    j->y[r * j->y_stride + o] = j->rounded ? bf16_round(v) : v;
}

static void four_rows(void *ctx, int64_t part) {
    const struct job *j = ctx;
    const struct weight *w = j->w;
    int64_t first = part * ROWS, n = w->n_in;
    int64_t rows = w->n_out - first < ROWS ? w->n_out - first : ROWS;
    float buf[ROWS * 2048], big[OP_MAX_WIDTH];
    bool small = n <= 2048;
    const uint8_t *data = (const uint8_t *)w->data + (size_t)first * w->row_bytes;
    if (small && rows == ROWS) {
        for (int64_t o = 0; o < ROWS; o++)
            block_decode(w->dtype, data + (size_t)o * w->row_bytes, (size_t)n, buf + o * n);
        for (int64_t r = 0; r < j->n_row; r++) {
            const float *x = j->x + r * j->x_stride;
            float acc[ROWS * LANES];
            dot_lanes_4(x, buf, n, n, acc);
            for (int64_t o = 0; o < ROWS; o++)
                store(j, r, first + o, finish(x, buf + o * n, n, acc + o * LANES));
        }
        return;
    }
    for (int64_t o = 0; o < rows; o++) {
        block_decode(w->dtype, data + (size_t)o * w->row_bytes, (size_t)n, big);
        for (int64_t r = 0; r < j->n_row; r++)
            store(j, r, first + o, dot_ref(j->x + r * j->x_stride, big, n));
    }
}

void linear_ref(struct pool *pool, const struct weight *w, const float *x, int64_t n_row,
                int64_t x_stride, float *y, int64_t y_stride, bool rounded) {
    struct job j = {w, x, n_row, x_stride, y, y_stride, rounded};
    pool_run(pool, (w->n_out + ROWS - 1) / ROWS, four_rows, &j);
}
