/* x[r] = table[token[r]]                                the residual stream's beginning
 * Rounded. Taps: hidden[0]. A token outside the table is SUMI_ERR_ARG.
 * Source: spec "Ends of the network". */
#ifndef SUMI_OPS_EMBED_H
#define SUMI_OPS_EMBED_H

#include "ops/op.h"

op_fn embed_ref;

#endif
