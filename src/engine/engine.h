/* The engine: one thread that owns queue, pages, batch and sampling. It knows neither JSON nor
 * HTTP. Requests go in from any thread; events come back through a callback on the engine's thread,
 * which must return quickly and never block. */
#ifndef SUMI_ENGINE_ENGINE_H
#define SUMI_ENGINE_ENGINE_H

#include "engine/sampling.h"
#include "model/batch.h"
#include "text/stream.h"

struct engine;

struct engine_config {
    int32_t max_num_seqs;           /* running at once */
    int32_t max_num_batched_tokens; /* rows per step, at least max_num_seqs: decodes first, prefill
                                       chunks fill the rest */
    int32_t max_model_len;          /* prompt + output */
    int32_t prefill_chunk;          /* rows of one sequence per step; 0: no limit but the above */
    int32_t max_num_queued_reqs;    /* waiting + running; 0: no limit */
    int64_t max_num_queued_tokens;  /* unfinished prompt tokens; 0: no limit */
    bool priority_policy;           /* by (priority, arrival); else first come, first served */
    int32_t max_logprobs;           /* -1: no cap */
    enum logprobs_mode logprobs_mode;
    uint64_t seed;      /* of the generator that seeds unseeded requests */
    const int32_t *eos; /* [n_eos] copied: ids that end an answer */
    size_t n_eos;
    bool replay;             /* requests carry the tokens the model is to say; no stepper is used */
    int32_t n_slab_override; /* tests: fewer slabs than the stepper has; 0: all */
};

enum finish { FINISH_NONE, FINISH_STOP, FINISH_LENGTH, FINISH_ABORT, FINISH_ERROR };

struct token_event {
    int32_t id;
    const struct token_logprob *top; /* [n_top] sampled token first; n_top 0 unless asked for */
    size_t n_top;
};

/* Everything is borrowed for the duration of the callback. */
struct event {
    int32_t choice;
    const struct token_event *token; /* [n_token] newly accepted, the stopping one included */
    size_t n_token;
    const struct piece *piece; /* [n_piece] newly released text */
    size_t n_piece;
    enum finish finish;      /* FINISH_NONE: more follows */
    int32_t stop_string;     /* index into sampling.stop, or -1 */
    int32_t stop_token;      /* a stop id of the request, or -1 (also when an EOS ended it) */
    const sumi_error *error; /* with FINISH_ERROR */
    int32_t n_prompt, n_cached, n_output;   /* counts of this choice so far */
    const struct token_event *prompt_token; /* with the first event when prompt logprobs were
                                               asked for: [n_prompt], entry 0 has no top */
    int64_t scheduled_ns; /* clock_ns() when this choice was first in a step; 0: never */
    int32_t n_preemption; /* of this choice so far */
};

/* Requests are values: everything is copied by engine_submit. */
struct request {
    const int32_t *prompt;
    size_t n_prompt;
    struct sampling sampling;
    int32_t n; /* choices; choice i uses seed + i */
    int64_t priority;
    const int32_t *replay; /* replay mode: what to say; its end token follows. NULL: the prompt's
                              own last user-visible ids are the caller's affair */
    size_t n_replay;
    void (*on_event)(void *user, const struct event *e);
    void (*on_end)(void *user); /* last call for this request: no callback follows */
    void *user;
};

struct engine_stats {
    int32_t n_running, n_waiting;
    int32_t slab_used, slab_total;
    int64_t n_preemption;
    int64_t prompt_tokens, generation_tokens;
    int64_t n_step;
    int64_t step_rows;         /* rows of all steps */
    int64_t steps_by_log2[32]; /* steps of 2^(i-1) < rows <= 2^i */
    bool dead;
};

/* `stepper` (copied) and `tokenizer` are kept until close. Refuses a pool that cannot hold one
 * sequence of max_model_len and names the largest length that would fit; with n_slab_override the
 * context is then what fits. The tokenizer may be NULL: no text is released and stop strings are
 * refused. In replay the stepper may be NULL: then the tokenizer defines the vocabulary. */
sumi_status engine_open(struct engine **out, const struct engine_config *config,
                        const struct stepper *stepper, const struct tokenizer *tokenizer,
                        sumi_error *err);
/* Ends every request with FINISH_ABORT, joins the thread, frees everything. */
void engine_close(struct engine *e);

/* Checks and queues a request; max_tokens is lowered to what context and pool leave. SUMI_ERR_ARG
 * (bad parameter), SUMI_ERR_LIMIT (prompt longer than the context, or can never fit),
 * SUMI_ERR_BUSY (admission limit), SUMI_ERR_STATE (engine dead or draining), SUMI_ERR_MEMORY. On
 * success *id is its handle, written before the first event. A NaN in its logits, or memory running
 * out for it, ends all its choices with FINISH_ERROR and no other request; a failed step ends the
 * requests in it; a device error ends the engine. */
sumi_status engine_submit(struct engine *e, const struct request *r, uint64_t *id, sumi_error *err);
/* Ends a request at the next step with FINISH_ABORT; unknown or finished ids are ignored. */
void engine_cancel(struct engine *e, uint64_t id);
/* Refuses new requests from now on (SUMI_ERR_STATE). */
void engine_drain(struct engine *e);
struct engine_stats engine_stats(struct engine *e);

#endif
