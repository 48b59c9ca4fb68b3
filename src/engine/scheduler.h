/* Who runs in the next step, with how many rows. Decodes come first, prompts fill the rest in
 * chunks; whoever runs holds slabs for every position of the step before it starts. When the pool
 * runs out, the newest sequence gives up its slabs, goes back to the queue and is computed again
 * later from its tokens, which it keeps. Order is by (priority, arrival, choice); the first in that
 * order is never preempted, so something always advances.
 *
 * Choices of a request share the full pages of its prompt: the first one computes the prompt, the
 * others start at the last page boundary before its end and compute the tail again, since two
 * sequences may not write into one slab. Until all have started, the task itself holds a lease on
 * those pages. */
#ifndef SUMI_ENGINE_SCHEDULER_H
#define SUMI_ENGINE_SCHEDULER_H

#include "engine/task.h"

struct scheduler {
    struct pages *pages;     /* kept */
    int32_t max_seqs;        /* running at once */
    int32_t max_rows;        /* of a step; at least max_seqs */
    int32_t max_chunk;       /* rows of one sequence in a step */
    int32_t max_scores;      /* logit rows of a step that score prompts, beyond one per sequence */
    struct choice **running; /* [n_running] in order; room for max_seqs */
    int32_t n_running;
    struct choice *head, *tail; /* the queue, in order */
    int32_t n_queued;
    struct task *lease; /* tasks that hold one, newest first */
    int64_t n_preemption;
};

/* The limits and `pages` are set by the caller. */
sumi_status sched_open(struct scheduler *s, sumi_error *err);
void sched_close(struct scheduler *s);

void sched_queue(struct scheduler *s, struct choice *c);
/* Takes a choice out of the queue or the running ones for good and gives its slabs back; with the
 * last choice goes the task's lease. */
void sched_end(struct scheduler *s, struct choice *c);

/* Sets n_row and n_logit of every running choice (0: not in this step). An error is out of memory
 * for *culprit, whose task must end; nothing is planned then. */
sumi_status sched_plan(struct scheduler *s, struct choice **culprit, sumi_error *err);

/* The rows of the step are in the pages now. */
void sched_computed(struct scheduler *s, struct choice *c);

#endif
