/* A tokenizer from GGUF metadata. */
#ifndef SUMI_MODEL_GGUF_TOKENIZER_H
#define SUMI_MODEL_GGUF_TOKENIZER_H

#include "file/gguf.h"
#include "model/family.h"

/* Reads tokenizer.ggml.{model,pre,tokens,token_type,merges}. The pre-tokeniser's name must be the
 * family's. Tokens of type unused are gaps; control and user-defined ones are added tokens. */
sumi_status gguf_tokenizer(struct tokenizer **out, const struct gguf *g, const struct family *f,
                           sumi_error *err);

#endif
