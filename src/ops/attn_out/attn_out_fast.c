/* Output projection over tiles. */
#include "ops/attn_out/attn_out.h"
#include "ops/rows_fast.h"

sumi_status attn_out_fast(struct device *d, const struct op *op, const struct step *s,
                          sumi_error *err) {
    (void)err;
    const struct op_attn_out *p = &op->u.attn_out;
    const struct product out = {&p->o, p->y, op->hidden, s->bf16};
    linear_fast(d, &out, 1, p->a, s->n_row, p->o.n_in);
    add_branch_fast(d, s, op, p->y, s->tap_attn, NULL);
    return SUMI_OK;
}
