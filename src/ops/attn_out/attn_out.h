/* x = rounded(x + rounded(a W_o^T))                     the attention branch joins the residual
 * Taps: attn_out, the branch before the add. Source: spec "Attention block", step 7. */
#ifndef SUMI_OPS_ATTN_OUT_H
#define SUMI_OPS_ATTN_OUT_H

#include "ops/op.h"

op_fn attn_out_ref, attn_out_fast;

#endif
