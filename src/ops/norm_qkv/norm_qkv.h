/* a = rms_norm(x); q, k, v = a W^T; norms of each head of q and k; rotary positions; k and v into
 * the cache.
 *
 *   y[i]       = x[i] cos - x[i + d/2] sin              pairs (i, i + d/2), i < d/2
 *   y[i + d/2] = x[i + d/2] cos + x[i] sin              angle = f32(pos * inv_freq[i])
 *
 * Rounded: a; q, k, v; q and k after their norm; q and k after rotation; cache entries.
 * layer_input, when given, replaces x first. Source: spec "Attention block", steps 1 to 3. */
#ifndef SUMI_OPS_NORM_QKV_H
#define SUMI_OPS_NORM_QKV_H

#include "ops/op.h"

op_fn norm_qkv_ref, norm_qkv_fast;

#endif
