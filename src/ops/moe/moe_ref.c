/* Reference mixture of experts: rows are gathered by expert, so that each expert's matrices are
 * decoded once per step, and summed per row in the order of the router's choice. */
#include <string.h>

#include "ops/linear.h"
#include "ops/moe/moe.h"
#include "ops/moe/moe_route.h"
#include "ops/rows.h"

struct job {
    const struct op *op;
    const struct step *s;
    const int32_t *start; /* [n_expert + 1] into order */
    const int32_t *order; /* [n_row * top_k] slots (row * top_k + k), by expert */
};

static void route_one(void *ctx, int64_t r) {
    const struct job *j = ctx;
    moe_route_row(&j->op->u.moe, j->s, r);
}

/* One slot: act = silu(gate) * up, both halves of the scratch row. */
static void activate(const struct job *j, float *act, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        float v = silu_ref(act[i]) * act[width + i];
        act[i] = j->s->bf16 ? bf16_round(v) : v;
    }
}

/* All rows of one expert. A row's products do not depend on the others, so they run one by one. */
static void one_expert(void *ctx, int64_t e) {
    const struct job *j = ctx;
    const struct op_moe *p = &j->op->u.moe;
    const struct mlp *m = &p->expert[e];
    int64_t width = m->gate.n_out, hidden = j->op->hidden;
    int32_t n = j->start[e + 1] - j->start[e];
    if (!n) return;
    /* Rows of this expert stand together in act and each at start[e]; a is gathered into each. */
    float *x = p->each + (int64_t)j->start[e] * hidden;
    float *act = p->act + (int64_t)j->start[e] * 2 * width;
    for (int32_t i = 0; i < n; i++) {
        int64_t row = j->order[j->start[e] + i] / p->top_k;
        memcpy(x + i * hidden, p->a + row * hidden, (size_t)hidden * sizeof *x);
    }
    linear_ref(NULL, &m->gate, x, n, hidden, act, 2 * width, false);
    linear_ref(NULL, &m->up, x, n, hidden, act + width, 2 * width, false);
    for (int32_t i = 0; i < n; i++) activate(j, act + i * 2 * width, width);
    linear_ref(NULL, &m->down, act, n, 2 * width, x, hidden, j->s->bf16);
}

/* y[row] = the weighted sum of its slots, in the order of the choice. */
static void combine(const struct job *j, const int32_t *place) {
    const struct op_moe *p = &j->op->u.moe;
    int64_t hidden = j->op->hidden;
    for (int64_t r = 0; r < j->s->n_row; r++) {
        float *y = p->a + r * hidden; /* a is no longer needed */
        memset(y, 0, (size_t)hidden * sizeof *y);
        for (int32_t k = 0; k < p->top_k; k++) {
            int64_t slot = r * p->top_k + k;
            const float *from = p->each + (int64_t)place[slot] * hidden;
            for (int64_t i = 0; i < hidden; i++) y[i] += p->weights[slot] * from[i];
        }
        if (p->shared.gate.n_out == 0) memset(p->y + r * hidden, 0, (size_t)hidden * sizeof *y);
        for (int64_t i = 0; i < hidden; i++) {
            float routed = j->s->bf16 ? bf16_round(y[i]) : y[i];
            float v = routed + p->y[r * hidden + i];
            p->y[r * hidden + i] = j->s->bf16 ? bf16_round(v) : v;
        }
    }
}

sumi_status moe_ref(struct device *d, const struct op *op, const struct step *s, sumi_error *err) {
    const struct op_moe *p = &op->u.moe;
    int32_t n_slot = s->n_row * p->top_k;
    int32_t *start = p->order, *order = start + p->n_expert + 1, *place = order + n_slot;
    struct job j = {op, s, start, order};
    norm_rows_ref(d->pool, s, op->x, p->norm, op->hidden, op->eps, p->a);
    linear_ref(d->pool, &p->router, p->a, s->n_row, op->hidden, p->logits, p->n_expert, false);
    pool_run(d->pool, s->n_row, route_one, &j);
    if (s->route) TRY(moe_check_routes(p, n_slot, err));
    moe_copy_taps(p, s);
    moe_sort(p, n_slot, start, order, place);
    pool_run(d->pool, p->n_expert, one_expert, &j);
    if (p->shared.gate.n_out)
        mlp_rows_ref(d->pool, s, &p->shared, p->a, op->hidden, p->gate, p->up, p->y);
    combine(&j, place);
    add_branch_ref(s, op, p->y, s->tap_mlp, s->tap_hidden);
    return SUMI_OK;
}
