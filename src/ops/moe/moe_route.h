/* Steps of the expert block that the reference and the fast version share. */
#ifndef SUMI_OPS_MOE_ROUTE_H
#define SUMI_OPS_MOE_ROUTE_H

#include "ops/op.h"

/* ids and weights of row r from its router logits, or from the step's given routes. */
void moe_route_row(const struct op_moe *p, const struct step *s, int64_t r);

/* Given routes name experts that exist. */
sumi_status moe_check_routes(const struct op_moe *p, int32_t n_slot, sumi_error *err);

/* Copies ids and weights to the step's taps. */
void moe_copy_taps(const struct op_moe *p, const struct step *s);

/* order lists slots (row * top_k + k) by expert; start[e] is where expert e begins; place[slot] is
 * where a slot stands in order. Rows keep their order. */
void moe_sort(const struct op_moe *p, int32_t n_slot, int32_t *start, int32_t *order,
              int32_t *place);

#endif
