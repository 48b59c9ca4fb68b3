/* A model bound to a device: buffers, cache pool, and the execution of steps. */
#ifndef SUMI_MODEL_RUNNER_H
#define SUMI_MODEL_RUNNER_H

#include "device/device.h"
#include "model/batch.h"
#include "model/model.h"

struct runner_options {
    bool bf16;               /* round activations and keep keys and values in bf16; else float32 */
    int32_t max_rows;        /* largest step */
    int32_t n_slab;          /* slabs in the cache pool */
    const uint8_t *token_ok; /* [vocab] 0: logits of this id become -inf; NULL: none. Copied */
};

struct runner;

/* model and device are borrowed until runner_close. */
sumi_status runner_open(struct runner **out, const struct model *m, struct device *d,
                        const struct runner_options *options, sumi_error *err);
void runner_close(struct runner *r); /* NULL is fine */

/* The runner as the engine sees it. */
struct stepper runner_stepper(struct runner *r);

/* One step; contract: struct stepper. */
sumi_status runner_step(struct runner *r, const struct batch *b, float *logits, sumi_error *err);

/* Bytes of one slab: PAGE_TOKENS positions of one layer's keys and values, in bf16 if `half`. */
size_t runner_slab_bytes(const struct model *m, bool half);

/* Slabs that one sequence of n positions holds at its fullest: windows keep what the next query
 * sees, while `chunk` rows are computed at once. */
int64_t runner_sequence_slabs(const struct model *m, int64_t n, int64_t chunk);

/* Bytes of all buffers but weights and pool. */
size_t runner_scratch_bytes(const struct model *m, int32_t max_rows);

#endif
