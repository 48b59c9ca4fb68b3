/* struct engine: which thread may touch what. */
#ifndef SUMI_ENGINE_STATE_H
#define SUMI_ENGINE_STATE_H

#include <pthread.h>

#include "engine/answer.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "engine/step.h"

enum { ID_BUCKETS = 1024 };

/* What a turn adds to the guarded counts. */
struct turn_counts {
    int64_t closed; /* choices */
    int64_t read;   /* prompt tokens no longer waiting to be read */
    int64_t prompt_tokens, generation_tokens, steps;
    int32_t rows; /* of the step */
};

struct engine {
    /* Set by engine_open, then constant. */
    struct engine_config config;
    int32_t *eos; /* [config.n_eos] */
    struct stepper stepper;
    const struct tokenizer *tokenizer; /* kept; may be NULL */
    int32_t vocab;
    size_t logit_stride; /* floats from one row of logits to the next; 0 in replay: none exist */
    int32_t max_len;     /* the longest sequence: max_model_len, or less in a small pool */
    pthread_t thread;

    /* The one lock: a leaf, never held during a callback or a step. It guards what follows. */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the engine's thread has something new to look at */
    struct task *inbox, *inbox_last;
    struct task *bucket[ID_BUCKETS]; /* by id, linked by id_next */
    bool any_cancelled, closing, draining;
    uint64_t n_arrival;
    int64_t n_open;        /* choices submitted and not ended */
    int64_t unread_tokens; /* of prompts whose task has not finished reading them */
    struct engine_stats stats;

    /* The engine's thread alone. */
    struct pages *pages;
    struct scheduler sched;
    struct sampler *sampler;
    struct step step;
    struct answer answer;
    struct token_logprob *top; /* [cap_top] of one token */
    size_t cap_top;
    struct task *live;  /* doubly linked, newest first */
    struct task *ended; /* to be reported and freed at the end of the turn */
    struct turn_counts turn;
    bool dead;
    sumi_error fault; /* why, when dead */
};

/* loop.c: the engine's thread. */
void *engine_main(void *engine);

/* turn.c: one step from plan to events; no lock is held. */
void engine_turn(struct engine *e);
/* Ends every open choice of a task with this finish; `error` with FINISH_ERROR. */
void end_task(struct engine *e, struct task *t, enum finish finish, const sumi_error *error);
void end_all(struct engine *e, enum finish finish, const sumi_error *error);

#endif
