/* The files of a folder by name, and the choice of one .gguf among several. */
#ifndef SUMI_FILE_LISTING_H
#define SUMI_FILE_LISTING_H

#include <stdbool.h>

#include "base/status.h"
#include "file/strings.h"

struct listing {
    const char **name; /* [n] paths relative to the folder, in order of name; owned */
    size_t n, cap;
    struct strings strings;
};

/* Names that end in `suffix` (any letter case), in dir and `depth` levels below it; hidden files
 * and folders are left out. A link whose target is missing is listed. */
sumi_status listing_read(struct listing *l, const char *dir, const char *suffix, int depth,
                         sumi_error *err);
void listing_reset(struct listing *l);

/* The one .gguf that `want` means: a path or file name, else a part of one such as "Q8_0" (any
 * case; one that stands between separators is better than one inside a word), else, with NULL, any.
 * Of a split file the first part stands for all; projector files (mmproj...) count only by full
 * name. None is SUMI_ERR_MISSING, several SUMI_ERR_ARG, both listing the choices. `where` names the
 * folder in messages. *out is borrowed from l. */
sumi_status listing_choose_gguf(const struct listing *l, const char *want, const char *where,
                                const char **out, sumi_error *err);

bool has_suffix(const char *name, const char *suffix); /* any letter case */
const char *base_name(const char *path);               /* behind the last '/' */
char *path_join(const char *dir, const char *name);    /* mem_free it; NULL: memory is short */

#endif
