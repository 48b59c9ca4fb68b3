/* Dense MLP block over tiles. */
#include "ops/dense_ffn/dense_ffn.h"
#include "ops/rows_fast.h"

sumi_status dense_ffn_fast(struct device *d, const struct op *op, const struct step *s,
                           sumi_error *err) {
    (void)err;
    const struct op_dense_ffn *p = &op->u.dense_ffn;
    norm_rows_fast(d, s, op->x, p->norm, op->hidden, op->eps, p->a);
    mlp_rows_fast(d, s, &p->mlp, p->a, op->hidden, p->gate, p->up, p->y);
    add_branch_fast(d, s, op, p->y, s->tap_mlp, s->tap_hidden);
    return SUMI_OK;
}
