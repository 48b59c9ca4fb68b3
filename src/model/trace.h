/* The window for checks: one prompt through a model, with every intermediate array written as a
 * .npy file (design, "Command line"). Names, shapes and types are those of the reference scripts.
 */
#ifndef SUMI_MODEL_TRACE_H
#define SUMI_MODEL_TRACE_H

#include "device/device.h"
#include "model/model.h"

struct trace_options {
    const int32_t *ids; /* [n_ids] the prompt */
    int32_t n_ids;
    const char *out;         /* folder, made if absent */
    bool bf16;               /* --dtype bfloat16; else float32 */
    int32_t chunk;           /* prefill in pieces of so many rows; 0: whole */
    int32_t generate;        /* greedy continuation of so many tokens, not stopped by any */
    const char *route;       /* router_ids.npy to take expert choices from, or NULL */
    const char *layerwise;   /* hidden.npy: give each layer that input, or NULL */
    const uint8_t *token_ok; /* [vocab] ids that may be generated, or NULL */
};

/* Writes logits, hidden, attn_out, mlp_out, final_norm, router_ids, router_weights and, when asked
 * for, generated. */
sumi_status trace_run(const struct model *m, struct device *d, const struct trace_options *o,
                      sumi_error *err);

#endif
