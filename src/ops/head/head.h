/* logits[i] = rms_norm(x[logit_row[i]]) W_head^T        f32, never rounded
 * The norm is rounded. Taps: final_norm for every row (not only those with logits).
 * Source: spec "Ends of the network". */
#ifndef SUMI_OPS_HEAD_H
#define SUMI_OPS_HEAD_H

#include "ops/op.h"

op_fn head_ref, head_fast;

#endif
