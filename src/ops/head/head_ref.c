/* Reference final norm and output head. */
#include "ops/head/head.h"

#include "ops/linear.h"
#include "ops/norm.h"

sumi_status head_ref(struct device *d, const struct op *op, const struct step *s, sumi_error *err) {
    (void)err;
    const struct op_head *p = &op->u.head;
    int64_t n = op->hidden;
    for (int32_t r = 0; s->tap_norm && r < s->n_row; r++)
        rms_norm_ref(op->x + r * n, p->norm, n, op->eps, s->bf16, s->tap_norm + r * n);
    for (int32_t i = 0; i < s->n_logit; i++)
        rms_norm_ref(op->x + s->logit_row[i] * n, p->norm, n, op->eps, s->bf16, p->a + i * n);
    linear_ref(d->pool, &p->head, p->a, s->n_logit, n, s->logits, p->head.n_out, false);
    return SUMI_OK;
}
