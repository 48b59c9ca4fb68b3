/* From a model argument to what serves it. The order of sources stands in load.h; each part is a
 * small function, and what is absent stays NULL for the caller to judge. */
#include "model/load.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "file/gguf.h"
#include "model/family.h"
#include "model/gguf_tokenizer.h"
#include "model/stops.h"

enum { MAX_JSON = 256 << 20, MAX_TEMPLATE = 1 << 20 };

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* folder + "/" + name if that file exists, else NULL. mem_free it. */
static char *in_folder(const char *folder, const char *name) {
    if (!folder || !is_directory(folder)) return NULL;
    struct buf b = {0};
    buf_printf(&b, "%s/%s", folder, name);
    char *path = buf_take(&b);
    if (path && exists(path)) return path;
    mem_free(path);
    return NULL;
}

/* A JSON file of a folder; *out stays NULL when there is none. */
static sumi_status folder_json(const char *folder, const char *name, struct json_object **out,
                               sumi_error *err) {
    char *path = in_folder(folder, name);
    if (!path) return SUMI_OK;
    sumi_status status = json_parse_file(out, path, MAX_JSON, err);
    if (status == SUMI_OK && !json_is(*out, json_type_object)) {
        status = fail_with(err, SUMI_ERR_FORMAT, "%s: expected a JSON object", path);
        json_object_put(*out);
        *out = NULL;
    }
    mem_free(path);
    return status;
}

/* Where text, template and generation settings may come from, in order. */
struct sources {
    const struct load_options *o;
    const struct gguf *gguf;         /* of the weights, or NULL */
    const char *folder;              /* of config.json, or NULL */
    const char *text_folder;         /* of tokenizer.json, or NULL */
    struct json_object *config;      /* config.json merged with overrides, or NULL */
    struct json_object *text_config; /* tokenizer_config.json, or NULL */
};

static void merge(struct json_object *into, struct json_object *from) {
    json_object_object_foreach(from, key, value) {
        struct json_object *old = json_get(into, key);
        if (json_is(old, json_type_object) && json_is(value, json_type_object)) merge(old, value);
        else json_object_object_add(into, key, json_object_get(value));
    }
}

static sumi_status find_sources(struct sources *s, const struct load_options *o,
                                const struct checkpoint *c, sumi_error *err) {
    *s = (struct sources){.o = o, .gguf = c ? checkpoint_gguf(c) : NULL};
    s->folder = o->config_path ? o->config_path : o->path && is_directory(o->path) ? o->path : NULL;
    s->text_folder = o->tokenizer_path && is_directory(o->tokenizer_path) ? o->tokenizer_path
                     : o->tokenizer_path                                  ? NULL
                                                                          : s->folder;
    TRY(folder_json(s->folder, "config.json", &s->config, err));
    if (o->config_path && !s->config)
        return fail_param(err, SUMI_ERR_MISSING, "hf-config-path", "%s: no config.json in it",
                          o->config_path);
    if (s->config && o->hf_overrides) merge(s->config, o->hf_overrides);
    return folder_json(s->text_folder, "tokenizer_config.json", &s->text_config, err);
}

static sumi_status load_model(struct loaded *l, const struct sources *s, sumi_error *err) {
    const struct family *f;
    struct binder b = {0};
    l->model = mem_zero(1, sizeof *l->model);
    if (!l->model) return NO_MEMORY(err, sizeof *l->model);
    if (s->config) f = family_by_config(s->config, err);
    else if (s->gguf) f = family_by_gguf(s->gguf, err);
    else
        return fail_with(err, SUMI_ERR_MISSING,
                         "%s: no config.json and no GGUF metadata; is this a model? A config can "
                         "be given with --hf-config-path",
                         s->o->path ? s->o->path : "(no model)");
    if (!f) return err ? err->status : SUMI_ERR_UNSUPPORTED;
    l->family = f;
    TRY(s->config ? f->from_json(l->model, s->config, err) : f->from_gguf(l->model, s->gguf, err));
    if (s->o->weights == WEIGHTS_NONE) return SUMI_OK;
    TRY(binder_open(&b, l->checkpoint, l->model, s->o->dummy_seed, err));
    sumi_status status = f->bind(l->model, &b, s->gguf != NULL, err);
    binder_reset(&b);
    return status;
}

static sumi_status load_tokenizer(struct loaded *l, const struct sources *s, sumi_error *err) {
    const char *given = s->o->tokenizer_path;
    if (given && !is_directory(given)) return tokenizer_open_json(&l->tokenizer, given, err);
    char *path = in_folder(s->text_folder, "tokenizer.json");
    if (path) {
        sumi_status status = tokenizer_open_json(&l->tokenizer, path, err);
        mem_free(path);
        return status;
    }
    if (given)
        return fail_param(err, SUMI_ERR_MISSING, "tokenizer", "%s: no tokenizer.json in it", given);
    if (s->gguf && gguf_find(s->gguf, "tokenizer.ggml.tokens"))
        return gguf_tokenizer(&l->tokenizer, s->gguf, l->family, err);
    return SUMI_OK;
}

static sumi_status check_tokenizer(const struct loaded *l, sumi_error *err) {
    if (l->tokenizer && tokenizer_size(l->tokenizer) > l->model->vocab)
        return fail_with(err, SUMI_ERR_SHAPE,
                         "the tokenizer has ids up to %d, but the model's vocabulary has %d rows; "
                         "do they belong together?",
                         tokenizer_size(l->tokenizer) - 1, l->model->vocab);
    return SUMI_OK;
}

/* tokenizer_config.json holds one template, or a list of named ones. */
static const char *template_of(struct json_object *config) {
    struct json_object *t = json_get(config, "chat_template");
    if (json_is(t, json_type_string)) return json_object_get_string(t);
    const char *found = NULL;
    for (size_t i = 0; json_is(t, json_type_array) && i < json_object_array_length(t); i++) {
        struct json_object *one = json_object_array_get_idx(t, i);
        const char *name = "", *text = NULL;
        if (json_get_str(one, "name", &name, NULL) != SUMI_OK ||
            json_get_str(one, "template", &text, NULL) != SUMI_OK)
            continue;
        if (!found || strcmp(name, "default") == 0) found = text;
    }
    return found;
}

static sumi_status load_template(struct loaded *l, const struct sources *s, sumi_error *err) {
    const char *text = s->o->chat_template;
    size_t n = text ? strlen(text) : 0;
    if (!text) {
        char *path = in_folder(s->text_folder, "chat_template.jinja");
        if (!path && s->folder) path = in_folder(s->folder, "chat_template.jinja");
        if (path) {
            sumi_status status = file_read(path, MAX_TEMPLATE, &l->chat_template, &n, err);
            mem_free(path);
            return status;
        }
        text = template_of(s->text_config);
        n = text ? strlen(text) : 0;
    }
    if (!text && s->gguf)
        TRY(gguf_get_string(s->gguf, "tokenizer.chat_template", false, &text, &n, err));
    if (!text) return SUMI_OK;
    l->chat_template = mem_string(text, n);
    return l->chat_template ? SUMI_OK : NO_MEMORY(err, n);
}

/* general.sampling.* of a GGUF under the names of generation_config.json. */
static sumi_status gguf_generation(struct loaded *l, const struct gguf *g, sumi_error *err) {
    static const struct {
        const char *key, *name;
        bool is_int;
    } field[] = {{"general.sampling.temp", "temperature", false},
                 {"general.sampling.top_k", "top_k", true},
                 {"general.sampling.top_p", "top_p", false},
                 {"general.sampling.min_p", "min_p", false},
                 {"general.sampling.penalty_repeat", "repetition_penalty", false}};
    l->generation = json_object_new_object();
    if (!l->generation) return NO_MEMORY(err, 64);
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        if (!gguf_find(g, field[i].key)) continue;
        double d = 0;
        TRY(gguf_get_f64(g, field[i].key, true, &d, err));
        /* A float32 such as 0.95 reads back as itself when printed shortly. */
        char shortest[32];
        snprintf(shortest, sizeof shortest, "%.7g", d);
        json_object_object_add(l->generation, field[i].name,
                               field[i].is_int ? json_object_new_int64((int64_t)d)
                                               : json_object_new_double_s(d, shortest));
    }
    return SUMI_OK;
}

static sumi_status load_generation(struct loaded *l, const struct sources *s, sumi_error *err) {
    const char *from = s->o->generation_config ? s->o->generation_config : "auto";
    bool elsewhere = strcmp(from, "auto") != 0 && strcmp(from, "vllm") != 0;
    TRY(folder_json(elsewhere ? from : s->folder, "generation_config.json", &l->generation, err));
    if (elsewhere && !l->generation)
        return fail_param(err, SUMI_ERR_MISSING, "generation-config",
                          "%s: no generation_config.json in it", from);
    if (!l->generation && s->gguf) return gguf_generation(l, s->gguf, err);
    return SUMI_OK;
}

/* A token given as text or as {"content": text}. */
static sumi_status copy_token_text(struct json_object *config, const char *key, char **out,
                                   sumi_error *err) {
    struct json_object *v = json_get(config, key);
    if (json_is(v, json_type_object)) v = json_get(v, "content");
    if (!json_is(v, json_type_string)) return SUMI_OK;
    *out = mem_string(json_object_get_string(v), (size_t)json_object_get_string_len(v));
    return *out ? SUMI_OK : NO_MEMORY(err, 64);
}

static sumi_status gguf_token_text(const struct loaded *l, const struct gguf *g, const char *key,
                                   char **out, sumi_error *err) {
    int64_t id = -1;
    size_t n;
    TRY(gguf_get_i64(g, key, false, &id, err));
    if (*out || id < 0 || id > INT32_MAX || !l->tokenizer) return SUMI_OK;
    const char *text = tokenizer_bytes(l->tokenizer, (int32_t)id, &n);
    if (!text) return SUMI_OK;
    *out = mem_string(text, n);
    return *out ? SUMI_OK : NO_MEMORY(err, n);
}

static sumi_status load_token_texts(struct loaded *l, const struct sources *s, sumi_error *err) {
    TRY(copy_token_text(s->text_config, "bos_token", &l->bos, err));
    TRY(copy_token_text(s->text_config, "eos_token", &l->eos, err));
    if (!s->gguf) return SUMI_OK;
    TRY(gguf_token_text(l, s->gguf, "tokenizer.ggml.bos_token_id", &l->bos, err));
    return gguf_token_text(l, s->gguf, "tokenizer.ggml.eos_token_id", &l->eos, err);
}

static sumi_status load_all(struct loaded *l, struct sources *s, sumi_error *err) {
    const struct load_options *o = s->o;
    TRY(find_sources(s, o, l->checkpoint, err));
    TRY(load_model(l, s, err));
    TRY(load_tokenizer(l, s, err));
    TRY(check_tokenizer(l, err));
    TRY(load_template(l, s, err));
    TRY(load_generation(l, s, err));
    TRY(load_token_texts(l, s, err));
    return stops_collect(l, s->config, s->gguf, err);
}

/* With dummy or no weights a folder's tensors are not looked at; a GGUF still has the metadata. */
static bool opens_checkpoint(const struct load_options *o) {
    size_t n = o->path ? strlen(o->path) : 0;
    bool gguf = n > 5 && strcmp(o->path + n - 5, ".gguf") == 0;
    return o->path && (o->weights == WEIGHTS_FILE || gguf || !is_directory(o->path));
}

sumi_status model_load(struct loaded *out, const struct load_options *o, sumi_error *err) {
    struct loaded l = {0};
    struct sources s = {.o = o};
    sumi_status status = SUMI_OK;
    if (opens_checkpoint(o)) status = checkpoint_open(&l.checkpoint, o->path, err);
    if (status == SUMI_OK) status = load_all(&l, &s, err);
    json_object_put(s.config);
    json_object_put(s.text_config);
    if (status != SUMI_OK) loaded_reset(&l);
    *out = l;
    return status;
}

void loaded_reset(struct loaded *l) {
    model_close(l->model);
    tokenizer_close(l->tokenizer);
    checkpoint_close(l->checkpoint);
    mem_free(l->chat_template);
    json_object_put(l->generation);
    mem_free(l->stop);
    mem_free(l->bos);
    mem_free(l->eos);
    *l = (struct loaded){0};
}

uint8_t *loaded_token_mask(const struct loaded *l, sumi_error *err) {
    uint8_t *ok = mem_zero((size_t)l->model->vocab, 1);
    if (!ok) {
        NO_MEMORY(err, l->model->vocab);
        return NULL;
    }
    for (int32_t i = 0; i < l->model->vocab; i++)
        ok[i] = !l->tokenizer || tokenizer_has(l->tokenizer, i);
    return ok;
}
