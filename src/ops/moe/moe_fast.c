/* Mixture of experts over tiles. Rows are gathered by expert; the chosen experts and the shared one
 * form one list of jobs, cut into pairs of tiles: gate with up, then down. */
#include <string.h>

#include "device/cpu.h"
#include "ops/moe/moe.h"
#include "ops/moe/moe_route.h"
#include "ops/rows_fast.h"

/* One chosen expert, or the shared one, with its rows. */
struct work {
    const struct mlp *mlp;
    int64_t n_row, act_stride;
    float *gate, *up, *y;
    const int32_t *slot; /* NULL: all rows of the step */
    bool rounded;        /* gate and up */
};

struct job {
    const struct cpu_kernels *kernels;
    const struct op *op;
    const struct step *s;
    const int32_t *place; /* [n_row * top_k] */
    struct work *work;    /* [n_work] */
    int32_t n_work;
    int64_t per_work; /* parts of an expert; the shared one comes last and has its own count */
};

static void route_one(void *ctx, int64_t r) {
    const struct job *j = ctx;
    moe_route_row(&j->op->u.moe, j->s, r);
}

static const struct work *work_of(const struct job *j, int64_t *part) {
    int64_t i = *part / j->per_work;
    if (i >= j->n_work) i = j->n_work - 1;
    *part -= i * j->per_work;
    return &j->work[i];
}

/* Columns [16 part, 16 part + 16) of gate and up, and their activation. */
static void gate_up(void *ctx, int64_t part) {
    const struct job *j = ctx;
    const struct op_moe *p = &j->op->u.moe;
    const struct work *w = work_of(j, &part);
    int64_t at = part * TILE_ROWS, width = w->mlp->gate.n_out;
    int64_t n = width - at < TILE_ROWS ? width - at : TILE_ROWS;
    struct tile_job t = {.w = {weight_tiles(&w->mlp->gate), weight_tiles(&w->mlp->up)},
                         .tile = {part, part},
                         .y = {w->gate + at, w->up + at},
                         .stride = w->act_stride,
                         .rounded = w->rounded,
                         .x = p->a,
                         .x_stride = j->op->hidden,
                         .slot = w->slot,
                         .per_row = p->top_k,
                         .n_row = w->n_row};
    linear_pair(j->kernels, &t);
    for (int64_t i = 0; i < w->n_row; i++)
        j->kernels->gate(w->gate + i * w->act_stride + at, w->up + i * w->act_stride + at, n,
                         j->s->bf16);
}

/* Columns [32 part, 32 part + 32) of an expert's result. */
static void down(void *ctx, int64_t part) {
    const struct job *j = ctx;
    int64_t pairs = (weight_tiles(&j->work[0].mlp->down)->n_tile + 1) / 2;
    const struct work *w = &j->work[part / pairs];
    const struct tiles *tiles = weight_tiles(&w->mlp->down);
    int64_t at = part % pairs * 2;
    struct tile_job t = {.w = {tiles, at + 1 < tiles->n_tile ? tiles : NULL},
                         .tile = {at, at + 1},
                         .y = {w->y + at * TILE_ROWS, w->y + (at + 1) * TILE_ROWS},
                         .stride = j->op->hidden,
                         .rounded = j->s->bf16,
                         .x = w->gate,
                         .x_stride = w->act_stride,
                         .n_row = w->n_row};
    j->kernels->linear(&t);
}

/* The weighted sum of a row's slots in the order of the choice, the shared branch, the residual. */
static void combine(void *ctx, int64_t r) {
    const struct job *j = ctx;
    const struct op_moe *p = &j->op->u.moe;
    int64_t hidden = j->op->hidden;
    const float *from[OP_MAX_TOP_K];
    float *y = p->y + r * hidden;
    for (int32_t k = 0; k < p->top_k; k++)
        from[k] = p->each + (int64_t)j->place[r * p->top_k + k] * hidden;
    if (!p->shared.gate.n_out) memset(y, 0, (size_t)hidden * sizeof *y);
    j->kernels->combine(p->weights + r * p->top_k, from, p->top_k, hidden, j->s->bf16, y);
}

static void list_work(struct job *j, const int32_t *start, const int32_t *order) {
    const struct op_moe *p = &j->op->u.moe;
    for (int32_t e = 0; e < p->n_expert; e++) {
        int64_t at = start[e], width = p->expert[e].gate.n_out;
        if (start[e + 1] == at) continue;
        float *act = p->act + at * 2 * width;
        j->work[j->n_work++] = (struct work){.mlp = &p->expert[e],
                                             .n_row = start[e + 1] - at,
                                             .act_stride = 2 * width,
                                             .gate = act,
                                             .up = act + width,
                                             .y = p->each + at * j->op->hidden,
                                             .slot = order + at};
    }
    if (!p->shared.gate.n_out) return;
    j->work[j->n_work++] = (struct work){.mlp = &p->shared,
                                         .n_row = j->s->n_row,
                                         .act_stride = p->shared.gate.n_out,
                                         .gate = p->gate,
                                         .up = p->up,
                                         .y = p->y,
                                         .rounded = j->s->bf16};
}

static void run_experts(struct device *d, struct job *j) {
    const struct op_moe *p = &j->op->u.moe;
    int32_t n_routed = j->n_work - (p->shared.gate.n_out != 0);
    int64_t pairs = (weight_tiles(&p->expert[0].down)->n_tile + 1) / 2;
    j->per_work = weight_tiles(&p->expert[0].gate)->n_tile;
    int64_t parts = n_routed * j->per_work;
    if (p->shared.gate.n_out) parts += weight_tiles(&p->shared.gate)->n_tile;
    pool_run(d->pool, parts, gate_up, j);
    pool_run(d->pool, j->n_work * pairs, down, j);
}

sumi_status moe_fast(struct device *d, const struct op *op, const struct step *s, sumi_error *err) {
    const struct op_moe *p = &op->u.moe;
    if (!weight_is_tiled(&p->router)) return moe_ref(d, op, s, err);
    int32_t n_slot = s->n_row * p->top_k;
    int32_t *start = p->order, *order = start + p->n_expert + 1, *place = order + n_slot;
    void *work;
    TRY(cpu_scratch(d, ((size_t)p->n_expert + 1) * sizeof(struct work), &work, err));
    struct job j = {
        .kernels = cpu_device(d)->kernels, .op = op, .s = s, .place = place, .work = work};
    norm_rows_fast(d, s, op->x, p->norm, op->hidden, op->eps, p->a);
    const struct product router = {&p->router, p->logits, p->n_expert, false};
    linear_fast(d, &router, 1, p->a, s->n_row, op->hidden);
    run_rows(d, s->n_row, route_one, &j);
    if (s->route) TRY(moe_check_routes(p, n_slot, err));
    moe_copy_taps(p, s);
    moe_sort(p, n_slot, start, order, place);
    list_work(&j, start, order);
    run_experts(d, &j);
    run_rows(d, s->n_row, combine, &j);
    add_branch_fast(d, s, op, p->y, s->tap_mlp, s->tap_hidden);
    return SUMI_OK;
}
