/* Dense MLP block: gate and up are one matrix of alternating tiles. */
#include "ops/cuda/cu.cuh"

void cu_dense_ffn(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    const auto &p = op->u.dense_ffn;
    struct linear_args a = {};
    a.m = w->m[0];
    a.x = as_bf(op->x);
    a.x_stride = op->hidden;
    a.norm = w->norm;
    a.eps = op->eps;
    a.n_row = &l->step.meta->n_row;
    a.rows = l->rows;
    a.y = as_bf(p.gate);
    a.y_stride = w->m[1].n_in;
    a.scratch = as_bf(p.a);
    cu_linear(l, EPI_GATE, &a);
    struct linear_args b = {};
    b.m = w->m[1];
    b.x = as_bf(p.gate);
    b.x_stride = b.m.n_in;
    b.n_row = a.n_row;
    b.rows = a.rows;
    b.y = l->taps ? as_bf(p.y) : NULL;
    b.y_stride = op->hidden;
    b.add = as_bf(op->x);
    cu_linear(l, EPI_ADD, &b);
}
