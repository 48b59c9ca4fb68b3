/* Flint as data: a config (config.json or GGUF metadata) becomes a description. Weights are bound
 * in flint_bind.c. Facts: docs/models/flint.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/flint.h"
#include "ops/op.h"

enum { MAX_LAYER = 1024 };

/* What either kind of config says. Lists are indexed by layer. */
struct config {
    int64_t n_layer, hidden, n_head, n_kv, head_dim, vocab, dense, n_expert, top_k, expert, shared,
        window, max_position;
    double eps, theta;
    bool sliding[MAX_LAYER], rope[MAX_LAYER], is_moe[MAX_LAYER];
};

struct range {
    const char *name;
    int64_t value, lo, hi;
};

static sumi_status check_ranges(const struct range *r, size_t n, sumi_error *err) {
    for (size_t i = 0; i < n; i++)
        if (r[i].value < r[i].lo || r[i].value > r[i].hi)
            return fail_param(err, SUMI_ERR_SHAPE, r[i].name,
                              "config: %s is %lld, expected %lld to %lld", r[i].name,
                              (long long)r[i].value, (long long)r[i].lo, (long long)r[i].hi);
    return SUMI_OK;
}

static sumi_status check(const struct config *c, sumi_error *err) {
    const struct range r[] = {
        {"num_hidden_layers", c->n_layer, 1, MAX_LAYER},
        {"hidden_size", c->hidden, 1, OP_MAX_WIDTH},
        {"num_attention_heads", c->n_head, 1, 4096},
        {"num_key_value_heads", c->n_kv, 1, c->n_head},
        {"head_dim", c->head_dim, 2, OP_MAX_HEAD_DIM},
        {"head_dim * num_attention_heads", c->head_dim * c->n_head, 2, OP_MAX_WIDTH},
        {"vocab_size", c->vocab, 1, 1 << 24},
        {"intermediate_size", c->dense, 1, OP_MAX_WIDTH},
        {"num_experts", c->n_expert, 1, 65536},
        {"num_experts_per_tok", c->top_k, 1,
         c->n_expert < OP_MAX_TOP_K ? c->n_expert : OP_MAX_TOP_K},
        {"moe_intermediate_size", c->expert, 1, OP_MAX_WIDTH},
        {"shared_expert_intermediate_size", c->shared, 1, OP_MAX_WIDTH},
        {"sliding_window", c->window, 0, 1 << 30},
        {"max_position_embeddings", c->max_position, 1, 1 << 30},
    };
    TRY(check_ranges(r, sizeof r / sizeof *r, err));
    if (c->n_head % c->n_kv || c->head_dim % 2)
        return fail_with(err, SUMI_ERR_SHAPE,
                         "config: %lld query heads over %lld key/value heads of %lld channels do "
                         "not divide",
                         (long long)c->n_head, (long long)c->n_kv, (long long)c->head_dim);
    if (!(c->eps > 0 && c->eps < 1) || !(c->theta > 1 && isfinite(c->theta)))
        return fail_with(err, SUMI_ERR_SHAPE, "config: rms_norm_eps %g or rope_theta %g is absurd",
                         c->eps, c->theta);
    for (int64_t i = 0; i < c->n_layer; i++)
        if (c->sliding[i] != c->rope[i])
            return fail_with(err, SUMI_ERR_SHAPE,
                             "config: layer %lld is %s but has %s positions; in this architecture "
                             "exactly the sliding layers rotate",
                             (long long)i, c->sliding[i] ? "sliding" : "full",
                             c->rope[i] ? "rotary" : "no");
    return SUMI_OK;
}

static sumi_status describe(struct model *m, const struct config *c, sumi_error *err) {
    TRY(check(c, err));
    m->family = "flint";
    m->n_layer = (int32_t)c->n_layer;
    m->hidden = (int32_t)c->hidden;
    m->n_head = (int32_t)c->n_head;
    m->n_kv = (int32_t)c->n_kv;
    m->head_dim = (int32_t)c->head_dim;
    m->n_expert = (int32_t)c->n_expert;
    m->top_k = (int32_t)c->top_k;
    m->vocab = (int32_t)c->vocab;
    m->max_position = (int32_t)c->max_position;
    m->dense_width = (int32_t)c->dense;
    m->expert_width = (int32_t)c->expert;
    m->shared_width = (int32_t)c->shared;
    m->norm_eps = (float)c->eps;
    m->rope_theta = c->theta;
    m->layer = model_alloc(m, (size_t)c->n_layer, sizeof *m->layer);
    if (!m->layer) return NO_MEMORY(err, (size_t)c->n_layer * sizeof *m->layer);
    for (int32_t i = 0; i < m->n_layer; i++) {
        struct layer *l = &m->layer[i];
        l->attn.window = c->sliding[i] ? (int32_t)c->window : 0;
        l->attn.rope = c->rope[i];
        l->is_moe = c->is_moe[i];
        m->n_moe += l->is_moe;
    }
    return SUMI_OK;
}

/* ---- config.json ---- */

static sumi_status refuse(sumi_error *err, const char *key, const char *found, const char *want) {
    return fail_param(err, SUMI_ERR_UNSUPPORTED, key,
                      "config.json: %s is %s, but only %s is supported", key, found, want);
}

/* Fields that would change the maths must have the one value this architecture is known with. */
static sumi_status check_fixed(struct json_object *o, sumi_error *err) {
    static const struct {
        const char *key, *want;
    } text[] = {{"hidden_act", "silu"},
                {"router_score_function", "sigmoid"},
                {"softmax_type", "learnable"}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const char *s = text[i].want;
        TRY(json_get_str(o, text[i].key, &s, err));
        if (strcmp(s, text[i].want) != 0) return refuse(err, text[i].key, s, text[i].want);
    }
    static const struct {
        const char *key;
        bool want;
    } flag[] = {
        {"attention_bias", false}, {"norm_topk_prob", true}, {"tie_word_embeddings", false}};
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++) {
        bool b = flag[i].want;
        TRY(json_get_bool(o, flag[i].key, &b, err));
        if (b != flag[i].want)
            return refuse(err, flag[i].key, b ? "true" : "false", b ? "false" : "true");
    }
    if (json_get(o, "rope_scaling")) return refuse(err, "rope_scaling", "set", "plain rotation");
    return SUMI_OK;
}

static sumi_status read_rope(struct json_object *o, double *theta, sumi_error *err) {
    *theta = 10000.0;
    struct json_object *p = json_get(o, "rope_parameters");
    const char *type = "default";
    TRY(json_get_str(p, "rope_type", &type, err));
    if (strcmp(type, "default") != 0)
        return refuse(err, "rope_parameters.rope_type", type, "default");
    TRY(json_get_f64(p, "rope_theta", theta, err));
    return json_get_f64(o, "rope_theta", theta, err);
}

/* A list of layer numbers into flags. */
static sumi_status mark_layers(struct json_object *list, const char *key, int64_t n_layer,
                               bool value, bool *flag, sumi_error *err) {
    if (!json_is(list, json_type_array))
        return fail_param(err, SUMI_ERR_FORMAT, key, "config.json: %s must be a list", key);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *v = json_object_array_get_idx(list, i);
        int64_t at = json_object_get_int64(v);
        if (!json_is(v, json_type_int) || at < 0 || at >= n_layer)
            return fail_param(err, SUMI_ERR_SHAPE, key,
                              "config.json: %s[%zu] is no layer of the %lld there are", key, i,
                              (long long)n_layer);
        flag[at] = value;
    }
    return SUMI_OK;
}

static sumi_status read_layer_types(struct json_object *o, struct config *c, sumi_error *err) {
    struct json_object *types = json_get(o, "layer_types");
    for (int64_t i = 0; i < c->n_layer && !types; i++)
        c->sliding[i] = !(i < 2 || i % 4 == 1 || i == c->n_layer - 1);
    if (!types) return SUMI_OK;
    if (!json_is(types, json_type_array) || (int64_t)json_object_array_length(types) != c->n_layer)
        return fail_param(err, SUMI_ERR_SHAPE, "layer_types",
                          "config.json: layer_types must list one kind for each of %lld layers",
                          (long long)c->n_layer);
    for (int64_t i = 0; i < c->n_layer; i++) {
        const char *kind = json_object_get_string(json_object_array_get_idx(types, (size_t)i));
        c->sliding[i] = kind && strcmp(kind, "sliding_attention") == 0;
        if (!c->sliding[i] && (!kind || strcmp(kind, "full_attention") != 0))
            return refuse(err, "layer_types", kind ? kind : "null",
                          "sliding_attention or full_attention");
    }
    return SUMI_OK;
}

static sumi_status read_layers(struct json_object *o, struct config *c, sumi_error *err) {
    TRY(read_layer_types(o, c, err));
    for (int64_t i = 0; i < c->n_layer; i++) c->rope[i] = c->sliding[i];
    struct json_object *list = json_get(o, "no_rope_layer_indices");
    if (list) {
        for (int64_t i = 0; i < c->n_layer; i++) c->rope[i] = true;
        TRY(mark_layers(list, "no_rope_layer_indices", c->n_layer, false, c->rope, err));
    }
    int64_t step = 1;
    TRY(json_get_i64(o, "decoder_sparse_step", &step, err));
    for (int64_t i = 0; i < c->n_layer; i++) c->is_moe[i] = step > 0 && (i + 1) % step == 0;
    list = json_get(o, "mlp_only_layers");
    if (list) return mark_layers(list, "mlp_only_layers", c->n_layer, false, c->is_moe, err);
    for (int64_t i = 0; i < 2 && i < c->n_layer; i++) c->is_moe[i] = false;
    return SUMI_OK;
}

static sumi_status from_json(struct model *m, struct json_object *o, sumi_error *err) {
    struct config c = {.n_layer = 49,
                       .hidden = 2048,
                       .n_head = 32,
                       .n_kv = 4,
                       .head_dim = 128,
                       .vocab = 150144,
                       .dense = 6144,
                       .n_expert = 256,
                       .top_k = 6,
                       .expert = 512,
                       .shared = 1024,
                       .window = 513,
                       .max_position = 262144,
                       .eps = 1e-6};
    const struct {
        const char *key;
        int64_t *to;
    } number[] = {{"num_hidden_layers", &c.n_layer},
                  {"hidden_size", &c.hidden},
                  {"num_attention_heads", &c.n_head},
                  {"num_key_value_heads", &c.n_kv},
                  {"head_dim", &c.head_dim},
                  {"vocab_size", &c.vocab},
                  {"intermediate_size", &c.dense},
                  {"num_experts", &c.n_expert},
                  {"num_experts_per_tok", &c.top_k},
                  {"moe_intermediate_size", &c.expert},
                  {"shared_expert_intermediate_size", &c.shared},
                  {"sliding_window", &c.window},
                  {"max_position_embeddings", &c.max_position}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        TRY(json_get_i64(o, number[i].key, number[i].to, err));
    TRY(json_get_f64(o, "rms_norm_eps", &c.eps, err));
    TRY(read_rope(o, &c.theta, err));
    TRY(check_fixed(o, err));
    if (c.n_layer < 1 || c.n_layer > MAX_LAYER)
        return fail_param(err, SUMI_ERR_SHAPE, "num_hidden_layers",
                          "config.json: num_hidden_layers is %lld, expected 1 to %d",
                          (long long)c.n_layer, MAX_LAYER);
    TRY(read_layers(o, &c, err));
    bool windowed = true;
    TRY(json_get_bool(o, "use_sliding_window", &windowed, err));
    if (!windowed) c.window = 0;
    return describe(m, &c, err);
}

/* ---- GGUF metadata ---- */

static sumi_status gguf_flags(const struct gguf *g, const char *key, int64_t n, bool *out,
                              sumi_error *err) {
    const struct gguf_value *v = gguf_find(g, key);
    if (!v || !v->is_array || (int64_t)v->n != n)
        return fail_with(err, v ? SUMI_ERR_SHAPE : SUMI_ERR_MISSING,
                         "GGUF: %s must be a list of %lld booleans", key, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t x;
        if (!gguf_value_i64(v, (size_t)i, &x))
            return fail_with(err, SUMI_ERR_FORMAT, "GGUF: %s holds no booleans", key);
        out[i] = x != 0;
    }
    return SUMI_OK;
}

/* An integer, or a list of one repeated value (head counts are stored either way). */
static sumi_status gguf_same(const struct gguf *g, const char *key, int64_t *out, sumi_error *err) {
    const struct gguf_value *v = gguf_find(g, key);
    if (!v || !v->is_array) return gguf_get_i64(g, key, true, out, err);
    for (size_t i = 0; i < v->n; i++) {
        int64_t x;
        if (!gguf_value_i64(v, i, &x) || (i && x != *out))
            return fail_with(err, SUMI_ERR_UNSUPPORTED,
                             "GGUF: %s differs between layers, which is not supported", key);
        *out = x;
    }
    return v->n ? SUMI_OK : fail_with(err, SUMI_ERR_FORMAT, "GGUF: %s is an empty list", key);
}

static sumi_status gguf_fixed(const struct gguf *g, sumi_error *err) {
    bool norm = true;
    double scale = 1.0;
    int64_t gate = 2;
    TRY(gguf_get_bool(g, "flint.expert_weights_norm", false, &norm, err));
    TRY(gguf_get_f64(g, "flint.expert_weights_scale", false, &scale, err));
    TRY(gguf_get_i64(g, "flint.expert_gating_func", false, &gate, err));
    if (!norm || scale != 1.0 || gate != 2)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "GGUF: expert_weights_norm %d, expert_weights_scale %g, "
                         "expert_gating_func %lld; only 1, 1 and 2 (sigmoid) are supported",
                         norm, scale, (long long)gate);
    const char *type = "none";
    size_t n = 4;
    TRY(gguf_get_string(g, "flint.rope.scaling.type", false, &type, &n, err));
    if (n != 4 || memcmp(type, "none", 4) != 0)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "GGUF: flint.rope.scaling.type \"%.*s\" is not supported", (int)n, type);
    static const char *const unknown[] = {
        "flint.attn_logit_softcapping", "flint.final_logit_softcapping", "flint.logit_scale",
        "flint.embedding_scale",        "flint.residual_scale",          "flint.attention.scale",
        "flint.expert_group_count",     "flint.expert_group_used_count"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (gguf_find(g, unknown[i]))
            return fail_with(err, SUMI_ERR_UNSUPPORTED,
                             "GGUF: %s would change the arithmetic and is not supported",
                             unknown[i]);
    return SUMI_OK;
}

static sumi_status from_gguf(struct model *m, const struct gguf *g, sumi_error *err) {
    struct config c = {0};
    const struct {
        const char *key;
        int64_t *to;
    } number[] = {{"flint.block_count", &c.n_layer},
                  {"flint.embedding_length", &c.hidden},
                  {"flint.attention.key_length", &c.head_dim},
                  {"flint.feed_forward_length", &c.dense},
                  {"flint.expert_count", &c.n_expert},
                  {"flint.expert_used_count", &c.top_k},
                  {"flint.expert_feed_forward_length", &c.expert},
                  {"flint.expert_shared_feed_forward_length", &c.shared},
                  {"flint.attention.sliding_window", &c.window},
                  {"flint.context_length", &c.max_position}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        TRY(gguf_get_i64(g, number[i].key, true, number[i].to, err));
    TRY(gguf_same(g, "flint.attention.head_count", &c.n_head, err));
    TRY(gguf_same(g, "flint.attention.head_count_kv", &c.n_kv, err));
    TRY(gguf_get_f64(g, "flint.attention.layer_norm_rms_epsilon", true, &c.eps, err));
    TRY(gguf_get_f64(g, "flint.rope.freq_base", true, &c.theta, err));
    TRY(gguf_fixed(g, err));
    int64_t dense = 0, values = c.head_dim, rotated = c.head_dim;
    TRY(gguf_get_i64(g, "flint.leading_dense_block_count", true, &dense, err));
    TRY(gguf_get_i64(g, "flint.attention.value_length", false, &values, err));
    TRY(gguf_get_i64(g, "flint.rope.dimension_count", false, &rotated, err));
    if (values != c.head_dim || rotated != c.head_dim)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "GGUF: value_length %lld and rope.dimension_count %lld must equal "
                         "key_length %lld",
                         (long long)values, (long long)rotated, (long long)c.head_dim);
    if (c.n_layer < 1 || c.n_layer > MAX_LAYER)
        return fail_with(err, SUMI_ERR_SHAPE, "GGUF: flint.block_count is %lld, expected 1 to %d",
                         (long long)c.n_layer, MAX_LAYER);
    TRY(gguf_flags(g, "flint.attention.sliding_window_pattern", c.n_layer, c.sliding, err));
    TRY(gguf_flags(g, "flint.attention.rope_pattern", c.n_layer, c.rope, err));
    for (int64_t i = 0; i < c.n_layer; i++) c.is_moe[i] = i >= dense;
    const struct gguf_value *tokens = gguf_find(g, "tokenizer.ggml.tokens");
    c.vocab = tokens ? (int64_t)tokens->n : 0;
    TRY(gguf_get_i64(g, "flint.vocab_size", !tokens, &c.vocab, err));
    return describe(m, &c, err);
}

/* The pre-tokeniser that GGUF files call "flint": numbers, CJK runs, then words. */
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
static const struct pretok_step pretok[] = {
    {.kind = PRETOK_SPLIT, .pattern = "\\p{N}{1,3}", .behavior = SPLIT_ISOLATED},
    {.kind = PRETOK_SPLIT,
     .pattern = "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
     .behavior = SPLIT_ISOLATED},
    {.kind = PRETOK_SPLIT,
     .pattern =
         "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?" UPPER
         "+" LOWER "*" CONTRACTION "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .behavior = SPLIT_ISOLATED},
    {.kind = PRETOK_BYTE_LEVEL},
};

const struct family flint_family = {
    .model_type = "flint",
    .architecture = "FlintForCausalLM",
    .gguf_architecture = "flint",
    .from_json = from_json,
    .from_gguf = from_gguf,
    .bind = flint_bind,
    .gguf_pre = "flint",
    .pretok = pretok,
    .n_pretok = sizeof pretok / sizeof *pretok,
};
