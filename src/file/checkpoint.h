/* A checkpoint on disk as named, typed, bounds-checked views: a directory of safetensors (with or
 * without an index), one .safetensors file, or one .gguf file. Knows no model, trusts no byte. */
#ifndef SUMI_FILE_CHECKPOINT_H
#define SUMI_FILE_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

enum { TENSOR_MAX_DIM = 4 };

struct tensor {
    const char *name; /* NUL-terminated, borrowed from the checkpoint */
    const char *file; /* base name of the file that holds it, for messages */
    enum dtype dtype;
    int n_dim;                   /* 0 for a scalar */
    int64_t dim[TENSOR_MAX_DIM]; /* outermost first, as in safetensors: [out, in]. A GGUF ne list
                                    is reversed on reading. Unused entries are 1 */
    const void *data;            /* mapped read-only; may be misaligned for its type */
    size_t bytes;
};

struct checkpoint;
struct gguf;

/* Maps the files of `path` and reads their headers; no tensor data is touched. Errors: IO,
 * FORMAT, SHAPE, LIMIT, UNSUPPORTED, each naming file and tensor. Duplicate, overlapping, misplaced
 * or misaligned-to-nothing tensors, and holes in a safetensors file, are errors. */
sumi_status checkpoint_open(struct checkpoint **out, const char *path, sumi_error *err);
void checkpoint_close(struct checkpoint *c); /* NULL is fine */

/* The same for one container in memory, kept until close. `file` stands for its name: the suffix
 * .gguf or .safetensors says which container it is, without one its first bytes do. */
sumi_status checkpoint_open_memory(struct checkpoint **out, const void *data, size_t bytes,
                                   const char *file, sumi_error *err);

size_t checkpoint_count(const struct checkpoint *c);
const struct tensor *checkpoint_at(const struct checkpoint *c, size_t i);           /* file order */
const struct tensor *checkpoint_find(const struct checkpoint *c, const char *name); /* or NULL */
size_t checkpoint_bytes(const struct checkpoint *c);            /* sum over tensors */
const struct gguf *checkpoint_gguf(const struct checkpoint *c); /* metadata, NULL for safetensors */

/* "F32 [8, 64]" into out; returns out. For messages. */
char *tensor_describe(const struct tensor *t, char *out, size_t n);

#endif
