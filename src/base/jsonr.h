/* Reading JSON without building it: for large lists, where a tree costs more than the text. */
#ifndef SUMI_BASE_JSONR_H
#define SUMI_BASE_JSONR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A place in a text of valid UTF-8. Set text, n, what and err; zero the rest. Errors are
 * SUMI_ERR_FORMAT with the byte offset, or MEMORY; after one the reader is of no more use. */
struct json_reader {
    const char *text;
    size_t n, at;
    const char *what; /* names the source in messages */
    sumi_error *err;
    bool fresh;    /* just behind an opening bracket */
    char *decoded; /* owned: strings that had escapes; n bytes, so that it never moves */
    size_t n_decoded;
};

void jsonr_reset(struct json_reader *r); /* frees what strings with escapes were kept in */

/* The next character that is no white space, 0 at the end; it is not taken. */
char jsonr_peek(struct json_reader *r);
/* Takes an opening bracket, '{' or '['. */
sumi_status jsonr_enter(struct json_reader *r, char open);
/* *more: another member or element follows (the comma is taken); else the closing bracket is. */
sumi_status jsonr_more(struct json_reader *r, char close, bool *more);
/* A string; borrowed from the text or, if it has escapes, from the reader until jsonr_reset. */
sumi_status jsonr_string(struct json_reader *r, const char **s, size_t *n);
/* A member's name and the colon. */
sumi_status jsonr_key(struct json_reader *r, const char **s, size_t *n);
/* An integer of at most 18 digits. */
sumi_status jsonr_int(struct json_reader *r, int64_t *out);
/* Skips one value; only its brackets and strings are checked. */
sumi_status jsonr_skip(struct json_reader *r);

#endif
