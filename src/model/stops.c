/* Collecting end-of-answer ids. Files disagree about which of them they name, so all count. */
#include "model/stops.h"

#include <string.h>

#include "base/mem.h"

static sumi_status add(struct loaded *l, int64_t id, const char *source, sumi_error *err) {
    if (id < 0 || id >= l->model->vocab)
        return fail_with(err, SUMI_ERR_SHAPE, "%s names stop id %lld, outside the vocabulary of %d",
                         source, (long long)id, l->model->vocab);
    for (size_t i = 0; i < l->n_stop; i++)
        if (l->stop[i].id == id) return SUMI_OK;
    struct stop_id *p = mem_resize(l->stop, l->n_stop + 1, sizeof *p);
    if (!p) return NO_MEMORY(err, (l->n_stop + 1) * sizeof *p);
    l->stop = p;
    l->stop[l->n_stop++] = (struct stop_id){(int32_t)id, source};
    return SUMI_OK;
}

static sumi_status add_json(struct loaded *l, struct json_object *o, const char *source,
                            sumi_error *err) {
    struct json_object *v = json_get(o, "eos_token_id");
    if (json_is(v, json_type_int)) return add(l, json_object_get_int64(v), source, err);
    for (size_t i = 0; json_is(v, json_type_array) && i < json_object_array_length(v); i++) {
        struct json_object *one = json_object_array_get_idx(v, i);
        if (!json_is(one, json_type_int))
            return fail_with(err, SUMI_ERR_FORMAT, "%s: eos_token_id[%zu] is no integer", source,
                             i);
        TRY(add(l, json_object_get_int64(one), source, err));
    }
    return SUMI_OK;
}

static sumi_status add_gguf(struct loaded *l, const struct gguf *g, sumi_error *err) {
    static const char *const key[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                      "tokenizer.ggml.eom_token_id",
                                      "tokenizer.ggml.eog_token_ids"};
    for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
        const struct gguf_value *v = gguf_find(g, key[k]);
        for (size_t i = 0; v && i < v->n; i++) {
            int64_t id;
            if (!gguf_value_i64(v, i, &id))
                return fail_with(err, SUMI_ERR_FORMAT, "GGUF: %s holds no integers", key[k]);
            TRY(add(l, id, key[k], err));
        }
    }
    return SUMI_OK;
}

static sumi_status add_marker(struct loaded *l, const char *text, const char *source,
                              sumi_error *err) {
    int32_t id = tokenizer_find(l->tokenizer, text, strlen(text));
    if (id < 0 || !tokenizer_is_added(l->tokenizer, id)) return SUMI_OK;
    return add(l, id, source, err);
}

sumi_status stops_collect(struct loaded *l, struct json_object *config, const struct gguf *g,
                          sumi_error *err) {
    static const char *const marker[] = {"<|endoftext|>", "<|im_end|>",      "<|eot_id|>",
                                         "<|end|>",       "<|eom_id|>",      "</s>",
                                         "[EOS]",         "[EOT]",           "<eos>",
                                         "<end_of_turn>", "<|end_of_text|>", "<|return|>",
                                         "<|call|>"};
    TRY(add_json(l, l->generation, "generation_config.json", err));
    TRY(add_json(l, config, "config.json", err));
    if (g) TRY(add_gguf(l, g, err));
    if (!l->tokenizer) return SUMI_OK;
    if (l->eos) TRY(add_marker(l, l->eos, "the tokenizer's eos_token", err));
    for (size_t i = 0; i < sizeof marker / sizeof *marker; i++)
        TRY(add_marker(l, marker[i], "a known end marker in the vocabulary", err));
    return SUMI_OK;
}
