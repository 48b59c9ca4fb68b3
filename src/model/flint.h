/* The two halves of the Flint family: description (flint.c) and weights (flint_bind.c). */
#ifndef SUMI_MODEL_FLINT_H
#define SUMI_MODEL_FLINT_H

#include "model/family.h"

/* Binds every weight of a described model, from safetensors or GGUF names. */
sumi_status flint_bind(struct model *m, struct binder *b, bool gguf_names, sumi_error *err);

#endif
