/* Any bytes as a .gguf file: refused with a message, or every tensor and value readable. */
#include <stdint.h>
#include <stdlib.h>

#include "file/block.h"
#include "file/checkpoint.h"
#include "file/gguf.h"

static volatile unsigned sink; /* so that reads are not left out */

static void read_value(const struct gguf *g, const struct gguf_value *v) {
    int64_t i;
    double d;
    bool flag;
    const char *s;
    size_t n, at = 0, count = 0;
    sumi_error err;
    if (gguf_find(g, v->key) != v) abort();
    for (size_t k = 0; k < v->n; k++) {
        gguf_value_i64(v, k, &i);
        gguf_value_f64(v, k, &d);
    }
    while (gguf_next_string(v, &at, &s, &n)) {
        for (size_t k = 0; k < n; k++) sink += (unsigned char)s[k];
        count++;
    }
    if (v->type == GGUF_STRING && count != v->n) abort();
    gguf_get_i64(g, v->key, true, &i, &err);
    gguf_get_f64(g, v->key, true, &d, &err);
    gguf_get_bool(g, v->key, true, &flag, &err);
    gguf_get_string(g, v->key, true, &s, &n, &err);
}

/* The first and the last block of a tensor whose values have a meaning as f32. */
static void decode_ends(const struct tensor *t) {
    float y[256];
    const struct dtype_info *d = dtype_info(t->dtype);
    const uint8_t *p = t->data;
    sink += (unsigned)p[0] + p[t->bytes - 1];
    if (t->dtype > DT_E4M3) return; /* the integers come last in the list of types */
    block_decode(t->dtype, p, (size_t)d->block, y);
    block_decode(t->dtype, p + t->bytes - d->bytes, (size_t)d->block, y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct checkpoint *c;
    sumi_error err = {0};
    if (checkpoint_open_memory(&c, data, n, "input.gguf", &err) != SUMI_OK) {
        if (c || !err.msg[0]) abort();
        return 0;
    }
    const struct gguf *g = checkpoint_gguf(c);
    for (size_t i = 0; i < gguf_count(g); i++) read_value(g, gguf_at(g, i));
    for (size_t i = 0; i < checkpoint_count(c); i++) {
        const struct tensor *t = checkpoint_at(c, i);
        if (checkpoint_find(c, t->name) != t) abort();
        decode_ends(t);
    }
    if (checkpoint_bytes(c) > n) abort();
    checkpoint_close(c);
    return 0;
}
