/* Final norm and output head, for the rows whose logits are wanted. */
#include "ops/cuda/cu.cuh"

void cu_head(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    const auto &p = op->u.head;
    struct linear_args a = {};
    if (l->taps)
        cu_norm(l, as_bf(op->x), NULL, w->norm, op->hidden, op->eps, &l->step.meta->n_row, l->rows,
                as_bf(p.a));
    if (!l->n_logit) return;
    a.m = w->m[0];
    a.x = as_bf(op->x);
    a.x_stride = op->hidden;
    a.norm = w->norm;
    a.eps = op->eps;
    a.row_map = l->step.logit_row;
    a.n_row = &l->step.meta->n_logit;
    a.rows = l->n_logit;
    a.f = l->logits;
    a.f_stride = a.m.n_out;
    a.scratch = as_bf(p.a);
    cu_linear(l, EPI_F32, &a);
}
