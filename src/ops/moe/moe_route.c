/* The router's choice: logits flow in, expert ids with weights and rows sorted by expert flow out.
 * Knows no matrices. */
#include <math.h>
#include <string.h>

#include "ops/moe/moe.h"
#include "ops/moe/moe_route.h"

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

void moe_route_row(const struct op_moe *p, const struct step *s, int64_t r) {
    const float *z = p->logits + r * p->n_expert;
    int32_t *ids = p->ids + r * p->top_k;
    float *weights = p->weights + r * p->top_k;
    if (!s->route) {
        moe_choose_ref(z, p->n_expert, p->top_k, ids, weights);
        return;
    }
    int64_t from = ((int64_t)p->moe_index * s->n_row + r) * p->top_k;
    memcpy(ids, s->route + from, (size_t)p->top_k * sizeof *ids);
    for (int32_t k = 0; k < p->top_k; k++)
        if (ids[k] < 0 || ids[k] >= p->n_expert) return; /* moe_check_routes reports it */
    weigh(z, p->top_k, ids, weights);
}

sumi_status moe_check_routes(const struct op_moe *p, int32_t n_slot, sumi_error *err) {
    for (int32_t i = 0; i < n_slot; i++)
        if (p->ids[i] < 0 || p->ids[i] >= p->n_expert)
            return fail_with(err, SUMI_ERR_ARG, "expert %d was given for a layer of %d experts",
                             p->ids[i], p->n_expert);
    return SUMI_OK;
}

void moe_copy_taps(const struct op_moe *p, const struct step *s) {
    size_t n_slot = (size_t)s->n_row * (size_t)p->top_k, at = (size_t)p->moe_index * n_slot;
    if (s->tap_ids) memcpy(s->tap_ids + at, p->ids, n_slot * sizeof *p->ids);
    if (s->tap_weights) memcpy(s->tap_weights + at, p->weights, n_slot * sizeof *p->weights);
}

void moe_sort(const struct op_moe *p, int32_t n_slot, int32_t *start, int32_t *order,
              int32_t *place) {
    memset(start, 0, ((size_t)p->n_expert + 1) * sizeof *start);
    for (int32_t i = 0; i < n_slot; i++) start[p->ids[i] + 1]++;
    for (int32_t e = 0; e < p->n_expert; e++) start[e + 1] += start[e];
    for (int32_t i = 0; i < n_slot; i++) order[start[p->ids[i]]++] = i;
    for (int32_t e = p->n_expert; e > 0; e--) start[e] = start[e - 1];
    start[0] = 0;
    for (int32_t i = 0; i < n_slot; i++) place[order[i]] = i;
}
