/* Reference embedding lookup. */
#include "ops/embed/embed.h"

#include <string.h>

#include "file/block.h"

sumi_status embed_ref(struct device *d, const struct op *op, const struct step *s,
                      sumi_error *err) {
    (void)d;
    const struct weight *w = &op->u.embed.table;
    size_t n = (size_t)op->hidden;
    for (int32_t r = 0; r < s->n_row; r++) {
        if (s->token[r] < 0 || s->token[r] >= w->n_out)
            return fail_with(err, SUMI_ERR_ARG, "token id %d is outside the vocabulary of %lld",
                             s->token[r], (long long)w->n_out);
        float *x = op->x + (size_t)r * n;
        block_decode(w->dtype, (const uint8_t *)w->data + (size_t)s->token[r] * w->row_bytes, n, x);
        for (size_t i = 0; i < n; i++)
            x[i] = s->bf16 ? bf16_round(x[i] * w->scale) : x[i] * w->scale;
    }
    if (s->tap_hidden) memcpy(s->tap_hidden, op->x, (size_t)s->n_row * n * sizeof *op->x);
    return SUMI_OK;
}
