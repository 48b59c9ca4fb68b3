/* Output projection and residual. */
#include "ops/cuda/cu.cuh"

void cu_attn_out(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    const auto &p = op->u.attn_out;
    struct linear_args a = {};
    a.m = w->m[0];
    a.x = as_bf(p.a);
    a.x_stride = a.m.n_in;
    a.n_row = &l->step.meta->n_row;
    a.rows = l->rows;
    a.y = l->taps ? as_bf(p.y) : NULL;
    a.y_stride = op->hidden;
    a.add = as_bf(op->x);
    cu_linear(l, EPI_ADD, &a);
}
