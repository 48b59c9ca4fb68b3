/* What the models compute, in the order in which the papers draw it:
 *
 *   x = embed[token]
 *   for each layer:  x += attention(norm(x));  x += mlp or experts(norm(x))
 *   logits = norm(x) head^T */
#include "model/forward.h"

#include <math.h>

static struct op begin(const struct model *m, const struct forward_buffers *b, enum op_kind kind,
                       int32_t layer) {
    return (struct op){
        .kind = kind, .layer = layer, .hidden = m->hidden, .eps = m->norm_eps, .x = b->x};
}

static struct op_cache cache_of(const struct model *m, const struct forward_buffers *b,
                                int32_t layer) {
    return (struct op_cache){.pool = b->pool,
                             .slab_bytes = b->slab_bytes,
                             .layer = layer,
                             .n_kv = m->n_kv,
                             .head_dim = m->head_dim};
}

static void list_attention(const struct model *m, const struct forward_buffers *b, int32_t i,
                           struct op *list) {
    const struct layer *l = &m->layer[i];
    const struct attention *t = &l->attn;
    list[0] = begin(m, b, OP_NORM_QKV, i);
    list[0].u.norm_qkv = (struct op_norm_qkv){.norm = l->attn_norm,
                                              .q = t->q,
                                              .k = t->k,
                                              .v = t->v,
                                              .q_norm = t->q_norm,
                                              .k_norm = t->k_norm,
                                              .inv_freq = t->rope ? b->inv_freq : NULL,
                                              .n_head = m->n_head,
                                              .cache = cache_of(m, b, i),
                                              .a = b->a,
                                              .q_out = b->q,
                                              .kv = b->kv};
    list[1] = begin(m, b, OP_ATTENTION, i);
    list[1].u.attention = (struct op_attention){.sink = t->sink,
                                                .n_head = m->n_head,
                                                .window = t->window,
                                                .scale = 1.0f / sqrtf((float)m->head_dim),
                                                .cache = cache_of(m, b, i),
                                                .q = b->q,
                                                .o = b->o};
    list[2] = begin(m, b, OP_ATTN_OUT, i);
    list[2].u.attn_out = (struct op_attn_out){.o = t->o, .a = b->o, .y = b->y};
}

static struct op dense_block(const struct model *m, const struct forward_buffers *b, int32_t i) {
    struct op op = begin(m, b, OP_DENSE_FFN, i);
    op.u.dense_ffn = (struct op_dense_ffn){.norm = m->layer[i].ffn_norm,
                                           .mlp = m->layer[i].dense,
                                           .a = b->a,
                                           .y = b->y,
                                           .gate = b->gate,
                                           .up = b->up};
    return op;
}

static struct op moe_block(const struct model *m, const struct forward_buffers *b, int32_t i,
                           int32_t moe_index) {
    const struct moe *e = &m->layer[i].moe;
    struct op op = begin(m, b, OP_MOE, i);
    op.u.moe = (struct op_moe){.norm = m->layer[i].ffn_norm,
                               .router = e->router,
                               .expert = e->expert,
                               .shared = e->shared,
                               .n_expert = m->n_expert,
                               .top_k = m->top_k,
                               .moe_index = moe_index,
                               .a = b->a,
                               .y = b->y,
                               .logits = b->router,
                               .ids = b->ids,
                               .weights = b->weights,
                               .act = b->act,
                               .each = b->each,
                               .gate = b->gate,
                               .up = b->up,
                               .order = b->order};
    return op;
}

void forward_list(const struct model *m, const struct forward_buffers *b, struct op *list) {
    int32_t n_moe = 0;
    *list = begin(m, b, OP_EMBED, -1);
    list++->u.embed.table = m->embed;
    for (int32_t i = 0; i < m->n_layer; i++, list += 4) {
        list_attention(m, b, i, list);
        list[3] = m->layer[i].is_moe ? moe_block(m, b, i, n_moe++) : dense_block(m, b, i);
    }
    *list = begin(m, b, OP_HEAD, -1);
    list->u.head = (struct op_head){.norm = m->final_norm, .head = m->head, .a = b->a};
}

void rope_frequencies(double theta, int32_t head_dim, float *inv_freq) {
    for (int32_t i = 0; i < head_dim / 2; i++)
        inv_freq[i] = 1.0f / (float)pow(theta, 2.0 * i / head_dim);
}
