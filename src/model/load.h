/* A model argument to everything that serves it: weights, description, tokenizer, template,
 * sampling defaults, stop set. Config and tokenizer may come from elsewhere than the weights.
 *
 *   config      --hf-config-path, the model's folder, GGUF metadata
 *   tokenizer   --tokenizer, the config's folder, GGUF metadata
 *   template    --chat-template, chat_template.jinja, tokenizer_config.json, GGUF metadata
 *   sampling    --generation-config, the config's folder, general.sampling.* of a GGUF
 *   stop set    the union of all that these name: model/stops.h */
#ifndef SUMI_MODEL_LOAD_H
#define SUMI_MODEL_LOAD_H

#include "base/json.h"
#include "file/checkpoint.h"
#include "model/model.h"
#include "text/tokenizer.h"

enum weight_source { WEIGHTS_FILE, WEIGHTS_DUMMY, WEIGHTS_NONE };

struct load_options {
    const char *path;              /* directory or .gguf, already resolved; NULL only with dummy */
    const char *config_path;       /* --hf-config-path: directory with config.json, or NULL */
    const char *tokenizer_path;    /* --tokenizer: directory or tokenizer.json, or NULL */
    const char *chat_template;     /* --chat-template: text, or NULL for the checkpoint's */
    const char *generation_config; /* "auto", "vllm", or a folder */
    struct json_object *hf_overrides; /* merged into config.json, or NULL */
    enum weight_source weights;       /* NONE: replay, info, tokenize */
    uint64_t dummy_seed;
};

struct stop_id {
    int32_t id;
    const char *source; /* "generation_config.json", "tokenizer.ggml.eos_token_id", ... */
};

struct family;

struct loaded {
    const struct family *family;
    struct checkpoint *checkpoint; /* NULL with WEIGHTS_NONE or DUMMY without files */
    struct model *model;
    struct tokenizer *tokenizer;    /* NULL when there is none */
    char *chat_template;            /* text, or NULL */
    struct json_object *generation; /* generation config (object) or NULL */
    struct stop_id *stop;           /* [n_stop] */
    size_t n_stop;
    char *bos, *eos; /* token texts or NULL */
};

sumi_status model_load(struct loaded *out, const struct load_options *options, sumi_error *err);
void loaded_reset(struct loaded *l);

/* [vocab] 1 where an id has token text and may be sampled; mem_free it. NULL: out of memory. */
uint8_t *loaded_token_mask(const struct loaded *l, sumi_error *err);

#endif
