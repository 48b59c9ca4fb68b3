/* One safetensors file: its header -> tensors. Layout: docs/formats.md. */
#ifndef SUMI_FILE_SAFETENSORS_H
#define SUMI_FILE_SAFETENSORS_H

#include <stdint.h>

#include "file/tensor_list.h"

/* Appends the tensors of data[0..bytes), in the order of their data, to the list. data and file
 * (a base name) are kept. On failure the list may hold some of them. */
sumi_status safetensors_read(struct tensor_list *list, const uint8_t *data, size_t bytes,
                             const char *file, sumi_error *err);

#endif
