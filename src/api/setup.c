/* The stages from options to an engine. In come options, out come loaded files, a plan, a template,
 * an engine; every stage can fail and leaves what setup_close knows how to undo. */
#include "api/setup.h"

#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/option_table.h"

static bool has_suffix(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* What --load-format says, and whether MODEL is of that kind. */
static sumi_status load_format(struct setup *s, enum weight_source *weights, sumi_error *err) {
    if (!(options_verb(s->o)->bit & VERBS_STEP)) return SUMI_OK;
    const char *f = opt_string(s->o, "load-format");
    bool gguf = s->path && has_suffix(s->path, ".gguf");
    if (strcmp(f, "replay") == 0) {
        s->replay = true;
        *weights = WEIGHTS_NONE;
    } else if (strcmp(f, "dummy") == 0) {
        if (*weights == WEIGHTS_FILE) *weights = WEIGHTS_DUMMY;
    } else if (!s->path) {
        return fail_param(err, SUMI_ERR_ARG, "model",
                          "no MODEL is given; with --hf-config-path alone only --load-format dummy "
                          "and replay are possible");
    } else if (strcmp(f, "gguf") == 0 ? !gguf : strcmp(f, "safetensors") == 0 && gguf) {
        return fail_param(err, SUMI_ERR_ARG, "load-format", "--load-format %s: %s is no such model",
                          f, s->path);
    }
    return SUMI_OK;
}

static bool uses_nvfp4(const struct model *m) {
    for (int32_t l = 0; l < m->n_layer; l++) {
        const struct layer *y = &m->layer[l];
        const struct weight *w =
            y->is_moe ? y->moe.expert ? &y->moe.expert[0].down : NULL : &y->dense.down;
        if (w && w->dtype == DT_NVFP4) return true;
    }
    return false;
}

static sumi_status check_quantization(const struct setup *s, sumi_error *err) {
    if (!(options_verb(s->o)->bit & VERBS_STEP)) return SUMI_OK;
    const char *q = opt_string(s->o, "quantization");
    if (!q || !s->path || s->replay) return SUMI_OK;
    bool gguf = has_suffix(s->path, ".gguf"), nvfp4 = uses_nvfp4(s->loaded.model);
    const char *is = gguf ? "gguf" : nvfp4 ? "modelopt_fp4" : "none";
    static const char *const fp4[] = {"modelopt_fp4", "modelopt", "modelopt_mixed", "nvfp4"};
    bool same = strcmp(q, is) == 0;
    for (size_t i = 0; i < sizeof fp4 / sizeof *fp4; i++)
        same |= !gguf && nvfp4 && strcmp(q, fp4[i]) == 0;
    if (same) return SUMI_OK;
    return fail_param(err, SUMI_ERR_UNSUPPORTED, "quantization",
                      "--quantization %s: weights are used as they are stored, and %s holds: %s", q,
                      s->path, is);
}

/* Bytes that the model's weights take, wherever they lie. */
static int64_t weight_bytes(const struct loaded *l) {
    if (l->checkpoint) return (int64_t)checkpoint_bytes(l->checkpoint);
    return l->model->n_param * (int64_t)sizeof(uint16_t);
}

sumi_status setup_load(struct setup *s, const struct options *o, enum weight_source weights,
                       sumi_error *err) {
    *s = (struct setup){.o = o};
    if (opt_given(o, "served-model-name") && !opt_string(o, "model"))
        return fail_param(
            err, SUMI_ERR_ARG, "served-model-name",
            "--served-model-name takes several names, and no MODEL is left; put MODEL "
            "first");
    TRY(setup_find_model(s, err));
    TRY(setup_find_tokenizer(s, err));
    if (options_verb(o)->bit & VERBS_TALK) TRY(setup_find_template(s, err));
    TRY(load_format(s, &weights, err));
    bool steps = options_verb(o)->bit & VERBS_STEP;
    s->bf16 = !steps || strcmp(opt_string(o, "dtype"), "float32") != 0;
    struct load_options load = {
        .path = s->path,
        .config_path = opt_string(o, "hf-config-path"),
        .tokenizer_path = s->tokenizer_path,
        .chat_template = s->template_text,
        .generation_config =
            options_verb(o)->bit & VERBS_TALK ? opt_string(o, "generation-config") : NULL,
        .hf_overrides = opt_json(o, "hf-overrides"),
        .weights = weights,
        .dummy_seed = steps ? (uint64_t)opt_int(o, "seed") : 0,
    };
    bool show = steps && opt_bool(o, "use-tqdm-on-load");
    if (show) progress("loading", 0, 1);
    TRY(model_load(&s->loaded, &load, err));
    if (show) progress("loading", 1, 1);
    s->weight_bytes = s->replay ? 0 : weight_bytes(&s->loaded);
    return check_quantization(s, err);
}

sumi_status setup_plan(struct setup *s, sumi_error *err) {
    return memory_plan(&s->plan, s->o, s->loaded.model, s->weight_bytes, s->bf16, err);
}

/* Tells on a terminal how far a long prompt is. */
static sumi_status watched_step(void *ctx, const struct batch *b, float *logits, sumi_error *err) {
    struct step_watch *w = ctx;
    TRY(w->inner.step(w->inner.ctx, b, logits, err));
    if (w->done < w->n_prompt) {
        w->done += b->n_row;
        if (w->done > w->n_prompt) w->done = w->n_prompt;
        progress("reading the prompt", (double)w->done, (double)w->n_prompt);
    }
    return SUMI_OK;
}

static sumi_status open_model(struct setup *s, sumi_error *err) {
    uint8_t *token_ok = loaded_token_mask(&s->loaded, err);
    if (!token_ok) return SUMI_ERR_MEMORY;
    struct runner_options options = {.bf16 = s->bf16,
                                     .max_rows = s->plan.max_rows,
                                     .n_slab = s->plan.n_slab,
                                     .token_ok = token_ok};
    sumi_status status = setup_device(s, err);
    if (status == SUMI_OK)
        status = runner_open(&s->runner, s->loaded.model, s->device, &options, err);
    mem_free(token_ok);
    if (status != SUMI_OK) return status;
    s->watch.inner = runner_stepper(s->runner);
    s->stepper = s->watch.inner;
    s->stepper.ctx = &s->watch;
    s->stepper.step = watched_step;
    return SUMI_OK;
}

static enum logprobs_mode logprobs_mode(const char *name) {
    static const char *const names[] = {"raw_logprobs", "raw_logits", "processed_logprobs",
                                        "processed_logits"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) return (enum logprobs_mode)i;
    return RAW_LOGPROBS;
}

static void serve_limits(const struct options *o, struct engine_config *c) {
    c->prefill_chunk = (int32_t)opt_int(o, "long-prefill-token-threshold");
    c->max_num_queued_reqs = (int32_t)opt_int(o, "max-num-queued-reqs");
    c->max_num_queued_tokens = opt_int(o, "max-num-queued-tokens");
    c->priority_policy = strcmp(opt_string(o, "scheduling-policy"), "priority") == 0;
    c->max_logprobs = (int32_t)opt_int(o, "max-logprobs");
    c->logprobs_mode = logprobs_mode(opt_string(o, "logprobs-mode"));
    c->n_slab_override = (int32_t)opt_int(o, "num-gpu-blocks-override");
}

/* --seed; without it run and chat answer differently each time. */
static uint64_t engine_seed(const struct options *o) {
    uint64_t seed = (uint64_t)opt_int(o, "seed");
    if (opt_given(o, "seed") || options_verb(o)->bit == VERB_SERVE) return seed;
    return getrandom(&seed, sizeof seed, 0) == sizeof seed ? seed : 0;
}

sumi_status setup_engine(struct setup *s, sumi_error *err) {
    const struct options *o = s->o;
    const struct loaded *l = &s->loaded;
    if (!l->tokenizer)
        return fail_param(err, SUMI_ERR_MISSING, "tokenizer",
                          "%s has no tokenizer; name a folder that has one with --tokenizer",
                          s->name);
    s->eos = mem_alloc(l->n_stop * sizeof *s->eos);
    if (!s->eos) return NO_MEMORY(err, l->n_stop * sizeof *s->eos);
    for (size_t i = 0; i < l->n_stop; i++) s->eos[i] = l->stop[i].id;
    if (!s->replay) TRY(open_model(s, err));
    struct engine_config c = {
        .max_num_seqs = s->plan.max_num_seqs,
        .max_num_batched_tokens = s->plan.max_rows,
        .max_model_len = s->plan.max_model_len,
        .max_logprobs = -1,
        .seed = engine_seed(o),
        .eos = s->eos,
        .n_eos = l->n_stop,
        .replay = s->replay,
    };
    if (options_verb(o)->bit == VERB_SERVE) serve_limits(o, &c);
    return engine_open(&s->engine, &c, s->replay ? NULL : &s->stepper, l->tokenizer, err);
}

void setup_close(struct setup *s) {
    if (s->engine) engine_close(s->engine);
    runner_close(s->runner);
    device_close(s->device);
    if (s->chat_template) chat_template_close(s->chat_template);
    loaded_reset(&s->loaded);
    json_object_put(s->sampling);
    mem_free(s->eos);
    mem_free(s->path);
    mem_free(s->name);
    mem_free(s->tokenizer_path);
    mem_free(s->template_text);
    *s = (struct setup){0};
}

static void log_lines(struct buf *b) {
    for (const char *at = buf_text(b); *at;) {
        size_t n = strcspn(at, "\n");
        log_info("  %.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

void setup_log(const struct setup *s) {
    const struct model *m = s->loaded.model;
    struct buf b = {0};
    bool big = m->n_param >= 1000000000;
    log_info("model %s: %s, %d layers, %s", s->name, m->family, m->n_layer,
             s->path ? s->path : "no files");
    if (s->replay) log_info("replay: no weights are read, requests say what is answered");
    else
        log_info("%.1f %s parameters in %.1f MiB", (double)m->n_param / (big ? 1e9 : 1e6),
                 big ? "billion" : "million", (double)s->weight_bytes / 0x1p20);
    for (size_t i = 0; i < s->loaded.n_stop; i++) {
        size_t n;
        int32_t id = s->loaded.stop[i].id;
        const char *text =
            s->loaded.tokenizer ? tokenizer_bytes(s->loaded.tokenizer, id, &n) : NULL;
        buf_printf(&b, "%s%d", i ? ", " : "", id);
        if (text) buf_printf(&b, " \"%.*s\"", (int)n, text);
        buf_printf(&b, " (%s)", s->loaded.stop[i].source);
    }
    log_info("answers end at: %s", b.len ? buf_text(&b) : "no token: only limits end them");
    buf_clear(&b);
    if (s->replay) {
        log_info("context: %d tokens", s->plan.max_model_len);
        buf_reset(&b);
        return;
    }
    memory_describe(&s->plan, m, &b);
    log_info("memory:");
    log_lines(&b);
    buf_reset(&b);
}
