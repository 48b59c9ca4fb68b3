/* Reference mixture of experts: rows are gathered by expert, so that each expert's matrices are
 * decoded once per step, and summed per row in the order of the router's choice. */
#include <math.h>
#include <string.h>

#include "ops/linear.h"
#include "ops/moe/moe.h"
#include "ops/rows.h"

static void weigh(const float *z, int32_t top_k, const int32_t *ids, float *weights) {
    float sum = 0;
    for (int32_t k = 0; k < top_k; k++) {
        weights[k] = 1.0f / (1.0f + expf(-z[ids[k]]));
        sum += weights[k];
    }
    for (int32_t k = 0; k < top_k; k++) weights[k] /= sum;
}

void moe_choose_ref(const float *z, int32_t n_expert, int32_t top_k, int32_t *ids, float *weights) {
    int32_t n = 0;
    for (int32_t e = 0; e < n_expert; e++) {
        int32_t at = n;
        while (at > 0 && z[e] > z[ids[at - 1]]) at--;
        if (at >= top_k) continue;
        if (n < top_k) n++;
        memmove(ids + at + 1, ids + at, (size_t)(n - 1 - at) * sizeof *ids);
        ids[at] = e;
    }
    weigh(z, top_k, ids, weights);
}

struct job {
    const struct op *op;
    const struct step *s;
    const int32_t *start; /* [n_expert + 1] into order */
    const int32_t *order; /* [n_row * top_k] slots (row * top_k + k), by expert */
};

static void route_one(void *ctx, int64_t r) {
    const struct job *j = ctx;
    const struct op_moe *p = &j->op->u.moe;
    const float *z = p->logits + r * p->n_expert;
    int32_t *ids = p->ids + r * p->top_k;
    float *weights = p->weights + r * p->top_k;
    if (!j->s->route) {
        moe_choose_ref(z, p->n_expert, p->top_k, ids, weights);
        return;
    }
    int64_t from = ((int64_t)p->moe_index * j->s->n_row + r) * p->top_k;
    memcpy(ids, j->s->route + from, (size_t)p->top_k * sizeof *ids);
    weigh(z, p->top_k, ids, weights);
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

/* order lists slots by expert; start[e] is where expert e begins. A counting sort keeps rows in
 * order. */
static void sort_by_expert(const struct op_moe *p, int32_t n_slot, int32_t *start, int32_t *order) {
    memset(start, 0, ((size_t)p->n_expert + 1) * sizeof *start);
    for (int32_t i = 0; i < n_slot; i++) start[p->ids[i] + 1]++;
    for (int32_t e = 0; e < p->n_expert; e++) start[e + 1] += start[e];
    for (int32_t i = 0; i < n_slot; i++) order[start[p->ids[i]]++] = i;
    for (int32_t e = p->n_expert; e > 0; e--) start[e] = start[e - 1];
    start[0] = 0;
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

static sumi_status check_routes(const struct op_moe *p, int32_t n_slot, sumi_error *err) {
    for (int32_t i = 0; i < n_slot; i++)
        if (p->ids[i] < 0 || p->ids[i] >= p->n_expert)
            return fail_with(err, SUMI_ERR_ARG, "expert %d was given for a layer of %d experts",
                             p->ids[i], p->n_expert);
    return SUMI_OK;
}

static void copy_taps(const struct op_moe *p, const struct step *s, size_t n_slot) {
    size_t at = (size_t)p->moe_index * n_slot;
    if (s->tap_ids) memcpy(s->tap_ids + at, p->ids, n_slot * sizeof *p->ids);
    if (s->tap_weights) memcpy(s->tap_weights + at, p->weights, n_slot * sizeof *p->weights);
}

sumi_status moe_ref(struct device *d, const struct op *op, const struct step *s, sumi_error *err) {
    const struct op_moe *p = &op->u.moe;
    int32_t n_slot = s->n_row * p->top_k;
    int32_t *start = p->order, *order = start + p->n_expert + 1, *place = order + n_slot;
    struct job j = {op, s, start, order};
    norm_rows_ref(d->pool, s, op->x, p->norm, op->hidden, op->eps, p->a);
    linear_ref(d->pool, &p->router, p->a, s->n_row, op->hidden, p->logits, p->n_expert, false);
    pool_run(d->pool, s->n_row, route_one, &j);
    if (s->route) TRY(check_routes(p, n_slot, err));
    copy_taps(p, s, (size_t)n_slot);
    sort_by_expert(p, n_slot, start, order);
    for (int32_t i = 0; i < n_slot; i++) place[order[i]] = i;
    pool_run(d->pool, p->n_expert, one_expert, &j);
    if (p->shared.gate.n_out)
        mlp_rows_ref(d->pool, s, &p->shared, p->a, op->hidden, p->gate, p->up, p->y);
    combine(&j, place);
    add_branch_ref(s, op, p->y, s->tap_mlp, s->tap_hidden);
    return SUMI_OK;
}
