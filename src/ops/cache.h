/* Addresses and element access of cached keys and values. */
#ifndef SUMI_OPS_CACHE_H
#define SUMI_OPS_CACHE_H

#include <string.h>

#include "ops/op.h"

/* Bytes of a slab: PAGE_TOKENS positions of one layer. */
static inline size_t cache_slab_bytes(int32_t n_kv, int32_t head_dim, bool bf16_mode) {
    return (size_t)n_kv * 2 * PAGE_TOKENS * (size_t)head_dim * (bf16_mode ? 2 : 4);
}

/* The first element of position `pos` (which: 0 keys, 1 values) of key/value head h. */
static inline uint8_t *cache_at(const struct op_cache *c, const struct step *s, int32_t seq,
                                int32_t pos, int32_t h, int32_t which) {
    const struct seq_pages *p = &s->pages[seq];
    size_t slab = (size_t)p->slab[(size_t)c->layer * (size_t)p->stride + (size_t)pos / PAGE_TOKENS];
    size_t row = ((size_t)h * 2 + (size_t)which) * PAGE_TOKENS + (size_t)pos % PAGE_TOKENS;
    return c->pool + slab * c->slab_bytes + row * (size_t)c->head_dim * (s->bf16 ? 2 : 4);
}

static inline void cache_store(const struct op_cache *c, const struct step *s, int32_t row,
                               int32_t h, int32_t which, const float *x) {
    uint8_t *to = cache_at(c, s, s->seq_of[row], s->pos[row], h, which);
    if (!s->bf16) {
        memcpy(to, x, (size_t)c->head_dim * sizeof *x);
        return;
    }
    for (int32_t i = 0; i < c->head_dim; i++) ((bf16 *)(void *)to)[i] = bf16_from_f32(x[i]);
}

static inline void cache_load(const struct op_cache *c, const struct step *s, const uint8_t *from,
                              float *x) {
    if (!s->bf16) {
        memcpy(x, from, (size_t)c->head_dim * sizeof *x);
        return;
    }
    for (int32_t i = 0; i < c->head_dim; i++)
        x[i] = bf16_to_f32(((const bf16 *)(const void *)from)[i]);
}

#endif
