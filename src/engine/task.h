/* A request inside the engine: the caller's values, copied, and one sequence per choice. */
#ifndef SUMI_ENGINE_TASK_H
#define SUMI_ENGINE_TASK_H

#include "engine/engine.h"
#include "engine/pages.h"

enum choice_state {
    CHOICE_DORMANT, /* waits until the first choice has read the prompt */
    CHOICE_WAITING,
    CHOICE_RUNNING,
    CHOICE_DONE
};

struct task;

/* One sequence: the prompt, then what was sampled. */
struct choice {
    struct task *task;
    int32_t index;
    uint64_t seed;
    enum choice_state state;
    bool announced;       /* its first event is out */
    int64_t scheduled_ns; /* clock_ns() when it was first admitted; 0: not yet */
    int32_t n_preemption;
    int32_t n_output;           /* tokens sampled */
    int32_t *output;            /* [n_output], room for cap_output */
    int32_t cap_output;         /* grows by doubling up to max_tokens */
    int32_t n_computed;         /* positions whose keys and values are in the pages */
    int32_t n_row;              /* rows in the step being built: positions from n_computed on */
    int32_t n_logit;            /* of these, how many, from the end, want logits */
    struct page_table pages;    /* held while running */
    struct stream *stream;      /* NULL without a tokenizer */
    struct choice *prev, *next; /* neighbours in the queue */
};

struct task {
    struct request r; /* lists point into `memory`; sampling is checked and clamped */
    void *memory;
    int64_t priority; /* 0 unless the policy is by priority */
    uint64_t arrival, id;
    struct choice *choice; /* [r.n] */
    int32_t n_open;        /* choices that have not ended */
    int32_t n_unstarted;   /* choices never admitted yet */
    bool prompt_done;      /* its first choice has read the prompt */
    bool cancelled;        /* engine's lock */

    /* Full pages of the prompt, kept for choices that have not started. */
    struct page_table lease;
    struct task *lease_prev, *lease_next; /* neighbours among the tasks with a lease */

    struct token_event *prompt_token; /* [n_prompt], or NULL: prompt logprobs not asked for */
    struct token_logprob *prompt_top; /* [n_prompt][n_prompt_logprobs + 1] */
    int32_t n_scored;                 /* prompt tokens whose entry is complete */

    struct task *id_next;     /* engine's lock: same bucket */
    struct task *prev, *next; /* engine's lock while in the inbox; then among the live, the ended */
    struct task *cancel_next;
};

/* Copies a request whose values are checked already, and opens a stream for each choice when there
 * is a tokenizer. The seeds are set by task_seed. */
sumi_status task_open(struct task **out, const struct request *r, const struct tokenizer *t,
                      sumi_error *err);
void task_close(struct task *t); /* no choice may hold pages any more */
void task_seed(struct task *t, uint64_t seed);

static inline int32_t task_prompt(const struct task *t) {
    return (int32_t)t->r.n_prompt;
}

static inline int32_t choice_total(const struct choice *c) {
    return task_prompt(c->task) + c->n_output;
}

static inline int32_t choice_token(const struct choice *c, int32_t pos) {
    int32_t n_prompt = task_prompt(c->task);
    return pos < n_prompt ? c->task->r.prompt[pos] : c->output[pos - n_prompt];
}

/* Appends a sampled token. */
sumi_status choice_append(struct choice *c, int32_t id, sumi_error *err);

/* Positions of the prompt that its choices can share: full pages, without the last token, whose
 * row must be computed to give logits. */
static inline int32_t task_shared(const struct task *t) {
    return (task_prompt(t) - 1) / PAGE_TOKENS * PAGE_TOKENS;
}

#endif
