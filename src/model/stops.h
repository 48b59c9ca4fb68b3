/* The stop set: ids that end an answer, each with where it was found. */
#ifndef SUMI_MODEL_STOPS_H
#define SUMI_MODEL_STOPS_H

#include "base/json.h"
#include "file/gguf.h"
#include "model/load.h"

/* Fills l->stop with the union of eos_token_id of generation_config.json and config.json, the eos
 * token of the tokenizer, the end ids of GGUF metadata, and every control token whose text is a
 * known end marker. Ids outside the vocabulary are SUMI_ERR_SHAPE naming their source. */
sumi_status stops_collect(struct loaded *l, struct json_object *config, const struct gguf *g,
                          sumi_error *err);

#endif
