/* Flint's tensor names, in both spellings, and what each must be. */
#include <stdio.h>
#include <string.h>

#include "model/flint.h"

enum part {
    ATTN_NORM,
    FFN_NORM,
    Q,
    K,
    V,
    O,
    Q_NORM,
    K_NORM,
    SINK,
    ROUTER,
    GATE,
    UP,
    DOWN,
    SHARED_GATE,
    SHARED_UP,
    SHARED_DOWN,
    EXPERT_GATE,
    EXPERT_UP,
    EXPERT_DOWN,
    EXPERT_GATE_UP,
    QKV,
    N_PART
};

static const char *const safetensors_name[N_PART] = {
    [ATTN_NORM] = "input_layernorm",
    [FFN_NORM] = "post_attention_layernorm",
    [Q] = "self_attn.q_proj",
    [K] = "self_attn.k_proj",
    [V] = "self_attn.v_proj",
    [O] = "self_attn.o_proj",
    [Q_NORM] = "self_attn.q_norm",
    [K_NORM] = "self_attn.k_norm",
    [SINK] = "self_attn.softmax_offset",
    [ROUTER] = "mlp.gate",
    [GATE] = "mlp.gate_proj",
    [UP] = "mlp.up_proj",
    [DOWN] = "mlp.down_proj",
    [SHARED_GATE] = "mlp.shared_expert.gate_proj",
    [SHARED_UP] = "mlp.shared_expert.up_proj",
    [SHARED_DOWN] = "mlp.shared_expert.down_proj",
    [EXPERT_DOWN] = "mlp.experts.down_proj",
    [EXPERT_GATE_UP] = "mlp.experts.gate_up_proj",
    [QKV] = "self_attn.qkv_proj",
};

static const char *const gguf_name[N_PART] = {
    [ATTN_NORM] = "attn_norm",
    [FFN_NORM] = "ffn_norm",
    [Q] = "attn_q",
    [K] = "attn_k",
    [V] = "attn_v",
    [O] = "attn_output",
    [Q_NORM] = "attn_q_norm",
    [K_NORM] = "attn_k_norm",
    [SINK] = "attn_sinks",
    [ROUTER] = "ffn_gate_inp",
    [GATE] = "ffn_gate",
    [UP] = "ffn_up",
    [DOWN] = "ffn_down",
    [SHARED_GATE] = "ffn_gate_shexp",
    [SHARED_UP] = "ffn_up_shexp",
    [SHARED_DOWN] = "ffn_down_shexp",
    [EXPERT_GATE] = "ffn_gate_exps",
    [EXPERT_UP] = "ffn_up_exps",
    [EXPERT_DOWN] = "ffn_down_exps",
    [EXPERT_GATE_UP] = "ffn_gate_up_exps",
    [QKV] = "attn_qkv",
};

enum { MAX_NAME = 128 };

struct ctx {
    struct model *m;
    struct binder *b;
    bool gguf;
    int32_t layer;
    char name[MAX_NAME];
};

static const char *name_of(struct ctx *c, enum part p) {
    snprintf(c->name, sizeof c->name, "%s%d.%s", c->gguf ? "blk." : "model.layers.", c->layer,
             (c->gguf ? gguf_name : safetensors_name)[p]);
    return c->name;
}

static sumi_status matrix(struct ctx *c, enum part p, int64_t n_out, int64_t n_in, struct weight *w,
                          sumi_error *err) {
    return bind_matrix(c->b, name_of(c, p), n_out, n_in, w, err);
}

static sumi_status vector(struct ctx *c, enum part p, int64_t n, const float **v, sumi_error *err) {
    return bind_vector(c->b, name_of(c, p), n, v, err);
}

static sumi_status bind_qkv(struct ctx *c, struct attention *a, sumi_error *err) {
    const struct model *m = c->m;
    int64_t q = (int64_t)m->n_head * m->head_dim, kv = (int64_t)m->n_kv * m->head_dim;
    if (c->b->checkpoint && bind_has(c->b, name_of(c, QKV))) {
        struct weight all;
        TRY(matrix(c, QKV, q + 2 * kv, m->hidden, &all, err));
        a->q = weight_rows(&all, 0, q);
        a->k = weight_rows(&all, q, kv);
        a->v = weight_rows(&all, q + kv, kv);
        return SUMI_OK;
    }
    TRY(matrix(c, Q, q, m->hidden, &a->q, err));
    TRY(matrix(c, K, kv, m->hidden, &a->k, err));
    return matrix(c, V, kv, m->hidden, &a->v, err);
}

static sumi_status bind_attention(struct ctx *c, struct layer *l, sumi_error *err) {
    const struct model *m = c->m;
    struct attention *a = &l->attn;
    TRY(vector(c, ATTN_NORM, m->hidden, &l->attn_norm, err));
    TRY(bind_qkv(c, a, err));
    TRY(matrix(c, O, m->hidden, (int64_t)m->n_head * m->head_dim, &a->o, err));
    TRY(vector(c, Q_NORM, m->head_dim, &a->q_norm, err));
    TRY(vector(c, K_NORM, m->head_dim, &a->k_norm, err));
    TRY(vector(c, SINK, m->n_head, &a->sink, err));
    /* Files of other makers name the second norm after its place. */
    char other[MAX_NAME];
    snprintf(other, sizeof other, "blk.%d.post_attention_norm", c->layer);
    if (c->gguf && c->b->checkpoint && !bind_has(c->b, name_of(c, FFN_NORM)) &&
        bind_has(c->b, other))
        return bind_vector(c->b, other, m->hidden, &l->ffn_norm, err);
    return vector(c, FFN_NORM, m->hidden, &l->ffn_norm, err);
}

static sumi_status bind_mlp(struct ctx *c, enum part gate, enum part up, enum part down,
                            int64_t width, struct mlp *mlp, sumi_error *err) {
    TRY(matrix(c, gate, width, c->m->hidden, &mlp->gate, err));
    TRY(matrix(c, up, width, c->m->hidden, &mlp->up, err));
    return matrix(c, down, c->m->hidden, width, &mlp->down, err);
}

/* Gate rows first, then up rows, of each expert in one matrix. */
static sumi_status bind_fused_experts(struct ctx *c, struct mlp *e, sumi_error *err) {
    const struct model *m = c->m;
    int64_t width = m->expert_width;
    TRY(bind_stack(c->b, name_of(c, EXPERT_GATE_UP), m->n_expert, 2 * width, m->hidden, &e->gate,
                   sizeof *e, err));
    for (int32_t i = 0; i < m->n_expert; i++) {
        e[i].up = weight_rows(&e[i].gate, width, width);
        e[i].gate = weight_rows(&e[i].gate, 0, width);
    }
    return bind_stack(c->b, name_of(c, EXPERT_DOWN), m->n_expert, m->hidden, width, &e->down,
                      sizeof *e, err);
}

static sumi_status bind_stacked_experts(struct ctx *c, struct mlp *e, sumi_error *err) {
    const struct model *m = c->m;
    int64_t width = m->expert_width, n = m->n_expert;
    TRY(bind_stack(c->b, name_of(c, EXPERT_GATE), n, width, m->hidden, &e->gate, sizeof *e, err));
    TRY(bind_stack(c->b, name_of(c, EXPERT_UP), n, width, m->hidden, &e->up, sizeof *e, err));
    return bind_stack(c->b, name_of(c, EXPERT_DOWN), n, m->hidden, width, &e->down, sizeof *e, err);
}

static sumi_status bind_single_experts(struct ctx *c, struct mlp *e, sumi_error *err) {
    static const char *const leaf[] = {"gate_proj", "up_proj", "down_proj"};
    const struct model *m = c->m;
    for (int32_t i = 0; i < m->n_expert; i++) {
        struct weight *to[] = {&e[i].gate, &e[i].up, &e[i].down};
        for (int j = 0; j < 3; j++) {
            snprintf(c->name, sizeof c->name, "model.layers.%d.mlp.experts.%d.%s", c->layer, i,
                     leaf[j]);
            TRY(bind_matrix(c->b, c->name, j < 2 ? m->expert_width : m->hidden,
                            j < 2 ? m->hidden : m->expert_width, to[j], err));
        }
    }
    return SUMI_OK;
}

static sumi_status bind_moe(struct ctx *c, struct moe *moe, sumi_error *err) {
    struct model *m = c->m;
    TRY(matrix(c, ROUTER, m->n_expert, m->hidden, &moe->router, err));
    moe->expert = model_alloc(m, (size_t)m->n_expert, sizeof *moe->expert);
    if (!moe->expert) return NO_MEMORY(err, (size_t)m->n_expert * sizeof *moe->expert);
    if (c->b->checkpoint && bind_has(c->b, name_of(c, EXPERT_GATE_UP)))
        TRY(bind_fused_experts(c, moe->expert, err));
    else if (c->gguf) TRY(bind_stacked_experts(c, moe->expert, err));
    else TRY(bind_single_experts(c, moe->expert, err));
    return bind_mlp(c, SHARED_GATE, SHARED_UP, SHARED_DOWN, m->shared_width, &moe->shared, err);
}

/* Tensors whose presence means that this is another architecture. */
static sumi_status refuse_foreign(struct ctx *c, sumi_error *err) {
    static const char *const foreign[] = {"exp_probs_b", "ffn_gate_inp_shexp", "exp_probs_b.bias"};
    for (size_t i = 0; c->gguf && c->b->checkpoint && i < sizeof foreign / sizeof *foreign; i++) {
        snprintf(c->name, sizeof c->name, "blk.%d.%s", c->layer, foreign[i]);
        if (bind_has(c->b, c->name))
            return fail_with(err, SUMI_ERR_UNSUPPORTED,
                             "tensor \"%s\" belongs to another architecture than %s", c->name,
                             c->m->family);
    }
    return SUMI_OK;
}

sumi_status flint_bind(struct model *m, struct binder *b, bool gguf_names, sumi_error *err) {
    struct ctx c = {.m = m, .b = b, .gguf = gguf_names};
    TRY(bind_matrix(b, gguf_names ? "token_embd" : "model.embed_tokens", m->vocab, m->hidden,
                    &m->embed, err));
    TRY(bind_vector(b, gguf_names ? "output_norm" : "model.norm", m->hidden, &m->final_norm, err));
    TRY(bind_matrix(b, gguf_names ? "output" : "lm_head", m->vocab, m->hidden, &m->head, err));
    for (c.layer = 0; c.layer < m->n_layer; c.layer++) {
        struct layer *l = &m->layer[c.layer];
        TRY(refuse_foreign(&c, err));
        TRY(bind_attention(&c, l, err));
        if (l->is_moe) TRY(bind_moe(&c, &l->moe, err));
        else TRY(bind_mlp(&c, GATE, UP, DOWN, m->dense_width, &l->dense, err));
    }
    return bind_finish(b, err);
}
