/* From a sampled token to what the client gets: stop rules, released text, the event. */
#ifndef SUMI_ENGINE_ANSWER_H
#define SUMI_ENGINE_ANSWER_H

#include "base/buf.h"
#include "engine/task.h"

/* Scratch of the engine's thread. All zero is ready to use, with the stop ids set. */
struct answer {
    const int32_t *eos; /* [n_eos] borrowed */
    size_t n_eos;
    struct buf text;     /* copies of pieces, when two calls of a stream make one event */
    struct piece *piece; /* [n_piece] over text */
    size_t n_piece, cap_piece;
};

void answer_reset(struct answer *a);

/* Sends the event of a token that was just appended to the choice; top [n_top] are its log
 * probabilities. *finish says whether it was the last: by an end token (STOP; unless ignore_eos), a
 * stop id, a stop string, or the budget (LENGTH), in this order, except that a stop string goes
 * before the budget. On an error, out of memory, no event was sent. */
sumi_status answer_token(struct answer *a, struct choice *c, int32_t id,
                         const struct token_logprob *top, size_t n_top, enum finish *finish,
                         sumi_error *err);

/* Sends the last event of a choice that ends without a new token. Text held back is released with
 * it, except after an error. */
void answer_end(struct answer *a, struct choice *c, enum finish finish, const sumi_error *error);

#endif
