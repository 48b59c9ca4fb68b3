/* The CUDA device against the CPU reference, on a machine with a GPU.
 *
 *   test_cuda PLUGIN_DIR ops [PRESET]   operations one by one, each from the CPU's inputs
 *   test_cuda PLUGIN_DIR forward        whole models; graphs against plain launches, many times
 *   test_cuda PLUGIN_DIR small          a little of both, for compute-sanitizer
 *   test_cuda PLUGIN_DIR bench [bf16]   a full-size Flint: milliseconds a step
 *   test_cuda PLUGIN_DIR profile [bf16] eight layers of it, a few plain steps, to be run under ncu
 *
 * Every case goes on after a failure; the last line counts them. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" {
#include "base/mem.h"
#include "base/pool.h"
#include "device/cuda.h"
#include "model.h"
#include "model/forward.h"
#include "model/runner.h"
#include "ops/cache.h"
}

static int n_failed, n_run;

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t e_ = (call);                                                          \
        if (e_ != cudaSuccess) {                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_)); \
            exit(2);                                                                      \
        }                                                                                 \
    } while (0)

static void must(sumi_status status, const sumi_error *err, const char *what) {
    if (status == SUMI_OK) return;
    printf("FAILED %s: %s\n", what, err->msg);
    exit(2);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t rng = 99;

static float uniform(void) {
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(rng >> 40) / 8388608.0 - 1.0);
}

static const struct dims presets[] = {
    {"nano", 4, 64, 8, 2, 32, 192, 8, 2, 64, 128, 320, 9},
    {"micro", 4, 256, 8, 2, 64, 768, 32, 4, 64, 128, 500, 33},
    {"odd", 4, 80, 4, 4, 32, 48, 5, 5, 16, 16, 97, 70},
    {"wide", 4, 512, 16, 1, 128, 1536, 64, 6, 128, 256, 1000, 65},
    {"flint", 4, 2048, 32, 4, 128, 6144, 256, 6, 512, 1024, 4096, 513},
};

/* ---- comparing ---- */

/* Relative error in the norm, and the worst element against the spread of the values. */
static bool close_enough(const char *where, const char *what, const float *got, const float *want,
                         size_t n, size_t width, double norm_tol, double worst_tol) {
    double diff = 0, size = 0, worst = 0;
    size_t at = 0, bad = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - (double)want[i];
        if (!(fabs(d) < 1e30)) {
            if (!bad++) at = i;
            worst = INFINITY;
            continue;
        }
        diff += d * d;
        size += (double)want[i] * (double)want[i];
        if (fabs(d) > worst) worst = fabs(d), at = i;
    }
    double rms = sqrt(size / (double)(n ? n : 1)), norm = sqrt(diff / (size > 0 ? size : 1));
    bool ok = bad == 0 && norm <= norm_tol && worst <= worst_tol * rms + 1e-30;
    n_run++;
    n_failed += !ok;
    if (!ok) {
        printf("FAILED %s %s: relative error %.3g (tolerance %.3g), worst %.3g of rms %.3g at row "
               "%zu column %zu, %zu not finite\n",
               where, what, norm, norm_tol, worst, rms, at / width, at % width, bad);
        for (size_t i = at; i < at + 6 && i < n; i++)
            printf("    [%zu] got %.6g want %.6g\n", i % width, got[i], want[i]);
    }
    return ok;
}

/* ---- two lists over the same model ---- */

struct side {
    struct device *d;
    struct forward_buffers b;
    struct op *list;
};

struct bench_rows {
    int n_row, n_seq, start;
};

enum { POS_MAX = 1024, PAGES = POS_MAX / PAGE_TOKENS };

struct lockstep {
    struct model *m;
    struct side cpu, gpu;
    int max_rows, max_seq;
    size_t pool_bytes;
    int32_t *slab; /* [max_seq][n_layer][PAGES] */
    struct seq_pages *pages;
    int32_t *token, *pos, *seq, *logit_row;
    float *host; /* scratch */
    size_t host_n;
    float *tap_cpu, *tap_gpu, *weights_cpu, *weights_gpu;
    int32_t *ids_cpu, *ids_gpu;
};

static void alloc_side(struct side *s, const struct model *m, int rows, size_t pool) {
    sumi_error err;
    size_t r = (size_t)rows,
           wide = (size_t)(m->dense_width > m->shared_width ? m->dense_width : m->shared_width);
    struct forward_buffers *b = &s->b;
    const struct {
        void **to;
        size_t n;
    } all[] = {{(void **)&b->x, r * m->hidden},
               {(void **)&b->a, r * m->hidden},
               {(void **)&b->y, r * m->hidden},
               {(void **)&b->q, r * m->n_head * m->head_dim},
               {(void **)&b->o, r * m->n_head * m->head_dim},
               {(void **)&b->kv, r * 2 * m->n_kv * m->head_dim},
               {(void **)&b->gate, r * wide},
               {(void **)&b->up, r * wide},
               {(void **)&b->router, r * m->n_expert},
               {(void **)&b->ids, r * m->top_k},
               {(void **)&b->weights, r * m->top_k},
               {(void **)&b->act, r * m->top_k * 2 * m->expert_width},
               {(void **)&b->each, r * m->top_k * m->hidden},
               {(void **)&b->order, r * 2 * m->top_k + m->n_expert + 1},
               {(void **)&b->inv_freq, (size_t)m->head_dim / 2},
               {(void **)&b->pool, pool / 4}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        must(s->d->alloc(s->d, all[i].n * 4, all[i].to, &err), &err, "alloc");
    b->slab_bytes = cache_slab_bytes(m->n_kv, m->head_dim, true);
    float freq[256];
    rope_frequencies(m->rope_theta, m->head_dim, freq);
    must(s->d->copy_in(s->d, b->inv_freq, freq, (size_t)m->head_dim / 2 * 4, &err), &err, "copy");
    s->list = (struct op *)calloc((size_t)forward_count(m), sizeof *s->list);
    forward_list(m, b, s->list);
    if (s->d->prepare) must(s->d->prepare(s->d, s->list, forward_count(m), &err), &err, "prepare");
}

static void free_side(struct side *s) {
    struct forward_buffers *b = &s->b;
    void *all[] = {b->x,      b->a,   b->y,       b->q,   b->o,    b->kv,    b->gate,     b->up,
                   b->router, b->ids, b->weights, b->act, b->each, b->order, b->inv_freq, b->pool};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) s->d->free(s->d, all[i]);
    free(s->list);
}

static void to_gpu(float *dev, const float *host, size_t n) {
    bf16 *t = (bf16 *)malloc(n * 2);
    for (size_t i = 0; i < n; i++) t[i] = bf16_from_f32(host[i]);
    CHECK(cudaMemcpy(dev, t, n * 2, cudaMemcpyHostToDevice));
    free(t);
}

static void from_gpu(float *host, const float *dev, size_t n) {
    bf16 *t = (bf16 *)malloc(n * 2);
    CHECK(cudaMemcpy(t, dev, n * 2, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) host[i] = bf16_to_f32(t[i]);
    free(t);
}

static void open_lockstep(struct lockstep *k, struct model *m, struct device *cpu,
                          struct device *gpu, int max_rows, int max_seq) {
    *k = {};
    k->m = m;
    k->max_rows = max_rows;
    k->max_seq = max_seq;
    k->cpu.d = cpu;
    k->gpu.d = gpu;
    size_t slabs = (size_t)max_seq * m->n_layer * PAGES, rows = (size_t)max_rows;
    k->pool_bytes = slabs * cache_slab_bytes(m->n_kv, m->head_dim, true);
    alloc_side(&k->cpu, m, max_rows, k->pool_bytes);
    alloc_side(&k->gpu, m, max_rows, k->pool_bytes);
    k->slab = (int32_t *)malloc(slabs * 4);
    k->pages = (struct seq_pages *)calloc((size_t)max_seq, sizeof *k->pages);
    for (size_t i = 0; i < slabs; i++) k->slab[i] = (int32_t)i;
    for (size_t i = slabs - 1; i > 0; i--) {
        size_t j = (size_t)((uniform() + 1) / 2 * (float)i);
        int32_t t = k->slab[i];
        k->slab[i] = k->slab[j];
        k->slab[j] = t;
    }
    for (int i = 0; i < max_seq; i++)
        k->pages[i] = {k->slab + (size_t)i * m->n_layer * PAGES, PAGES};
    k->token = (int32_t *)calloc(rows * 4, 4);
    k->pos = k->token + rows;
    k->seq = k->pos + rows;
    k->logit_row = k->seq + rows;
    size_t wide = (size_t)m->n_head * m->head_dim;
    if (wide < (size_t)m->hidden) wide = (size_t)m->hidden;
    if (wide < (size_t)m->vocab) wide = (size_t)m->vocab;
    k->host_n = rows * wide;
    k->host = (float *)calloc(2 * k->host_n, 4);
    k->tap_cpu = (float *)calloc((size_t)m->n_layer * rows * m->hidden, 4);
    k->tap_gpu = (float *)calloc((size_t)m->n_layer * rows * m->hidden, 4);
    size_t slots = (size_t)m->n_moe * rows * m->top_k;
    k->weights_cpu = (float *)calloc(slots, 4);
    k->weights_gpu = (float *)calloc(slots, 4);
    k->ids_cpu = (int32_t *)calloc(slots, 4);
    k->ids_gpu = (int32_t *)calloc(slots, 4);
}

static void close_lockstep(struct lockstep *k) {
    free_side(&k->cpu);
    free_side(&k->gpu);
    free(k->slab);
    free(k->pages);
    free(k->token);
    free(k->host);
    free(k->tap_cpu);
    free(k->tap_gpu);
    free(k->weights_cpu);
    free(k->weights_gpu);
    free(k->ids_cpu);
    free(k->ids_gpu);
}

/* Random keys and values everywhere; what no row may see is not a number. */
static void fill_pool(struct lockstep *k) {
    bf16 *p = (bf16 *)k->cpu.b.pool;
    for (size_t i = 0; i < k->pool_bytes / 2; i++) p[i] = bf16_from_f32(1.7f * uniform());
    for (int r = 0; r < k->max_rows; r++) {
        if (k->pos[r] < 0) break;
        int last = k->pos[r];
        if (r + 1 < k->max_rows && k->pos[r + 1] >= 0 && k->seq[r + 1] == k->seq[r]) continue;
        struct step s = {};
        s.pages = k->pages;
        s.bf16 = true;
        for (int l = 0; l < k->m->n_layer; l++)
            for (int h = 0; h < k->m->n_kv; h++)
                for (int which = 0; which < 2; which++)
                    for (int at = last + 1; at % PAGE_TOKENS; at++) {
                        struct op_cache c = k->cpu.list[1].u.norm_qkv.cache;
                        c.layer = l;
                        memset(cache_at(&c, &s, k->seq[r], at, h, which), 0xFF,
                               (size_t)k->m->head_dim * 2);
                    }
    }
    CHECK(cudaMemcpy(k->gpu.b.pool, p, k->pool_bytes, cudaMemcpyHostToDevice));
}

static void compare_pool(struct lockstep *k, const char *where, const struct step *s,
                         const struct op_cache *c) {
    size_t d = (size_t)c->head_dim, n = 0, per = (size_t)c->n_kv * 2 * d;
    float *want = (float *)malloc((size_t)s->n_row * per * 4 * 2), *got = want + s->n_row * per;
    uint8_t *all = (uint8_t *)malloc(k->pool_bytes);
    CHECK(cudaMemcpy(all, k->gpu.b.pool, k->pool_bytes, cudaMemcpyDeviceToHost));
    for (int r = 0; r < s->n_row; r++)
        for (int h = 0; h < c->n_kv; h++)
            for (int which = 0; which < 2; which++, n += d) {
                uint8_t *at = cache_at(c, s, s->seq_of[r], s->pos[r], h, which);
                cache_load(c, s, at, want + n);
                cache_load(c, s, all + (at - c->pool), got + n);
            }
    close_enough(where, "cache", got, want, n, per, 4e-3, 0.06);
    n_run++;
    /* Nothing else may have been touched: give the GPU the reference's rows and compare bytes. */
    for (int r = 0; r < s->n_row; r++)
        for (int h = 0; h < c->n_kv; h++)
            for (int which = 0; which < 2; which++) {
                uint8_t *at = cache_at(c, s, s->seq_of[r], s->pos[r], h, which);
                memcpy(all + (at - c->pool), at, d * 2);
            }
    if (memcmp(all, c->pool, k->pool_bytes) != 0) {
        printf("FAILED %s: cache entries of other positions were touched\n", where);
        n_failed++;
    }
    CHECK(cudaMemcpy(k->gpu.b.pool, c->pool, k->pool_bytes, cudaMemcpyHostToDevice));
    free(want);
    free(all);
}

static void run_both(struct lockstep *k, int i, struct step *s, float *logits_cpu,
                     float *logits_gpu) {
    sumi_error err = {};
    struct step c = *s, g = *s;
    c.tap_attn = c.tap_mlp = k->tap_cpu;
    g.tap_attn = g.tap_mlp = k->tap_gpu;
    c.tap_ids = k->ids_cpu;
    g.tap_ids = k->ids_gpu;
    c.tap_weights = k->weights_cpu;
    g.tap_weights = k->weights_gpu;
    c.logits = logits_cpu;
    g.logits = logits_gpu;
    const struct op *a = &k->cpu.list[i], *b = &k->gpu.list[i];
    must(k->cpu.d->op[a->kind](k->cpu.d, a, &c, &err), &err, "cpu operation");
    must(k->gpu.d->op[b->kind](k->gpu.d, b, &g, &err), &err, "cuda operation");
}

static const char *const op_name[] = {"embed",     "norm_qkv", "attention", "attn_out",
                                      "dense_ffn", "moe",      "head"};

static void compare_branch(struct lockstep *k, const char *where, const struct op *op, int n_row) {
    size_t n = (size_t)n_row * k->m->hidden, at = (size_t)op->layer * n;
    close_enough(where, "branch", k->tap_gpu + at, k->tap_cpu + at, n, (size_t)k->m->hidden, 6e-3,
                 0.08);
}

static void compare_route(struct lockstep *k, const char *where, const struct op *op, int n_row) {
    size_t n = (size_t)n_row * k->m->top_k, at = (size_t)op->u.moe.moe_index * n, bad = 0;
    for (size_t i = 0; i < n; i++)
        if (k->ids_cpu[at + i] != k->ids_gpu[at + i] && !bad++)
            printf("FAILED %s: row %zu choice %zu is expert %d, expected %d\n", where,
                   i / k->m->top_k, i % k->m->top_k, k->ids_gpu[at + i], k->ids_cpu[at + i]);
    n_run++;
    n_failed += bad != 0;
    close_enough(where, "routing weights", k->weights_gpu + at, k->weights_cpu + at, n,
                 (size_t)k->m->top_k, 1e-4, 1e-3);
}

/* Runs operation i on both sides from the CPU's inputs and compares what it wrote. */
static void one_op(struct lockstep *k, int i, struct step *s, const char *where) {
    const struct op *op = &k->cpu.list[i];
    size_t rows = (size_t)s->n_row, hidden = (size_t)k->m->hidden, nx = rows * hidden;
    size_t heads = (size_t)k->m->n_head * k->m->head_dim;
    float *got = k->host, *logits = k->host + k->host_n;
    if (op->kind != OP_EMBED) to_gpu(k->gpu.b.x, k->cpu.b.x, nx);
    if (op->kind == OP_ATTENTION) to_gpu(k->gpu.b.q, k->cpu.b.q, rows * heads);
    if (op->kind == OP_ATTN_OUT) to_gpu(k->gpu.b.o, k->cpu.b.o, rows * heads);
    run_both(k, i, s, logits, got);
    if (op->kind == OP_HEAD) {
        close_enough(where, "logits", got, logits, (size_t)s->n_logit * k->m->vocab,
                     (size_t)k->m->vocab, 4e-3, 0.05);
        return;
    }
    if (op->kind == OP_NORM_QKV) {
        from_gpu(got, k->gpu.b.q, rows * heads);
        close_enough(where, "q", got, k->cpu.b.q, rows * heads, heads, 4e-3, 0.06);
        compare_pool(k, where, s, &op->u.norm_qkv.cache);
        return;
    }
    if (op->kind == OP_ATTENTION) {
        from_gpu(got, k->gpu.b.o, rows * heads);
        close_enough(where, "o", got, k->cpu.b.o, rows * heads, heads, 5e-3, 0.08);
        return;
    }
    if (op->kind == OP_MOE) compare_route(k, where, op, s->n_row);
    if (op->kind != OP_EMBED) compare_branch(k, where, op, s->n_row);
    from_gpu(got, k->gpu.b.x, nx);
    close_enough(where, "x", got, k->cpu.b.x, nx, hidden, op->kind == OP_EMBED ? 0 : 5e-3,
                 op->kind == OP_EMBED ? 0 : 0.08);
}

static void lay_rows(struct lockstep *k, const struct bench_rows *c) {
    int n = 0;
    for (int i = 0; i < k->max_rows; i++) k->pos[i] = -1;
    for (int i = 0; i < c->n_seq; i++) {
        int rows = c->n_row / c->n_seq + (i < c->n_row % c->n_seq), start = c->start;
        if (c->start) start += i * 37 % 200;
        for (int j = 0; j < rows; j++, n++) {
            k->token[n] = (n * 7919 + i * 31 + c->n_row) % k->m->vocab;
            k->pos[n] = start + j;
            k->seq[n] = i;
        }
    }
}

static void lockstep_case(struct lockstep *k, const char *name, const struct bench_rows *c) {
    lay_rows(k, c);
    fill_pool(k);
    struct step s = {};
    s.n_row = c->n_row;
    s.token = k->token;
    s.pos = k->pos;
    s.seq_of = k->seq;
    s.pages = k->pages;
    s.bf16 = true;
    for (int r = 0; r < c->n_row; r += r % 3 == 0 ? 1 : 2) k->logit_row[s.n_logit++] = r;
    s.logit_row = k->logit_row;
    for (int i = 0; i < forward_count(k->m); i++) {
        char where[160];
        const struct op *op = &k->cpu.list[i];
        snprintf(where, sizeof where, "%s rows %d seqs %d start %d: layer %d %s", name, c->n_row,
                 c->n_seq, c->start, op->layer, op_name[op->kind]);
        one_op(k, i, &s, where);
    }
}

static const struct bench_rows row_cases[] = {
    {1, 1, 0},   {1, 1, 63},    {1, 1, 700},  {2, 2, 64},    {3, 3, 500},  {5, 1, 10},
    {8, 8, 620}, {9, 3, 511},   {16, 16, 90}, {17, 4, 0},    {33, 1, 0},   {64, 16, 40},
    {65, 1, 0},  {65, 16, 300}, {130, 1, 0},  {130, 2, 450}, {200, 16, 5}, {257, 3, 129},
};

static void test_ops(struct device *cpu, struct device *gpu, struct blob *blob, const char *only,
                     bool few) {
    static const char *const kinds[] = {"bf16", "nvfp4", "mixed"};
    for (const struct dims &d : presets)
        for (int w = 0; w < 3; w++) {
            if ((only && strcmp(only, d.name) != 0) || (w && d.hidden % 64) || (few && w == 0))
                continue;
            double start = seconds();
            int failed = n_failed, run = n_run;
            char name[64];
            snprintf(name, sizeof name, "%s %s", d.name, kinds[w]);
            struct model *m = make_model(&d, (enum weights)w, false, blob);
            struct lockstep k;
            open_lockstep(&k, m, cpu, gpu, 260, 16);
            for (const struct bench_rows &c : row_cases)
                if (!few || c.n_row == 1 || c.n_row == 5 || c.n_row == 9 || c.n_row == 65)
                    lockstep_case(&k, name, &c);
            close_lockstep(&k);
            model_close(m);
            printf("ops %s: %d of %d comparisons failed, %.1f s\n", name, n_failed - failed,
                   n_run - run, seconds() - start);
            fflush(stdout);
        }
}

/* ---- whole models ---- */

struct world {
    struct runner *r;
    int32_t *slab;
    struct seq_pages pages[64];
};

/* Page tables for n_seq sequences of so many positions: full layers keep all, windows a ring of
 * slabs that holds what `rows` new rows see. Slab numbers are shuffled. Returns how many there are.
 */
static int32_t lay_world(struct world *w, const struct model *m, int rows, int n_seq,
                         int positions) {
    int stride = (positions + PAGE_TOKENS - 1) / PAGE_TOKENS;
    size_t n = (size_t)n_seq * (size_t)m->n_layer * (size_t)stride;
    int32_t next = 0;
    free(w->slab);
    w->slab = (int32_t *)malloc(n * 4);
    for (int i = 0; i < n_seq; i++)
        for (int l = 0; l < m->n_layer; l++) {
            int window = m->layer[l].attn.window, ring = window ? (window + rows) / 64 + 3 : stride;
            if (ring > stride) ring = stride;
            for (int p = 0; p < stride; p++)
                w->slab[((size_t)i * m->n_layer + l) * stride + p] = next + p % ring;
            next += ring;
        }
    int32_t *shuffle = (int32_t *)malloc((size_t)next * 4);
    for (int32_t i = 0; i < next; i++) shuffle[i] = i;
    for (int32_t i = next - 1; i > 0; i--) {
        int32_t j = (int32_t)((uniform() + 1) / 2 * (float)i), t = shuffle[i];
        shuffle[i] = shuffle[j];
        shuffle[j] = t;
    }
    for (size_t i = 0; i < n; i++) w->slab[i] = shuffle[w->slab[i]];
    free(shuffle);
    for (int i = 0; i < n_seq; i++)
        w->pages[i] = {w->slab + (size_t)i * m->n_layer * stride, stride};
    return next;
}

static void open_runner(struct world *w, struct model *m, struct device *d, int rows,
                        int32_t n_slab) {
    sumi_error err = {};
    struct runner_options o = {true, rows, n_slab, NULL};
    must(runner_open(&w->r, m, d, &o, &err), &err, "runner_open");
}

static void open_world(struct world *w, struct model *m, struct device *d, int rows, int n_seq,
                       int positions) {
    *w = {};
    open_runner(w, m, d, rows, lay_world(w, m, rows, n_seq, positions));
}

static void close_world(struct world *w) {
    runner_close(w->r);
    free(w->slab);
}

/* n sequences, rows [from, to) of each; logits of each last row. */
static void world_step(struct world *w, int n_seq, int from, int to, int vocab, float *logits) {
    static int32_t token[8192], pos[8192], seq[8192], rows[64];
    struct batch b = {};
    sumi_error err = {};
    int n = 0;
    for (int i = 0; i < n_seq; i++) {
        for (int p = from; p < to; p++, n++) {
            token[n] = (int32_t)((uint32_t)(i * 7919 + p * 104729 + p * p) % (uint32_t)vocab);
            pos[n] = p;
            seq[n] = i;
        }
        rows[i] = n - 1;
    }
    b.n_row = n;
    b.token = token;
    b.pos = pos;
    b.seq_of = seq;
    b.n_seq = n_seq;
    b.seq = w->pages;
    b.n_logit = n_seq;
    b.logit_row = rows;
    must(runner_step(w->r, &b, logits, &err), &err, "runner_step");
}

static int argmax(const float *v, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Teacher-forced along the same tokens; experts may flip on near ties, so the measure is the mean.
 */
static void compare_forward(struct device *cpu, struct device *gpu, struct blob *blob,
                            const struct dims *d, enum weights w) {
    struct model *m = make_model(d, w, false, blob);
    struct world a, b;
    open_world(&a, m, cpu, 256, 2, 256);
    open_world(&b, m, gpu, 256, 2, 256);
    size_t n = (size_t)2 * m->vocab;
    float *want = (float *)calloc(2 * n, 4), *got = want + n;
    double sum = 0, worst = 0;
    int same = 0, steps = 0;
    static const int cuts[] = {0, 70, 71, 72, 73, 74, 90, 91, 92, 200, 201, 202, 203, 204, 205};
    for (size_t i = 0; i + 1 < sizeof cuts / sizeof *cuts; i++) {
        world_step(&a, 2, cuts[i], cuts[i + 1], m->vocab, want);
        world_step(&b, 2, cuts[i], cuts[i + 1], m->vocab, got);
        for (int s = 0; s < 2; s++, steps++) {
            double diff = 0, size = 0;
            for (int t = 0; t < m->vocab; t++) {
                double x = want[(size_t)s * m->vocab + t], y = got[(size_t)s * m->vocab + t];
                diff += (x - y) * (x - y);
                size += x * x;
            }
            double e = sqrt(diff / size);
            sum += e;
            if (!(e <= worst)) worst = e;
            same += argmax(want + (size_t)s * m->vocab, m->vocab) ==
                    argmax(got + (size_t)s * m->vocab, m->vocab);
        }
    }
    bool ok = sum / steps < 0.03 && worst < 0.3;
    n_run++;
    n_failed += !ok;
    printf("%s forward %s weights %d: relative error of logits mean %.4f worst %.4f, same first "
           "choice %d of %d\n",
           ok ? "ok" : "FAILED", d->name, (int)w, sum / steps, worst, same, steps);
    close_world(&a);
    close_world(&b);
    free(want);
    model_close(m);
}

/* The same step by plain launches, with dependent launch, and from graphs: the same bits. */
static void replay(const struct cuda_plugin *plugin, struct device *gpu, struct blob *blob,
                   const struct dims *d, int context, int replays) {
    static const int seqs[] = {1, 2, 3, 8, 13, 32, 64};
    struct model *m = make_model(d, ALL_NVFP4, false, blob);
    struct world w;
    size_t n = (size_t)64 * m->vocab;
    float *want = (float *)calloc(2 * n, 4), *got = want + n;
    open_world(&w, m, gpu, 64 * 4, 64, 256);
    for (int p = 0; p < context; p += 4) world_step(&w, 64, p, p + 4, m->vocab, want);
    for (int s : seqs) {
        const struct cuda_options modes[] = {
            {false, false, false}, {false, true, false}, {true, false, false}, {true, true, false}};
        size_t bytes = (size_t)s * m->vocab * 4;
        for (int mode = 0; mode < 4; mode++) {
            struct cuda_stats stats;
            int bad = 0, times = mode == 3 ? replays : mode == 0 ? 3 : replays / 10 + 3;
            plugin->set_options(gpu, &modes[mode]);
            if (mode == 0) world_step(&w, s, context, context + 1, m->vocab, want);
            for (int i = 0; i < times; i++) {
                memset(got, 0, bytes);
                world_step(&w, s, context, context + 1, m->vocab, got);
                bad += memcmp(got, want, bytes) != 0;
            }
            plugin->stats(gpu, &stats);
            bool ok = !bad && stats.replayed == modes[mode].graphs;
            n_run++;
            n_failed += !ok;
            if (!ok || mode == 3)
                printf("%s %s %d rows, graphs %d pdl %d: %d of %d steps differ, %d kernels\n",
                       ok ? "ok" : "FAILED", d->name, s, modes[mode].graphs, modes[mode].pdl, bad,
                       times, stats.n_kernel);
        }
    }
    close_world(&w);
    free(want);
    model_close(m);
}

static void test_refusals(struct device *gpu, struct blob *blob) {
    sumi_error err = {};
    struct model *m = make_model(&presets[0], ALL_BF16, false, blob);
    struct runner *r;
    struct runner_options o = {false, 8, 64, NULL};
    must(runner_open(&r, m, gpu, &o, &err), &err, "runner_open");
    int32_t zero = 0, slab[64] = {}, token = 1;
    struct seq_pages pages = {slab, 1};
    struct batch b = {};
    float logits[320];
    b.n_row = b.n_seq = b.n_logit = 1;
    b.token = &token;
    b.pos = b.seq_of = b.logit_row = &zero;
    b.seq = &pages;
    bool ok = runner_step(r, &b, logits, &err) == SUMI_ERR_UNSUPPORTED;
    printf("%s float32 mode is refused: %s\n", ok ? "ok" : "FAILED", err.msg);
    runner_close(r);
    o.bf16 = true;
    must(runner_open(&r, m, gpu, &o, &err), &err, "runner_open");
    token = m->vocab;
    bool bad = runner_step(r, &b, logits, &err) == SUMI_ERR_ARG;
    printf("%s a token outside the vocabulary is refused: %s\n", bad ? "ok" : "FAILED", err.msg);
    void *p;
    bool full = gpu->alloc(gpu, (size_t)1 << 48, &p, &err) == SUMI_ERR_MEMORY;
    printf("%s memory that is not there: %s\n", full ? "ok" : "FAILED", err.msg);
    n_run += 3;
    n_failed += !ok + !bad + !full;
    runner_close(r);
    model_close(m);
}

/* ---- bench ---- */

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The device's last allocation is the cache pool: timing zeros would flatter. */
static sumi_status (*plain_alloc)(struct device *, size_t, void **, sumi_error *);
static uint8_t *last_alloc;
static size_t last_bytes;

static sumi_status watch_alloc(struct device *d, size_t bytes, void **out, sumi_error *err) {
    sumi_status status = plain_alloc(d, bytes, out, err);
    last_alloc = (uint8_t *)*out;
    last_bytes = bytes;
    return status;
}

static void fill_last(const struct blob *b) {
    for (size_t at = 0; at < last_bytes; at += b->bytes) {
        size_t n = last_bytes - at < b->bytes ? last_bytes - at : b->bytes;
        CHECK(cudaMemcpy(last_alloc + at, b->bf16, n, cudaMemcpyHostToDevice));
    }
}

static void bench_decode(const struct cuda_plugin *plugin, struct device *gpu,
                         const struct model *m, struct world *w, int n_seq, int context, bool pdl) {
    enum { TIMES = 40 };
    struct cuda_stats stats;
    float forward[TIMES], wall[TIMES];
    float *logits = (float *)malloc((size_t)n_seq * m->vocab * 4);
    lay_world(w, m, 64, n_seq, context + 64);
    const struct cuda_options o = {true, pdl, true};
    plugin->set_options(gpu, &o);
    for (int i = 0; i < TIMES + 4; i++) {
        double start = seconds();
        world_step(w, n_seq, context + i % 8, context + i % 8 + 1, m->vocab, logits);
        plugin->stats(gpu, &stats);
        if (i < 4) continue;
        wall[i - 4] = (float)((seconds() - start) * 1e3);
        forward[i - 4] = stats.forward_ms;
    }
    qsort(forward, TIMES, sizeof *forward, by_value);
    qsort(wall, TIMES, sizeof *wall, by_value);
    printf("bench batch %d context %d pdl %d: forward %.3f ms (%.3f to %.3f), with logits to the "
           "host %.3f ms, %d kernels, logit[0] %g\n",
           n_seq, context, pdl, forward[TIMES / 2], forward[1], forward[TIMES - 2], wall[TIMES / 2],
           stats.n_kernel, logits[0]);
    fflush(stdout);
    free(logits);
}

static void bench_prefill(const struct cuda_plugin *plugin, struct device *gpu,
                          const struct model *m, struct world *w, int rows) {
    struct cuda_stats stats;
    float *logits = (float *)malloc((size_t)m->vocab * 4), best = 1e9f;
    lay_world(w, m, rows, 1, rows);
    const struct cuda_options o = {true, true, true};
    plugin->set_options(gpu, &o);
    for (int i = 0; i < 4; i++) {
        world_step(w, 1, 0, rows, m->vocab, logits);
        plugin->stats(gpu, &stats);
        if (i && stats.forward_ms < best) best = stats.forward_ms;
    }
    printf("bench prefill %d: %.2f ms, %d kernels, logit[0] %g\n", rows, best, stats.n_kernel,
           logits[0]);
    fflush(stdout);
    free(logits);
}

/* profile: few layers, plain launches, two steps each, to be run under ncu. */
static void bench(const struct cuda_plugin *plugin, struct device *gpu, struct blob *blob,
                  enum weights w, bool profile) {
    struct dims flint = {"flint", 49, 2048, 32, 4, 128, 6144, 256, 6, 512, 1024, 150144, 513};
    static const int cases[][2] = {{1, 1024}, {1, 100000}, {8, 1024}, {8, 32768}, {64, 1024}};
    if (profile) flint.n_layer = 8;
    struct model *m = make_model(&flint, w, true, blob);
    struct cuda_stats stats;
    struct world world = {};
    int32_t n_slab = 0;
    for (const int(&c)[2] : cases) {
        int32_t n = lay_world(&world, m, 64, c[0], c[1] + 64);
        if (n > n_slab) n_slab = n;
    }
    plain_alloc = gpu->alloc;
    gpu->alloc = watch_alloc;
    double start = seconds();
    open_runner(&world, m, gpu, 8192, n_slab);
    gpu->alloc = plain_alloc;
    plugin->stats(gpu, &stats);
    printf("bench %s: %.2f GB of weights in %.1f s\n", w == ALL_BF16 ? "bf16" : "nvfp4",
           (double)stats.weight_bytes / 1e9, seconds() - start);
    fflush(stdout);
    fill_last(blob);
    if (profile) {
        float *logits = (float *)malloc((size_t)64 * m->vocab * 4);
        const struct cuda_options o = {false, false, false};
        plugin->set_options(gpu, &o);
        for (const int(&c)[2] : cases) {
            lay_world(&world, m, 64, c[0], c[1] + 64);
            for (int i = 0; i < 2; i++)
                world_step(&world, c[0], c[1] + i, c[1] + i + 1, m->vocab, logits);
        }
        free(logits);
    } else {
        bench_decode(plugin, gpu, m, &world, 1, 1024, false);
        for (const int(&c)[2] : cases) bench_decode(plugin, gpu, m, &world, c[0], c[1], true);
        bench_prefill(plugin, gpu, m, &world, 1024);
        bench_prefill(plugin, gpu, m, &world, 8192);
    }
    close_world(&world);
    model_close(m);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a run that is cut off shows how far it came */
    const char *what = argv[2], *more = argc > 3 ? argv[3] : NULL;
    sumi_error err = {};
    struct device *cpu, *gpu;
    struct blob blob;
    must(device_open_cuda(&gpu, 0, argv[1], &err), &err, "device_open_cuda");
    must(device_open_cpu(&cpu, 0, &err), &err, "device_open_cpu");
    must(ops_bind_cpu_isa(cpu, CPU_ISA_REF, &err), &err, "ops_bind_cpu_isa");
    blob_open(&blob, (size_t)64 << 20);
    const struct cuda_plugin *plugin = cuda_plugin_loaded();
    if (strcmp(what, "ops") == 0) test_ops(cpu, gpu, &blob, more, false);
    if (strcmp(what, "small") == 0) {
        test_ops(cpu, gpu, &blob, "nano", true);
        compare_forward(cpu, gpu, &blob, &presets[0], ALL_NVFP4);
        replay(plugin, gpu, &blob, &presets[0], 16, 10);
    }
    if (strcmp(what, "forward") == 0) {
        test_refusals(gpu, &blob);
        for (int i = 0; i < 4; i++) {
            compare_forward(cpu, gpu, &blob, &presets[i], ALL_BF16);
            if (presets[i].hidden % 64 == 0)
                compare_forward(cpu, gpu, &blob, &presets[i], ALL_NVFP4);
        }
        replay(plugin, gpu, &blob, &presets[1], 160, 2000);
        replay(plugin, gpu, &blob, &presets[3], 160, 300);
    }
    if (strcmp(what, "bench") == 0 || strcmp(what, "profile") == 0)
        bench(plugin, gpu, &blob, more && strcmp(more, "bf16") == 0 ? ALL_BF16 : ALL_NVFP4,
              strcmp(what, "profile") == 0);
    blob_close(&blob);
    device_close(cpu);
    device_close(gpu);
    printf("%s: %d of %d checks failed\n", what, n_failed, n_run);
    return n_failed != 0;
}
