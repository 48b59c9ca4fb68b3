/* Any bytes as a .safetensors file: refused with a message, or every tensor readable to its end. */
#include <stdint.h>
#include <stdlib.h>

#include "file/checkpoint.h"

static volatile unsigned sink; /* so that reads are not left out */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct checkpoint *c;
    sumi_error err = {0};
    if (checkpoint_open_memory(&c, data, n, "input.safetensors", &err) != SUMI_OK) {
        if (c || !err.msg[0]) abort();
        return 0;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < checkpoint_count(c); i++) {
        const struct tensor *t = checkpoint_at(c, i);
        char text[128];
        for (size_t k = 0; k < t->bytes; k++) sink += ((const uint8_t *)t->data)[k];
        if (checkpoint_find(c, t->name) != t) abort();
        tensor_describe(t, text, sizeof text);
        bytes += t->bytes;
    }
    if (bytes != checkpoint_bytes(c) || bytes + 8 > n) abort();
    checkpoint_close(c);
    return 0;
}
