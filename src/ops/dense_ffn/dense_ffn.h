/* x = rounded(x + mlp(rms_norm(x)))                     mlp(a) = (silu(a G^T) * (a U^T)) D^T
 * Rounded: the norm, both products, the activation, the result. Taps: mlp_out and hidden.
 * Source: spec "Dense MLP". */
#ifndef SUMI_OPS_DENSE_FFN_H
#define SUMI_OPS_DENSE_FFN_H

#include "ops/op.h"

op_fn dense_ffn_ref, dense_ffn_fast;

#endif
