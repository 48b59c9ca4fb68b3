/* Parts of JSON answers that several APIs share. */
#ifndef SUMI_SERVE_RESPONSE_H
#define SUMI_SERVE_RESPONSE_H

#include "serve/generation.h"

struct usage {
    int64_t prompt, completion;
    int64_t cached;    /* -1: no prompt_tokens_details */
    int64_t reasoning; /* -1: no completion_tokens_details */
    bool write_nulls;  /* absent details are written as null */
};
/* The object alone. */
void response_put_usage(const struct usage *u, struct buf *out);

/* Opens an object with id, object, created and model; no closing brace. */
void response_open(const struct generation *g, const char *object, struct buf *out);

/* "name": text or null, with a leading comma. */
void response_put_field(const char *name, const char *text, size_t n, struct buf *out);

/* A JSON array of ids. */
void response_put_ids(const int32_t *id, size_t n, struct buf *out);

/* The "metrics" value of a request with one choice, or null. */
void response_put_metrics(const struct generation *g, struct buf *out);

#endif
