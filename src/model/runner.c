/* Executes batches: turns a batch into a step and runs the list of operations over it. Knows
 * neither requests nor pages' owners. */
#include "model/runner.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "model/forward.h"
#include "ops/cache.h"

struct runner {
    const struct model *model;
    struct device *device;
    struct runner_options options;
    struct forward_buffers buffers;
    struct op *list;
    int32_t *window; /* [n_layer] */
    uint8_t *token_ok;
};

size_t runner_slab_bytes(const struct model *m, bool half) {
    return cache_slab_bytes(m->n_kv, m->head_dim, half);
}

int64_t runner_sequence_slabs(const struct model *m, int64_t n, int64_t chunk) {
    int64_t total = 0;
    for (int32_t l = 0; l < m->n_layer; l++) {
        int64_t w = m->layer[l].attn.window;
        int64_t span = w ? min_i64(n, w + chunk - 1) : n;
        int64_t pages = (span + PAGE_TOKENS - 1) / PAGE_TOKENS;
        /* A span that does not begin on a page border touches one page more. */
        if (span < n) pages = min_i64(pages + 1, (n + PAGE_TOKENS - 1) / PAGE_TOKENS);
        total += pages;
    }
    return total;
}

enum { N_BUFFER = 15, ELEMENT = 4 }; /* every buffer holds f32 or i32 */

/* Every buffer with its element count per row and its fixed part. */
struct want {
    void **to;
    int64_t per_row, fixed;
};

static void list_buffers(const struct model *m, struct forward_buffers *b, struct want *w) {
    int64_t hidden = m->hidden, heads = (int64_t)m->n_head * m->head_dim;
    int64_t wide = max_i64(m->dense_width, m->shared_width);
    const struct want all[N_BUFFER] = {
        {(void **)&b->x, hidden, 0},
        {(void **)&b->a, hidden, 0},
        {(void **)&b->y, hidden, 0},
        {(void **)&b->q, heads, 0},
        {(void **)&b->o, heads, 0},
        {(void **)&b->kv, 2 * (int64_t)m->n_kv * m->head_dim, 0},
        {(void **)&b->gate, wide, 0},
        {(void **)&b->up, wide, 0},
        {(void **)&b->router, m->n_expert, 0},
        {(void **)&b->ids, m->top_k, 0},
        {(void **)&b->weights, m->top_k, 0},
        {(void **)&b->act, 2 * (int64_t)m->top_k * m->expert_width, 0},
        {(void **)&b->each, (int64_t)m->top_k * m->hidden, 0},
        {(void **)&b->order, 2 * (int64_t)m->top_k, m->n_expert + 1},
        {(void **)&b->inv_freq, 0, m->head_dim / 2},
    };
    memcpy(w, all, sizeof all);
}

size_t runner_scratch_bytes(const struct model *m, int32_t max_rows) {
    struct forward_buffers b;
    struct want w[N_BUFFER];
    list_buffers(m, &b, w);
    size_t total = 0;
    for (int i = 0; i < N_BUFFER; i++)
        total += (size_t)(w[i].per_row * max_rows + w[i].fixed) * ELEMENT;
    return total;
}

static sumi_status alloc_buffers(struct runner *r, sumi_error *err) {
    struct device *d = r->device;
    struct forward_buffers *b = &r->buffers;
    struct want w[N_BUFFER];
    list_buffers(r->model, b, w);
    for (int i = 0; i < N_BUFFER; i++)
        TRY(d->alloc(d, (size_t)(w[i].per_row * r->options.max_rows + w[i].fixed) * ELEMENT,
                     w[i].to, err));
    size_t pool;
    b->slab_bytes = runner_slab_bytes(r->model, r->options.bf16);
    if (!size_mul(b->slab_bytes, (size_t)r->options.n_slab, &pool)) return NO_MEMORY(err, SIZE_MAX);
    TRY(d->alloc(d, pool, (void **)&b->pool, err));
    float freq[OP_MAX_HEAD_DIM / 2];
    rope_frequencies(r->model->rope_theta, r->model->head_dim, freq);
    return d->copy_in(d, b->inv_freq, freq, (size_t)r->model->head_dim / 2 * sizeof *freq, err);
}

static sumi_status build(struct runner *r, const uint8_t *token_ok, sumi_error *err) {
    const struct model *m = r->model;
    TRY(alloc_buffers(r, err));
    r->list = mem_zero((size_t)forward_count(m), sizeof *r->list);
    r->window = mem_zero((size_t)m->n_layer, sizeof *r->window);
    if (!r->list || !r->window) return NO_MEMORY(err, (size_t)forward_count(m) * sizeof *r->list);
    forward_list(m, &r->buffers, r->list);
    if (r->device->prepare) TRY(r->device->prepare(r->device, r->list, forward_count(m), err));
    for (int32_t l = 0; l < m->n_layer; l++) r->window[l] = m->layer[l].attn.window;
    if (!token_ok) return SUMI_OK;
    r->token_ok = mem_alloc((size_t)m->vocab);
    if (!r->token_ok) return NO_MEMORY(err, m->vocab);
    memcpy(r->token_ok, token_ok, (size_t)m->vocab);
    return SUMI_OK;
}

sumi_status runner_open(struct runner **out, const struct model *m, struct device *d,
                        const struct runner_options *options, sumi_error *err) {
    *out = NULL;
    if (options->max_rows < 1 || options->n_slab < 1)
        return fail_with(err, SUMI_ERR_ARG, "a runner needs rows and slabs, found %d and %d",
                         options->max_rows, options->n_slab);
    struct runner *r = mem_zero(1, sizeof *r);
    if (!r) return NO_MEMORY(err, sizeof *r);
    r->model = m;
    r->device = d;
    r->options = *options;
    sumi_status status = build(r, options->token_ok, err);
    if (status != SUMI_OK) {
        runner_close(r);
        return status;
    }
    *out = r;
    return SUMI_OK;
}

void runner_close(struct runner *r) {
    if (!r) return;
    struct want w[N_BUFFER];
    list_buffers(r->model, &r->buffers, w);
    for (int i = 0; i < N_BUFFER; i++) r->device->free(r->device, *w[i].to);
    r->device->free(r->device, r->buffers.pool);
    mem_free(r->list);
    mem_free(r->window);
    mem_free(r->token_ok);
    mem_free(r);
}

static void mask_tokens(const struct runner *r, int32_t n_logit, float *logits) {
    for (int32_t i = 0; i < n_logit; i++)
        for (int32_t t = 0; t < r->model->vocab; t++)
            if (!r->token_ok[t])
                logits[(size_t)i * (size_t)r->model->vocab + (size_t)t] = -INFINITY;
}

static sumi_status run(struct runner *r, const struct step *s, bool one_by_one, sumi_error *err) {
    struct device *d = r->device;
    int32_t n = forward_count(r->model);
    if (d->run_list && !one_by_one) return d->run_list(d, r->list, n, s, err);
    for (int32_t i = 0; i < n; i++) TRY(d->op[r->list[i].kind](d, &r->list[i], s, err));
    return SUMI_OK;
}

sumi_status runner_step(struct runner *r, const struct batch *b, float *logits, sumi_error *err) {
    static const struct taps none;
    const struct taps *t = b->taps ? b->taps : &none;
    if (b->n_row < 1 || b->n_row > r->options.max_rows)
        return fail_with(err, SUMI_ERR_ARG, "a step of %d rows, expected 1 to %d", b->n_row,
                         r->options.max_rows);
    struct step s = {
        .n_row = b->n_row,
        .token = b->token,
        .pos = b->pos,
        .seq_of = b->seq_of,
        .pages = b->seq,
        .n_logit = b->n_logit,
        .logit_row = b->logit_row,
        .logits = logits,
        .bf16 = r->options.bf16,
        .layer_input = b->layer_input,
        .route = b->route,
        .tap_hidden = t->hidden,
        .tap_attn = t->attn_out,
        .tap_mlp = t->mlp_out,
        .tap_norm = t->final_norm,
        .tap_weights = t->router_weights,
        .tap_ids = t->router_ids,
    };
    TRY(run(r, &s, b->taps || b->route || b->layer_input, err));
    if (r->token_ok) mask_tokens(r, b->n_logit, logits);
    return SUMI_OK;
}

static sumi_status step(void *ctx, const struct batch *b, float *logits, sumi_error *err) {
    return runner_step(ctx, b, logits, err);
}

struct stepper runner_stepper(struct runner *r) {
    return (struct stepper){
        .ctx = r,
        .step = step,
        .vocab = r->model->vocab,
        .cache = {.n_layer = r->model->n_layer,
                  .window = r->window,
                  .slab_bytes = r->buffers.slab_bytes},
        .n_slab = r->options.n_slab,
        .max_rows = r->options.max_rows,
    };
}
