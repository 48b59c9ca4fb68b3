/* The arrays of one step: what struct batch points to, and room for its logits. */
#ifndef SUMI_ENGINE_STEP_H
#define SUMI_ENGINE_STEP_H

#include "engine/task.h"

struct step {
    struct batch batch;            /* points into the arrays below */
    struct choice **choice;        /* [batch.n_seq] whose rows, in the order of the batch */
    int32_t *first_logit;          /* [batch.n_seq] where a choice's logit rows begin */
    int32_t *token, *pos, *seq_of; /* [max_rows] */
    struct seq_pages *seq;         /* [max_seqs] */
    int32_t *logit_row;            /* [max_logits] */
    float *logits;                 /* [max_logits][vocab] */
};

/* vocab 0: no logits. The memory of rows that are never used is never touched. */
sumi_status step_open(struct step *s, int32_t max_rows, int32_t max_seqs, int32_t max_logits,
                      int32_t vocab, sumi_error *err);
void step_close(struct step *s);

/* Fills the batch from the choices that have rows in this step. */
void step_build(struct step *s, struct choice *const *running, int32_t n_running);

#endif
