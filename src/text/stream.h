/* From sampled token ids to released text: holds back incomplete UTF-8 and possible beginnings of
 * stop strings, cuts at a stop string, and keeps control tokens apart from text so that a parser
 * can match them by id. One stream per generated sequence. */
#ifndef SUMI_TEXT_STREAM_H
#define SUMI_TEXT_STREAM_H

#include "text/tokenizer.h"

/* A released piece, in order. An added token is a piece of its own with its id; everything else is
 * text with id -1. Bytes of all pieces of a stream, joined, are valid UTF-8. */
struct piece {
    int32_t id;       /* added token, or -1 */
    const char *text; /* not NUL-terminated; borrowed until the next call on the stream */
    size_t n;
};

struct stream_options {
    const char *const *stop; /* [n_stop] non-empty, valid UTF-8; copied */
    const size_t *stop_len;
    size_t n_stop;
    bool include_stop; /* the stop string itself is released too */
    bool skip_special; /* special added tokens release nothing (and match no stop string) */
    size_t min_tokens; /* a stop string counts only if it ends in text of a later token */
};

struct stream;

sumi_status stream_open(struct stream **out, const struct tokenizer *t,
                        const struct stream_options *options, sumi_error *err);
void stream_close(struct stream *s);

/* Tells the decoder what precedes the answer, before the first push; released text does not include
 * it, but a character that begins in the prompt and ends in the answer is released. */
void stream_prime(struct stream *s, const int32_t *prompt, size_t n);

/* Takes one sampled token. Then `*pieces` [*n] is what became visible. *stopped >= 0: the stop
 * string of that index was completed by this token; the text before it (or with it) is released and
 * the stream takes no more tokens. Of several matches the one that ends first wins, then list
 * order. The longest text held back is the longest matching prefix of a stop string, plus up to
 * three bytes of an incomplete character; an added token is held whole as long as part of it is,
 * and one that a stop string cuts is plain text. Ids without text release nothing. Errors: STATE
 * after the end, MEMORY (the stream has then ended too). */
sumi_status stream_push(struct stream *s, int32_t id, const struct piece **pieces, size_t *n,
                        int *stopped, sumi_error *err);

/* The end without a stop string: releases held text; incomplete UTF-8 is dropped. */
sumi_status stream_finish(struct stream *s, const struct piece **pieces, size_t *n,
                          sumi_error *err);

#endif
