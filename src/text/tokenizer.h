/* Byte-level BPE tokenizer: text to token ids and back. Built from a Hugging Face tokenizer.json or
 * from lists (GGUF metadata). Immutable after opening, so any thread may use it at once. */
#ifndef SUMI_TEXT_TOKENIZER_H
#define SUMI_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct tokenizer;

/* One step of a pre-tokeniser, applied to the pieces the previous step left. */
enum pretok_kind { PRETOK_SPLIT, PRETOK_DIGITS, PRETOK_BYTE_LEVEL };
enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
};
struct pretok_step {
    enum pretok_kind kind;
    const char *pattern; /* SPLIT: a regular expression in Oniguruma's syntax, as tokenizer.json has
                            it (text/pretok_regex.h), or a literal when is_literal */
    bool is_literal;
    enum split_behavior behavior;
    bool invert;
    bool individual_digits; /* DIGITS */
    bool add_prefix_space;  /* BYTE_LEVEL */
    bool use_regex;         /* BYTE_LEVEL: GPT-2's own split */
};

/* A tokenizer as lists. Strings are in the byte-level alphabet (GPT-2's printable mapping), except
 * added tokens, whose text is plain UTF-8. Everything is borrowed until open returns. */
struct added_token {
    int32_t id;
    const char *text;
    size_t len;
    bool special, single_word, lstrip, rstrip, normalized;
};
struct token_text {
    const char *text;
    size_t len;
};
struct tokenizer_lists {
    const struct token_text *vocab; /* [n_vocab], index = id; text NULL: a gap without a token */
    size_t n_vocab;
    const struct token_text *merges; /* [n_merge], "left right" */
    size_t n_merge;
    const struct added_token *added;
    size_t n_added;
    const struct pretok_step *steps;
    size_t n_step;
    bool nfc;
    bool ignore_merges; /* a piece that is a whole vocabulary entry is taken as it is */
};

/* Errors: FORMAT, UNSUPPORTED (a model type, normaliser or pre-tokeniser by name), LIMIT. Duplicate
 * ids, ids out of range (over 2^24), merges whose parts or product have no id are errors. A
 * byte-level step must be the last one; lists may leave it out. */
sumi_status tokenizer_open_json(struct tokenizer **out, const char *path, sumi_error *err);
sumi_status tokenizer_parse_json(struct tokenizer **out, const char *text, size_t n,
                                 const char *what, sumi_error *err);
sumi_status tokenizer_open_lists(struct tokenizer **out, const struct tokenizer_lists *lists,
                                 sumi_error *err);
void tokenizer_close(struct tokenizer *t);

struct ids {
    int32_t *data; /* owned: mem_free */
    size_t n, cap;
};
bool ids_push(struct ids *ids, int32_t id); /* false: out of memory */

/* Appends the ids of text[0..n). Where control tokens may come from:
 *   trusted NULL and specials true   added tokens are recognised anywhere (the library's default)
 *   trusted NULL and specials false  no *special* added token is recognised; its text is split into
 *                                    ordinary tokens (not special added tokens still match)
 *   trusted [n]                      an added token, special or not (parsers match tags such as
 *                                    </think> by id too), is recognised only if every byte of it
 *                                    has trusted[i] != 0
 * Text between added tokens is pre-tokenised as a whole, whatever its trust. Invalid UTF-8 is
 * SUMI_ERR_FORMAT with the offset, and so is a byte that no token of the vocabulary stands for;
 * LIMIT when a pre-tokeniser's pattern takes far too much work. On error `out` is as it was. No
 * beginning-of-sequence token is added. */
sumi_status tokenizer_encode(const struct tokenizer *t, const char *text, size_t n,
                             const uint8_t *trusted, bool specials, struct ids *out,
                             sumi_error *err);

/* Number of id values: one more than the largest id. */
int32_t tokenizer_size(const struct tokenizer *t);
bool tokenizer_has(const struct tokenizer *t, int32_t id);        /* false for gaps, out of range */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id); /* added with special = true */
bool tokenizer_is_added(const struct tokenizer *t, int32_t id);
/* Id of a token by its text (added tokens first, then byte-level text of ordinary ones), or -1. */
int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t n);
/* The bytes a token stands for (raw, maybe not valid UTF-8 alone); NULL for an id without text. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *n);
/* The vocabulary spelling (byte-level alphabet, as the tokenizers library's id_to_token). */
const char *tokenizer_spelling(const struct tokenizer *t, int32_t id, size_t *n);
/* Ids of added tokens, ascending. */
size_t tokenizer_added(const struct tokenizer *t, const int32_t **ids);
size_t tokenizer_longest(const struct tokenizer *t); /* bytes of the longest token */

/* Whole-sequence decode: invalid bytes become U+FFFD (as Rust's from_utf8_lossy does), special
 * tokens are left out when skip_special. Ids without text add nothing. */
void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                      struct buf *out);

#endif
