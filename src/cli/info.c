/* sumi info: what is in a checkpoint, for a person to judge. Reads headers and binds every tensor,
 * so a checkpoint that would not load is refused here with the same words. */
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "file/gguf.h"

static void head(struct buf *out, const char *title) {
    buf_printf(out, "\n%s\n", title);
}

static void put_dimensions(const struct setup *s, struct buf *out) {
    const struct model *m = s->loaded.model;
    int32_t windowed = 0, rope = 0, sinks = 0, window = 0;
    for (int32_t l = 0; l < m->n_layer; l++) {
        const struct attention *a = &m->layer[l].attn;
        windowed += a->window != 0;
        if (a->window) window = a->window;
        rope += a->rope;
        sinks += a->sink != NULL;
    }
    buf_printf(out, "model          %s (%s)\n", s->name, m->family);
    buf_printf(out, "files          %s\n", s->path ? s->path : "none");
    buf_printf(out, "parameters     %lld\n", (long long)m->n_param);
    buf_printf(out, "layers         %d: %d with experts, %d dense\n", m->n_layer, m->n_moe,
               m->n_layer - m->n_moe);
    buf_printf(out, "attention      %d full, %d with a window of %d; %d with rope, %d with sinks\n",
               m->n_layer - windowed, windowed, window, rope, sinks);
    buf_printf(out, "heads          %d query, %d key/value, of %d\n", m->n_head, m->n_kv,
               m->head_dim);
    buf_printf(out, "width          hidden %d, dense %d, expert %d, shared %d\n", m->hidden,
               m->dense_width, m->expert_width, m->shared_width);
    buf_printf(out, "experts        %d, %d per token\n", m->n_expert, m->top_k);
    buf_printf(out, "vocabulary     %d\n", m->vocab);
    buf_printf(out, "positions      %d\n", m->max_position);
    buf_printf(out, "norm eps       %g\n", (double)m->norm_eps);
    buf_printf(out, "rope base      %g\n", m->rope_theta);
}

static void put_tensor_types(const struct checkpoint *c, struct buf *out) {
    size_t count[DT_COUNT] = {0}, bytes[DT_COUNT] = {0};
    if (!c) return;
    for (size_t i = 0; i < checkpoint_count(c); i++) {
        const struct tensor *t = checkpoint_at(c, i);
        count[t->dtype]++;
        bytes[t->dtype] += t->bytes;
    }
    head(out, "tensors");
    for (int d = 0; d < DT_COUNT; d++)
        if (count[d])
            buf_printf(out, "  %-8s %6zu  %12.2f MiB\n", dtype_info((enum dtype)d)->name, count[d],
                       (double)bytes[d] / 0x1p20);
}

static void put_value(const struct gguf_value *v, struct buf *out) {
    enum { SHOWN = 4, TEXT = 60 };
    size_t at = 0, n;
    const char *text;
    double d;
    int64_t i;
    if (v->is_array) buf_printf(out, "[%zu]", v->n);
    for (size_t k = 0; k < v->n && k < SHOWN; k++) {
        if (v->is_array) buf_putc(out, ' ');
        if (v->type == GGUF_STRING) {
            if (!gguf_next_string(v, &at, &text, &n)) break;
            json_put_string(out, text, n < TEXT ? n : TEXT);
            if (n > TEXT) buf_printf(out, "... (%zu bytes)", n);
        } else if (gguf_value_i64(v, k, &i)) buf_printf(out, "%lld", (long long)i);
        else if (gguf_value_f64(v, k, &d)) buf_printf(out, "%.9g", d);
    }
    if (v->n > SHOWN) buf_puts(out, " ...");
    buf_putc(out, '\n');
}

static sumi_status put_config(const struct setup *s, struct buf *out, sumi_error *err) {
    const struct gguf *g = s->loaded.checkpoint ? checkpoint_gguf(s->loaded.checkpoint) : NULL;
    const char *folder = opt_string(s->o, "hf-config-path");
    if (g && !folder) {
        head(out, "metadata");
        for (size_t i = 0; i < gguf_count(g); i++) {
            buf_printf(out, "  %-44s ", gguf_at(g, i)->key);
            put_value(gguf_at(g, i), out);
        }
        return SUMI_OK;
    }
    struct buf path = {0};
    struct json_object *config = NULL;
    buf_printf(&path, "%s/config.json", folder ? folder : s->path);
    sumi_status status = json_parse_file(&config, buf_text(&path), 1 << 20, err);
    buf_reset(&path);
    TRY(status);
    head(out, "config.json");
    if (json_is(config, json_type_object)) {
        json_object_object_foreach(config, key, value) {
            buf_printf(out, "  %-36s ", key);
            json_put_value(out, value, true);
            buf_putc(out, '\n');
        }
    }
    json_object_put(config);
    return SUMI_OK;
}

static void put_token(const struct tokenizer *t, int32_t id, struct buf *out) {
    size_t n;
    const char *text = tokenizer_bytes(t, id, &n);
    buf_printf(out, "  %8d ", id);
    if (text) json_put_string(out, text, n);
    else buf_puts(out, "(no text)");
}

static void put_stops(const struct loaded *l, struct buf *out) {
    head(out, "answers end at");
    for (size_t i = 0; i < l->n_stop; i++) {
        if (l->tokenizer) put_token(l->tokenizer, l->stop[i].id, out);
        else buf_printf(out, "  %8d", l->stop[i].id);
        buf_printf(out, "  from %s\n", l->stop[i].source);
    }
    if (!l->n_stop) buf_puts(out, "  nothing: only limits end an answer\n");
}

/* Marks that templates and parsers use: one token each, or a spelling? */
static sumi_status put_tags(const struct loaded *l, struct buf *out, sumi_error *err) {
    static const char *const tag[] = {
        "<think>",       "</think>",        "<tool_call>",  "</tool_call>", "<arg_key>",
        "</arg_key>",    "<arg_value>",     "</arg_value>", "<|system|>",   "<|user|>",
        "<|assistant|>", "<|observation|>", "[gMASK]",      "<sop>",        "<|endoftext|>"};
    if (!l->tokenizer) return SUMI_OK;
    head(out, "marks");
    for (size_t i = 0; i < sizeof tag / sizeof *tag; i++) {
        struct ids ids = {0};
        sumi_status status =
            tokenizer_encode(l->tokenizer, tag[i], strlen(tag[i]), NULL, true, &ids, err);
        if (status == SUMI_OK && ids.n == 1)
            buf_printf(out, "  %-18s one token, %d%s\n", tag[i], ids.data[0],
                       tokenizer_is_special(l->tokenizer, ids.data[0]) ? ", special" : "");
        else if (status == SUMI_OK) buf_printf(out, "  %-18s %zu tokens\n", tag[i], ids.n);
        mem_free(ids.data);
        TRY(status);
    }
    return SUMI_OK;
}

static sumi_status info(struct setup *s, const struct options *o, struct buf *out,
                        sumi_error *err) {
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    const struct loaded *l = &s->loaded;
    put_dimensions(s, out);
    put_tensor_types(l->checkpoint, out);
    put_stops(l, out);
    TRY(put_tags(l, out, err));
    if (l->tokenizer) {
        const int32_t *added;
        head(out, "tokenizer");
        buf_printf(out, "  %d ids, %zu added tokens\n", tokenizer_size(l->tokenizer),
                   tokenizer_added(l->tokenizer, &added));
    }
    head(out, "chat template");
    buf_printf(out, "  %s, %zu bytes\n", l->chat_template ? "yes" : "none",
               l->chat_template ? strlen(l->chat_template) : 0);
    if (l->generation) {
        head(out, "sampling defaults");
        buf_puts(out, "  ");
        json_put_value(out, l->generation, true);
        buf_putc(out, '\n');
    }
    return put_config(s, out, err);
}

int verb_info(const struct options *o) {
    struct setup s = {0};
    struct buf out = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = info(&s, o, &out, &err);
    setup_close(&s);
    if (status != SUMI_OK) {
        buf_reset(&out);
        return cli_fail(&err);
    }
    return cli_print(&out) ? EXIT_OK : EXIT_FAILED;
}
