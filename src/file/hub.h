/* From a model argument to files: a path, or a name in the local Hugging Face cache. */
#ifndef SUMI_FILE_HUB_H
#define SUMI_FILE_HUB_H

#include "base/status.h"

/* What the environment says about the cache; NULL or "" for unset. The caller reads the
 * environment (option table), so that nothing here does. */
struct hub_env {
    const char *download_dir;  /* --download-dir */
    const char *hf_hub_cache;  /* HF_HUB_CACHE */
    const char *hub_cache_old; /* HUGGINGFACE_HUB_CACHE */
    const char *hf_home;       /* HF_HOME */
    const char *xdg_cache;     /* XDG_CACHE_HOME */
    const char *home;          /* HOME */
};

/* Resolves `model`: an existing directory, an existing .gguf or .safetensors file, or
 * `org/name[:file or quantisation]` in the cache at `revision` (NULL: main). *out is the path of a
 * directory, a .gguf or a .safetensors file (mem_free it). A name that is not in the cache is
 * SUMI_ERR_MISSING; the message names repository, revision and cache folder. A snapshot whose index
 * names a shard that is not there is SUMI_ERR_MISSING naming the shard; a quantisation that fits
 * several files is SUMI_ERR_ARG listing them. Rules: docs/formats.md, last section. */
sumi_status hub_resolve(char **out, const char *model, const char *revision,
                        const struct hub_env *env, sumi_error *err);

#endif
