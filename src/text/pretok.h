/* Pre-tokeniser: cuts text into the pieces within which BPE merges. */
#ifndef SUMI_TEXT_PRETOK_H
#define SUMI_TEXT_PRETOK_H

#include "text/tokenizer.h"

struct pretok_part;
struct pretok {
    struct pretok_part *part; /* owned; immutable after opening */
    size_t n_part;
};

/* Compiles the steps. UNSUPPORTED: a byte-level step that is not the last, an empty pattern, or
 * what regex_translate refuses; LIMIT: over 32 steps. */
sumi_status pretok_open(struct pretok *p, const struct pretok_step *steps, size_t n,
                        sumi_error *err);
void pretok_close(struct pretok *p);

/* What one run needs besides the pretok; of one thread. */
struct pretok_work {
    struct pretok_match *match; /* owned */
    struct buf prefixed;
};
void pretok_work_reset(struct pretok_work *w);

/* Called with each piece in order; a piece is never empty and is borrowed for the call. */
typedef sumi_status (*pretok_sink)(void *ctx, const char *piece, size_t n, sumi_error *err);

/* text [n] is valid UTF-8. LIMIT when a pattern takes far more work than its text is long. */
sumi_status pretok_run(const struct pretok *p, struct pretok_work *w, const char *text, size_t n,
                       pretok_sink sink, void *ctx, sumi_error *err);

#endif
