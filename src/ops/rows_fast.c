/* Row loops over the kernels of the device's instruction set. */
#include "ops/rows_fast.h"

#include <string.h>

#include "device/cpu.h"

struct norm_job {
    const struct cpu_kernels *kernels;
    const struct step *s;
    const float *x, *w;
    int32_t hidden;
    float eps;
    float *a;
};

static void norm_one(void *ctx, int64_t r) {
    const struct norm_job *j = ctx;
    j->kernels->norm(j->x + r * j->hidden, j->w, j->hidden, j->eps, j->s->bf16,
                     j->a + r * j->hidden);
}

void norm_rows_fast(struct device *d, const struct step *s, const float *x, const float *w,
                    int32_t hidden, float eps, float *a) {
    struct norm_job j = {cpu_device(d)->kernels, s, x, w, hidden, eps, a};
    run_rows(d, s->n_row, norm_one, &j);
}

struct gate_job {
    const struct cpu_kernels *kernels;
    bool bf16;
    int64_t width;
    float *gate;
    const float *up;
};

static void gate_one(void *ctx, int64_t r) {
    const struct gate_job *j = ctx;
    j->kernels->gate(j->gate + r * j->width, j->up + r * j->width, j->width, j->bf16);
}

void mlp_rows_fast(struct device *d, const struct step *s, const struct mlp *mlp, const float *a,
                   int32_t hidden, float *gate, float *up, float *y) {
    int64_t width = mlp->gate.n_out;
    const struct product in[] = {{&mlp->gate, gate, width, s->bf16},
                                 {&mlp->up, up, width, s->bf16}};
    const struct product out = {&mlp->down, y, hidden, s->bf16};
    linear_fast(d, in, 2, a, s->n_row, hidden);
    struct gate_job j = {cpu_device(d)->kernels, s->bf16, width, gate, up};
    run_rows(d, s->n_row, gate_one, &j);
    linear_fast(d, &out, 1, gate, s->n_row, width);
}

struct add_job {
    const struct cpu_kernels *kernels;
    bool bf16;
    int64_t hidden;
    float *x;
    const float *y;
};

static void add_one(void *ctx, int64_t r) {
    const struct add_job *j = ctx;
    j->kernels->add(j->x + r * j->hidden, j->y + r * j->hidden, j->hidden, j->bf16);
}

void add_branch_fast(struct device *d, const struct step *s, const struct op *op, const float *y,
                     float *tap, float *hidden_tap) {
    size_t n = (size_t)s->n_row * (size_t)op->hidden;
    struct add_job j = {cpu_device(d)->kernels, s->bf16, op->hidden, op->x, y};
    run_rows(d, s->n_row, add_one, &j);
    if (tap) memcpy(tap + (size_t)op->layer * n, y, n * sizeof *y);
    if (hidden_tap) memcpy(hidden_tap + ((size_t)op->layer + 1) * n, op->x, n * sizeof *y);
}
