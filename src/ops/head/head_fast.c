/* Final norm and output head over tiles. */
#include "device/cpu.h"
#include "ops/head/head.h"
#include "ops/linear_fast.h"

struct job {
    const struct cpu_kernels *kernels;
    const struct op *op;
    const struct step *s;
};

static void tap_row(void *ctx, int64_t r) {
    const struct job *j = ctx;
    int64_t n = j->op->hidden;
    j->kernels->norm(j->op->x + r * n, j->op->u.head.norm, n, j->op->eps, j->s->bf16,
                     j->s->tap_norm + r * n);
}

static void wanted_row(void *ctx, int64_t i) {
    const struct job *j = ctx;
    int64_t n = j->op->hidden;
    j->kernels->norm(j->op->x + j->s->logit_row[i] * n, j->op->u.head.norm, n, j->op->eps,
                     j->s->bf16, j->op->u.head.a + i * n);
}

sumi_status head_fast(struct device *d, const struct op *op, const struct step *s,
                      sumi_error *err) {
    (void)err;
    const struct op_head *p = &op->u.head;
    struct job j = {cpu_device(d)->kernels, op, s};
    if (s->tap_norm) run_rows(d, s->n_row, tap_row, &j);
    run_rows(d, s->n_logit, wanted_row, &j);
    const struct product out = {&p->head, s->logits, p->head.n_out, false};
    linear_fast(d, &out, 1, p->a, s->n_logit, op->hidden);
    return SUMI_OK;
}
