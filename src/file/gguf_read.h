/* One GGUF file: its header -> metadata and tensors. Layout: docs/formats.md. */
#ifndef SUMI_FILE_GGUF_READ_H
#define SUMI_FILE_GGUF_READ_H

#include "file/gguf.h"
#include "file/name_index.h"
#include "file/tensor_list.h"

struct gguf {
    const char *file;      /* base name, for messages; borrowed */
    struct gguf_value *kv; /* [n] in file order; owned */
    size_t n, cap;
    struct name_index index; /* over kv */
    struct strings strings;  /* keys */
};

/* Reads the header of data[0..bytes) and appends the tensors, in the order of their data, to the
 * list. data and file (a base name) are kept. On failure *out is NULL and the list may hold some of
 * the tensors. Free with gguf_close. */
sumi_status gguf_read(struct gguf **out, struct tensor_list *list, const uint8_t *data,
                      size_t bytes, const char *file, sumi_error *err);
void gguf_close(struct gguf *g); /* NULL is fine */

const char *gguf_type_name(enum gguf_type t); /* "u32", "string", ... */
size_t gguf_type_bytes(enum gguf_type t);     /* of one element; 0 for strings and arrays */

#endif
