/* Random models for the CUDA tests. */
#include "model.h"

#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/mem.h"

static uint64_t next(uint64_t *s) { /* splitmix64 */
    uint64_t z = *s += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static float uniform(uint64_t *s) {
    return (float)((double)(next(s) >> 40) / 8388608.0 - 1.0);
}

void blob_open(struct blob *b, size_t bytes) {
    *b = (struct blob){.bf16 = malloc(bytes), .nvfp4 = malloc(bytes), .bytes = bytes, .state = 7};
    uint64_t s = 1;
    for (size_t i = 0; i + 2 <= bytes; i += 2) {
        bf16 v = bf16_from_f32(uniform(&s));
        memcpy(b->bf16 + i, &v, 2);
    }
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t v = next(&s);
        memcpy(b->nvfp4 + i, &v, 8);
    }
    /* Scales of 0.5 to 1.9; a few tiny and zero ones. */
    for (size_t i = 0; i + 36 <= bytes; i += 36)
        for (size_t j = 0; j < 4; j++) {
            uint64_t v = next(&s);
            b->nvfp4[i + j] = (uint8_t)(v % 64 == 0 ? v >> 8 & 7 : 0x30 + (v >> 8 & 15));
        }
}

void blob_close(struct blob *b) {
    free(b->bf16);
    free(b->nvfp4);
}

/* Rows overlap when the matrix is larger than the blob. */
static struct weight window(struct blob *b, bool packed, int n_out, int n_in, float gain) {
    size_t unit = packed ? 36 : 2, row = packed ? (size_t)n_in / 64 * 36 : (size_t)n_in * 2;
    size_t stride = row;
    if (stride * (size_t)n_out > b->bytes / 2) {
        stride = (b->bytes / 2 - row) / (size_t)n_out / unit * unit;
        if (stride > row) stride = row;
    }
    size_t last = (size_t)(n_out - 1) * stride + row;
    size_t at = next(&b->state) % ((b->bytes - last) / unit) * unit;
    float spread = packed ? 2.93f * 1.2f : 0.577f; /* standard deviation of stored values */
    return (struct weight){.dtype = packed ? DT_NVFP4 : DT_BF16,
                           .data = (packed ? b->nvfp4 : b->bf16) + at,
                           .n_out = n_out,
                           .n_in = n_in,
                           .row_bytes = stride,
                           .scale = gain / (spread * sqrtf((float)n_in))};
}

static const float *vector(struct model *m, struct blob *b, int n, float mean, float spread) {
    float *v = model_alloc(m, (size_t)n, sizeof *v);
    for (int i = 0; i < n; i++) v[i] = mean + spread * uniform(&b->state);
    return v;
}

static struct mlp make_mlp(struct blob *b, bool packed, int hidden, int width) {
    return (struct mlp){window(b, packed, width, hidden, 1), window(b, packed, width, hidden, 1),
                        window(b, packed, hidden, width, 1.5f)};
}

static void make_layer(struct model *m, const struct dims *d, enum weights w, struct blob *b,
                       struct layer *l) {
    bool packed = w == ALL_NVFP4;
    int q = d->n_head * d->head_dim, kv = d->n_kv * d->head_dim;
    l->attn_norm = vector(m, b, d->hidden, 1, 0.2f);
    l->ffn_norm = vector(m, b, d->hidden, 1, 0.2f);
    l->attn.q = window(b, packed || w == MIXED, q, d->hidden, 1);
    l->attn.k = window(b, packed, kv, d->hidden, 1.25f);
    l->attn.v = window(b, packed, kv, d->hidden, 0.75f);
    l->attn.o = window(b, packed, d->hidden, q, 1);
    l->attn.q_norm = vector(m, b, d->head_dim, 1, 0.3f);
    l->attn.k_norm = vector(m, b, d->head_dim, 1, 0.3f);
    l->attn.sink = vector(m, b, d->n_head, 0, 2);
    if (!l->is_moe) {
        l->dense = make_mlp(b, packed, d->hidden, d->dense);
        return;
    }
    l->moe.router = window(b, false, d->n_expert, d->hidden, 1);
    l->moe.shared = make_mlp(b, packed, d->hidden, d->shared);
    l->moe.expert = model_alloc(m, (size_t)d->n_expert, sizeof *l->moe.expert);
    for (int e = 0; e < d->n_expert; e++)
        l->moe.expert[e] = make_mlp(b, packed || w == MIXED, d->hidden, d->expert);
}

struct model *make_model(const struct dims *d, enum weights w, bool flint, struct blob *b) {
    struct model *m = mem_zero(1, sizeof *m);
    m->family = "test";
    m->n_layer = d->n_layer;
    m->hidden = d->hidden;
    m->n_head = d->n_head;
    m->n_kv = d->n_kv;
    m->head_dim = d->head_dim;
    m->n_expert = d->n_expert;
    m->top_k = d->top_k;
    m->dense_width = d->dense;
    m->expert_width = d->expert;
    m->shared_width = d->shared;
    m->vocab = d->vocab;
    m->max_position = 262144;
    m->norm_eps = 1e-6f;
    m->rope_theta = 10000;
    m->embed = window(b, false, d->vocab, d->hidden, sqrtf((float)d->hidden));
    m->head = window(b, w == ALL_NVFP4, d->vocab, d->hidden, 3);
    m->final_norm = vector(m, b, d->hidden, 1, 0.2f);
    m->layer = model_alloc(m, (size_t)d->n_layer, sizeof *m->layer);
    for (int i = 0; i < d->n_layer; i++) {
        struct layer *l = &m->layer[i];
        bool full = i == 0 || i == d->n_layer - 1 || (flint && (i == 1 || i % 4 == 1));
        l->attn.window = full ? 0 : d->window;
        l->attn.rope = !full;
        l->is_moe = i >= 2;
        m->n_moe += l->is_moe;
        make_layer(m, d, w, b, l);
    }
    return m;
}
