/* One prompt through a runner, arrays to files. Pages are laid out one after another, and a
 * window's pages are given back as the engine does, so that a trace meets the same tables. */
#include "model/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/npy.h"
#include "base/size.h"
#include "model/runner.h"

struct trace {
    const struct model *m;
    const struct trace_options *o;
    struct runner *runner;
    int32_t *table; /* [n_layer][stride] */
    int32_t stride, chunk;
    struct npy route, layerwise;
    struct taps taps;          /* of the whole prompt */
    struct taps part;          /* of one chunk, when the prompt is cut */
    float *logits;             /* [n_ids][vocab] */
    int32_t *pos, *seq, *rows; /* [chunk] */
    int32_t *generated;
};

/* What a tap holds: rows of `width` elements, repeated for each of `n` layers. */
struct array {
    const char *name;
    void **data, **part;
    int64_t n, width;
    bool is_int, flat; /* flat: [n_row][width] without the layer dimension */
};

enum { N_ARRAY = 7, ELEMENT = 4 };

static void list_arrays(struct trace *t, struct array *a) {
    const struct model *m = t->m;
    struct taps *w = &t->taps, *p = &t->part;
    const struct array all[N_ARRAY] = {
        {"hidden", (void **)&w->hidden, (void **)&p->hidden, m->n_layer + 1, m->hidden, false,
         false},
        {"attn_out", (void **)&w->attn_out, (void **)&p->attn_out, m->n_layer, m->hidden, false,
         false},
        {"mlp_out", (void **)&w->mlp_out, (void **)&p->mlp_out, m->n_layer, m->hidden, false,
         false},
        {"final_norm", (void **)&w->final_norm, (void **)&p->final_norm, 1, m->hidden, false, true},
        {"router_ids", (void **)&w->router_ids, (void **)&p->router_ids, m->n_moe, m->top_k, true,
         false},
        {"router_weights", (void **)&w->router_weights, (void **)&p->router_weights, m->n_moe,
         m->top_k, false, false},
        {"logits", (void **)&t->logits, NULL, 1, m->vocab, false, true},
    };
    memcpy(a, all, sizeof all);
}

static sumi_status alloc_arrays(struct trace *t, sumi_error *err) {
    struct array a[N_ARRAY];
    list_arrays(t, a);
    for (int i = 0; i < N_ARRAY; i++) {
        size_t width = (size_t)(a[i].n * a[i].width), rows = (size_t)t->o->n_ids;
        *a[i].data = mem_zero(rows * width, ELEMENT);
        if (!*a[i].data) return NO_MEMORY(err, rows * width * ELEMENT);
        if (!a[i].part) continue;
        *a[i].part = mem_zero((size_t)t->chunk * width, ELEMENT);
        if (!*a[i].part) return NO_MEMORY(err, (size_t)t->chunk * width * ELEMENT);
    }
    return SUMI_OK;
}

/* A chunk's taps to their rows of the whole prompt's. */
static void gather(struct trace *t, int32_t first, int32_t n) {
    struct array a[N_ARRAY];
    list_arrays(t, a);
    for (int i = 0; i < N_ARRAY; i++) {
        if (!a[i].part) continue;
        size_t row = (size_t)a[i].width * ELEMENT;
        for (int64_t l = 0; l < a[i].n; l++)
            memcpy((char *)*a[i].data + ((size_t)l * (size_t)t->o->n_ids + (size_t)first) * row,
                   (char *)*a[i].part + (size_t)l * (size_t)n * row, (size_t)n * row);
    }
}

/* The rows [first, first + n) of an injected array [layers][n_ids][width], as one block. */
static void *cut(const struct trace *t, const struct npy *a, int32_t first, int32_t n) {
    int64_t width = a->dim[2];
    char *out = mem_alloc((size_t)(a->dim[0] * n * width) * ELEMENT);
    for (int64_t l = 0; out && l < a->dim[0]; l++)
        memcpy(out + (size_t)(l * n * width) * ELEMENT,
               (char *)a->data + (size_t)((l * t->o->n_ids + first) * width) * ELEMENT,
               (size_t)(n * width) * ELEMENT);
    return out;
}

/* Pages behind every layer's window are forgotten: reading one would read slab -1. */
static void forget(struct trace *t, int32_t next_pos) {
    for (int32_t l = 0; l < t->m->n_layer; l++) {
        int32_t w = t->m->layer[l].attn.window;
        if (!w) continue;
        int32_t first = (int32_t)max_i64(0, (int64_t)next_pos - w + 1) / PAGE_TOKENS;
        for (int32_t b = 0; b < first; b++) t->table[l * t->stride + b] = -1;
    }
}

static sumi_status run_rows(struct trace *t, const int32_t *ids, int32_t first, int32_t n,
                            bool prompt, float *logits, sumi_error *err) {
    for (int32_t i = 0; i < n; i++) {
        t->pos[i] = first + i;
        t->rows[i] = i;
    }
    struct seq_pages pages = {t->table, t->stride};
    int32_t last = n - 1;
    void *route = NULL, *layers = NULL;
    struct batch b = {.n_row = n,
                      .token = ids,
                      .pos = t->pos,
                      .seq_of = t->seq,
                      .n_seq = 1,
                      .seq = &pages,
                      .n_logit = prompt ? n : 1,
                      .logit_row = prompt ? t->rows : &last,
                      .taps = prompt ? &t->part : NULL};
    sumi_status status = SUMI_OK;
    if (prompt && t->route.data) b.route = route = cut(t, &t->route, first, n);
    if (prompt && t->layerwise.data) b.layer_input = layers = cut(t, &t->layerwise, first, n);
    if ((prompt && t->route.data && !route) || (prompt && t->layerwise.data && !layers))
        status = NO_MEMORY(err, n);
    if (status == SUMI_OK) status = runner_step(t->runner, &b, logits, err);
    if (status == SUMI_OK) forget(t, first + n);
    mem_free(route);
    mem_free(layers);
    return status;
}

static int32_t best(const struct trace *t, const float *logits) {
    int32_t at = -1;
    for (int32_t i = 0; i < t->m->vocab; i++)
        if ((!t->o->token_ok || t->o->token_ok[i]) && (at < 0 || logits[i] > logits[at])) at = i;
    return at;
}

static sumi_status run(struct trace *t, sumi_error *err) {
    const struct trace_options *o = t->o;
    size_t vocab = (size_t)t->m->vocab;
    for (int32_t first = 0; first < o->n_ids; first += t->chunk) {
        int32_t n = o->n_ids - first < t->chunk ? o->n_ids - first : t->chunk;
        TRY(run_rows(t, o->ids + first, first, n, true, t->logits + (size_t)first * vocab, err));
        gather(t, first, n);
    }
    if (!o->generate) return SUMI_OK;
    t->generated = mem_zero((size_t)o->generate, sizeof *t->generated);
    float *row = mem_alloc(vocab * sizeof *row);
    if (!t->generated || !row) {
        mem_free(row);
        return NO_MEMORY(err, vocab * sizeof *row);
    }
    memcpy(row, t->logits + (size_t)(o->n_ids - 1) * vocab, vocab * sizeof *row);
    sumi_status status = SUMI_OK;
    for (int32_t i = 0; i < o->generate && status == SUMI_OK; i++) {
        t->generated[i] = best(t, row);
        if (i + 1 < o->generate)
            status = run_rows(t, &t->generated[i], o->n_ids + i, 1, false, row, err);
    }
    mem_free(row);
    return status;
}

static sumi_status write_one(const struct trace *t, const char *name, struct npy a,
                             sumi_error *err) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.npy", t->o->out, name) >= (int)sizeof path)
        return fail_with(err, SUMI_ERR_ARG, "the output folder's name is too long");
    return npy_write(path, &a, err);
}

static sumi_status write_arrays(struct trace *t, sumi_error *err) {
    if (mkdir(t->o->out, 0777) != 0 && errno != EEXIST)
        return fail_with(err, SUMI_ERR_IO, "%s: %s", t->o->out, strerror(errno));
    struct array a[N_ARRAY];
    list_arrays(t, a);
    for (int i = 0; i < N_ARRAY; i++) {
        struct npy n = {.is_int = a[i].is_int,
                        .n_dim = 3,
                        .data = *a[i].data,
                        .dim = {a[i].n, t->o->n_ids, a[i].width}};
        if (a[i].flat)
            n = (struct npy){.n_dim = 2, .data = *a[i].data, .dim = {t->o->n_ids, a[i].width}};
        TRY(write_one(t, a[i].name, n, err));
    }
    if (!t->generated) return SUMI_OK;
    return write_one(
        t, "generated",
        (struct npy){.is_int = true, .n_dim = 1, .dim = {t->o->generate}, .data = t->generated},
        err);
}

/* An injected array must be [at least n][n_ids][width] of the right type. */
static sumi_status inject(const char *path, struct npy *a, bool is_int, int64_t n, int64_t n_ids,
                          int64_t width, sumi_error *err) {
    if (!path) return SUMI_OK;
    TRY(npy_read(path, a, err));
    if (a->is_int == is_int && a->n_dim == 3 && a->dim[0] >= n && a->dim[1] == n_ids &&
        a->dim[2] == width)
        return SUMI_OK;
    return fail_with(err, SUMI_ERR_SHAPE,
                     "%s: expected %s [%" PRId64 ", %" PRId64 ", %" PRId64
                     "], found %s with %d dimensions [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                     path, is_int ? "int32" : "float32", n, n_ids, width,
                     a->is_int ? "int32" : "float32", a->n_dim, a->dim[0], a->dim[1], a->dim[2]);
}

static sumi_status prepare(struct trace *t, struct device *d, sumi_error *err) {
    const struct trace_options *o = t->o;
    int32_t total = o->n_ids + o->generate;
    if (o->n_ids < 1) return fail_with(err, SUMI_ERR_ARG, "a trace needs at least one token id");
    if (o->generate < 0 || o->chunk < 0 || total > t->m->max_position)
        return fail_with(err, SUMI_ERR_LIMIT,
                         "%d ids and %d to generate do not fit the model's %d positions", o->n_ids,
                         o->generate, t->m->max_position);
    t->chunk = o->chunk && o->chunk < o->n_ids ? o->chunk : o->n_ids;
    t->stride = (total + PAGE_TOKENS - 1) / PAGE_TOKENS;
    struct runner_options ro = {
        .bf16 = o->bf16, .max_rows = t->chunk, .n_slab = t->stride * t->m->n_layer};
    TRY(runner_open(&t->runner, t->m, d, &ro, err));
    t->table = mem_zero((size_t)ro.n_slab, sizeof *t->table);
    t->pos = mem_zero((size_t)t->chunk, sizeof *t->pos);
    t->seq = mem_zero((size_t)t->chunk, sizeof *t->seq);
    t->rows = mem_zero((size_t)t->chunk, sizeof *t->rows);
    if (!t->table || !t->pos || !t->seq || !t->rows) return NO_MEMORY(err, ro.n_slab);
    for (int32_t i = 0; i < ro.n_slab; i++) t->table[i] = i;
    TRY(inject(o->route, &t->route, true, t->m->n_moe, o->n_ids, t->m->top_k, err));
    TRY(inject(o->layerwise, &t->layerwise, false, t->m->n_layer, o->n_ids, t->m->hidden, err));
    return alloc_arrays(t, err);
}

sumi_status trace_run(const struct model *m, struct device *d, const struct trace_options *o,
                      sumi_error *err) {
    struct trace t = {.m = m, .o = o};
    sumi_status status = prepare(&t, d, err);
    if (status == SUMI_OK) status = run(&t, err);
    if (status == SUMI_OK) status = write_arrays(&t, err);
    struct array a[N_ARRAY];
    list_arrays(&t, a);
    for (int i = 0; i < N_ARRAY; i++) {
        mem_free(*a[i].data);
        if (a[i].part) mem_free(*a[i].part);
    }
    mem_free(t.route.data);
    mem_free(t.layerwise.data);
    mem_free(t.table);
    mem_free(t.pos);
    mem_free(t.seq);
    mem_free(t.rows);
    mem_free(t.generated);
    runner_close(t.runner);
    return status;
}
