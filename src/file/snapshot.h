/* A folder of a model repository, perhaps half downloaded: which weights in it to open. */
#ifndef SUMI_FILE_SNAPSHOT_H
#define SUMI_FILE_SNAPSHOT_H

#include "base/status.h"

/* *out (mem_free it) is `dir` when it holds safetensors and want is NULL, else the path of the
 * .gguf file that `want` (see listing_choose_gguf) means. `tree` is the path of a list of what the
 * repository holds, {"format_version": 1, "files": {NAME: {"size": BYTES}}}, used when it is there.
 * SUMI_ERR_MISSING names the first file that the index, the numbers in the names, or the list
 * expect and that is not there; SUMI_ERR_FORMAT one whose size is not the listed one. */
sumi_status snapshot_choose(char **out, const char *dir, const char *want, const char *tree,
                            sumi_error *err);

#endif
