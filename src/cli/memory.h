/* The memory plan: what weights, cache and work space take, and what context fits. */
#ifndef SUMI_CLI_MEMORY_H
#define SUMI_CLI_MEMORY_H

#include "base/buf.h"
#include "base/option.h"
#include "model/model.h"

struct memory_plan {
    int32_t max_model_len; /* prompt + output */
    int32_t max_num_seqs, max_rows;
    int32_t n_slab;
    int64_t slabs_per_sequence; /* of max_model_len tokens */
    size_t slab_bytes;
    int64_t weights, scratch, logits, pool, total;
    int64_t available; /* -1: unknown */
    bool shortened;    /* the model's own length did not fit */
};

/* Plans for the options. `weights`: bytes of the checkpoint; `half`: keys and values in bf16. An
 * explicit length that does not fit is SUMI_ERR_LIMIT naming the largest that would. */
sumi_status memory_plan(struct memory_plan *p, const struct options *o, const struct model *m,
                        int64_t weights, bool half, sumi_error *err);
/* The plan as lines of text, each with what it is and how much. */
void memory_describe(const struct memory_plan *p, const struct model *m, struct buf *out);

#endif
