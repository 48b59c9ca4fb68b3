/* The architectures this build knows: how each is recognised and opened. */
#ifndef SUMI_MODEL_FAMILY_H
#define SUMI_MODEL_FAMILY_H

#include "base/json.h"
#include "file/gguf.h"
#include "model/bind.h"
#include "text/tokenizer.h"

struct family {
    const char *model_type;        /* config.json */
    const char *architecture;      /* config.json, architectures[] */
    const char *gguf_architecture; /* general.architecture */
    /* Fill the description (dimensions, layer kinds) from a config; allocate m->layer. */
    sumi_status (*from_json)(struct model *m, struct json_object *config, sumi_error *err);
    sumi_status (*from_gguf)(struct model *m, const struct gguf *g, sumi_error *err);
    /* Bind every weight of the described model. */
    sumi_status (*bind)(struct model *m, struct binder *b, bool gguf_names, sumi_error *err);
    /* tokenizer.ggml.pre and the steps it stands for. */
    const char *gguf_pre;
    const struct pretok_step *pretok;
    size_t n_pretok;
};

const struct family *family_by_config(struct json_object *config, sumi_error *err);
const struct family *family_by_gguf(const struct gguf *g, sumi_error *err);

extern const struct family flint_family;

#endif
