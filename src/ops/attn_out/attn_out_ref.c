/* Reference output projection. */
#include "ops/attn_out/attn_out.h"

#include "ops/linear.h"
#include "ops/rows.h"

sumi_status attn_out_ref(struct device *d, const struct op *op, const struct step *s,
                         sumi_error *err) {
    (void)err;
    const struct op_attn_out *p = &op->u.attn_out;
    linear_ref(d->pool, &p->o, p->a, s->n_row, p->o.n_in, p->y, op->hidden, s->bf16);
    add_branch_ref(s, op, p->y, s->tap_attn, NULL);
    return SUMI_OK;
}
