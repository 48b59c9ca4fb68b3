/* A completion request and its answer. */
#ifndef SUMI_SERVE_COMPLETIONS_H
#define SUMI_SERVE_COMPLETIONS_H

#include "serve/generation.h"

struct completion_choice {
    struct buf text; /* not yet sent; of a whole answer: all */
    struct buf ids;  /* token ids, comma separated, likewise */
    struct logprobs_lists logprobs;
    bool began, closed; /* its first and last chunk were made */
};

struct completion_prompt {
    struct buf echo;     /* text to put before the answer */
    struct buf logprobs; /* the prompt_logprobs value, as JSON */
};

struct completion {
    struct generation g;              /* first: generation_api functions cast to this */
    struct completion_choice *choice; /* [g.n_choice] owned */
    struct completion_prompt *prompt; /* [g.n_run] owned */
    bool prompt_logprobs;             /* the answer has its own field for them */
    bool echo_only;                   /* the one generated token is hidden */
};

extern const struct generation_api completion_api;

/* After generation_init. */
sumi_status completion_open(struct completion *x, sumi_error *err);

#endif
