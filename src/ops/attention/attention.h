/* o[r][h] = sum_j p_j v_j over the cached positions j that row r may see:
 *
 *   j <= pos, and with a window w: j > pos - w
 *   s_j = scale * (q . k_j);  p_j = exp(s_j - m) / (exp(sink_h - m) + sum_j exp(s_j - m))
 *
 * The sink enlarges the denominator, has no value and is not scaled. Head h reads key/value head
 * h / (n_head / n_kv). Positions are visited page by page, pages counted from position 0, with a
 * running maximum, so the bits depend on neither chunking nor batching.
 * Rounded: exp(s_j - m) where it meets v_j (the denominator sums the unrounded values), and o.
 * Source: spec "Attention block", steps 4 to 6. */
#ifndef SUMI_OPS_ATTENTION_H
#define SUMI_OPS_ATTENTION_H

#include "ops/op.h"

op_fn attention_ref, attention_fast;

#endif
