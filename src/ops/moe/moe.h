/* x = rounded(x + rounded(sum_e w_e y_e) + shared(a))   a = rms_norm(x)
 *
 *   z = a W_router^T (f32, not rounded); the top_k largest z win, ties to the lower index, best
 *   first; w_e = sigmoid(z_e) / sum over the chosen of sigmoid(z)
 *   y_e = rounded(rounded(silu(a G_e^T) * (a U_e^T)) D_e^T)   gate and up are not rounded
 *
 * The sum over experts runs in that order in f32; it, the shared MLP and their sum are rounded.
 * Given routes (step.route) replace the choice, not the weights' formula. Taps: router ids and
 * weights, mlp_out, hidden. Source: spec "MoE". */
#ifndef SUMI_OPS_MOE_H
#define SUMI_OPS_MOE_H

#include "ops/op.h"

op_fn moe_ref, moe_fast;

/* The choice and its weights for one row of router logits. */
void moe_choose_ref(const float *z, int32_t n_expert, int32_t top_k, int32_t *ids, float *weights);

#endif
