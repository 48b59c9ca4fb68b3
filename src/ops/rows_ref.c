/* Reference row loops. */
#include "ops/rows.h"

#include <string.h>

#include "ops/linear.h"
#include "ops/norm.h"

struct norm_job {
    const struct step *s;
    const float *x, *w;
    int32_t hidden;
    float eps;
    float *a;
};

static void norm_one(void *ctx, int64_t r) {
    const struct norm_job *j = ctx;
    rms_norm_ref(j->x + r * j->hidden, j->w, j->hidden, j->eps, j->s->bf16, j->a + r * j->hidden);
}

void norm_rows_ref(struct pool *pool, const struct step *s, const float *x, const float *w,
                   int32_t hidden, float eps, float *a) {
    struct norm_job j = {s, x, w, hidden, eps, a};
    pool_run(pool, s->n_row, norm_one, &j);
}

struct gate_job {
    bool bf16;
    int64_t width;
    float *gate;
    const float *up;
};

static void gate_one(void *ctx, int64_t r) {
    const struct gate_job *j = ctx;
    for (int64_t i = r * j->width; i < (r + 1) * j->width; i++) {
        float v = silu_ref(j->gate[i]) * j->up[i];
        j->gate[i] = j->bf16 ? bf16_round(v) : v;
    }
}

void mlp_rows_ref(struct pool *pool, const struct step *s, const struct mlp *mlp, const float *a,
                  int32_t hidden, float *gate, float *up, float *y) {
    int64_t width = mlp->gate.n_out;
    linear_ref(pool, &mlp->gate, a, s->n_row, hidden, gate, width, s->bf16);
    linear_ref(pool, &mlp->up, a, s->n_row, hidden, up, width, s->bf16);
    struct gate_job j = {s->bf16, width, gate, up};
    pool_run(pool, s->n_row, gate_one, &j);
    linear_ref(pool, &mlp->down, gate, s->n_row, width, y, hidden, s->bf16);
}

void add_branch_ref(const struct step *s, const struct op *op, const float *y, float *tap,
                    float *hidden_tap) {
    size_t n = (size_t)s->n_row * (size_t)op->hidden;
    for (size_t i = 0; i < n; i++) {
        float v = op->x[i] + y[i];
        op->x[i] = s->bf16 ? bf16_round(v) : v;
    }
    if (tap) memcpy(tap + (size_t)op->layer * n, y, n * sizeof *y);
    if (hidden_tap) memcpy(hidden_tap + ((size_t)op->layer + 1) * n, op->x, n * sizeof *y);
}
