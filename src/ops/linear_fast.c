/* Cuts products into parts for the pool: a pair of tiles times a block of rows, tiles first, so
 * that the rows stay in the second cache while the weights stream past. */
#include "ops/linear_fast.h"

#include "base/size.h"
#include "device/cpu.h"
#include "ops/linear.h"

enum { ROW_BLOCK_BYTES = 1 << 20, MIN_ROW_BLOCK = 64, MAX_PRODUCT = 4, FEW_ROWS = 4 };

struct job {
    const struct cpu_kernels *kernels;
    const struct product *list;
    int n;
    int64_t pair_end[MAX_PRODUCT]; /* pairs of tiles up to and including each product */
    const float *x;
    int64_t n_row, x_stride, row_block;
};

static void one_part(void *ctx, int64_t part) {
    const struct job *j = ctx;
    int64_t pairs = j->pair_end[j->n - 1], pair = part % pairs;
    int64_t row = part / pairs * j->row_block;
    int at = 0;
    while (pair >= j->pair_end[at]) at++;
    if (at) pair -= j->pair_end[at - 1];
    const struct product *p = &j->list[at];
    const struct tiles *t = weight_tiles(p->w);
    struct tile_job job = {.w = {t, 2 * pair + 1 < t->n_tile ? t : NULL},
                           .tile = {2 * pair, 2 * pair + 1},
                           .stride = p->y_stride,
                           .rounded = p->rounded,
                           .x = j->x + row * j->x_stride,
                           .x_stride = j->x_stride,
                           .n_row = min_i64(j->row_block, j->n_row - row)};
    job.y[0] = p->y + row * p->y_stride + 2 * pair * TILE_ROWS;
    job.y[1] = job.y[0] + TILE_ROWS;
    j->kernels->linear(&job);
}

static void run_tiled(struct device *d, const struct product *list, int n, const float *x,
                      int64_t n_row, int64_t x_stride) {
    if (!n || !n_row) return;
    struct job j = {.kernels = cpu_device(d)->kernels,
                    .list = list,
                    .n = n,
                    .x = x,
                    .n_row = n_row,
                    .x_stride = x_stride};
    for (int i = 0; i < n; i++)
        j.pair_end[i] = (weight_tiles(list[i].w)->n_tile + 1) / 2 + (i ? j.pair_end[i - 1] : 0);
    j.row_block = max_i64(MIN_ROW_BLOCK, ROW_BLOCK_BYTES / (4 * list[0].w->n_in));
    int64_t blocks = (n_row + j.row_block - 1) / j.row_block;
    pool_run(d->pool, j.pair_end[n - 1] * blocks, one_part, &j);
}

void linear_fast(struct device *d, const struct product *list, int n, const float *x, int64_t n_row,
                 int64_t x_stride) {
    struct product tiled[MAX_PRODUCT];
    int n_tiled = 0;
    for (int i = 0; i < n; i++) {
        if (weight_is_tiled(list[i].w)) {
            tiled[n_tiled++] = list[i];
            if (n_tiled < MAX_PRODUCT) continue;
            run_tiled(d, tiled, n_tiled, x, n_row, x_stride);
            n_tiled = 0;
        } else {
            linear_ref(d->pool, list[i].w, x, n_row, x_stride, list[i].y, list[i].y_stride,
                       list[i].rounded);
        }
    }
    run_tiled(d, tiled, n_tiled, x, n_row, x_stride);
}

void linear_pair(const struct cpu_kernels *k, struct tile_job *job) {
    const struct tiles *second = job->w[1];
    if (second && (second->origin.dtype != job->w[0]->origin.dtype)) {
        struct tile_job other = *job;
        other.w[0] = second;
        other.tile[0] = job->tile[1];
        other.y[0] = job->y[1];
        other.w[1] = job->w[1] = NULL;
        k->linear(&other);
    }
    k->linear(job);
    job->w[1] = second;
}

void run_rows(struct device *d, int64_t n, void (*fn)(void *ctx, int64_t i), void *ctx) {
    pool_run(n <= FEW_ROWS ? NULL : d->pool, n, fn, ctx);
}
