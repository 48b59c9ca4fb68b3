/* A layer of every kind of operation, run by the reference and by every instruction set of this
 * processor from the same input: attention over pages with windows and sinks, dense and expert
 * blocks, the head. Then the same rows once more in other company, which must not change a bit. */
#include "base/mem.h"
#include "check.h"
#include "ops/cache.h"
#include "ops/op.h"

struct shape {
    const char *name;
    int32_t hidden, n_head, n_kv, d, window, n_expert, top_k, width, shared, dense, n_row;
    bool sink, rope, bf16;
    enum dtype type;
};

enum { N_OP = 6, VOCAB = 50 };
static const char *const op_name[N_OP] = {"norm_qkv", "attention", "attn_out",
                                          "dense",    "moe",       "head"};

/* Buffers of one device; weights are shared. */
struct world {
    struct device *device;
    struct op list[N_OP];
    float *x, *logits;
    void *owned[24];
    int n_owned;
    size_t rows;
};

static void *own(struct world *w, size_t n) {
    return w->owned[w->n_owned++] = calloc(n ? n : 1, 4);
}

static float *numbers(int64_t n, uint64_t seed, float size) {
    float *p = random_floats((size_t)n, seed);
    for (int64_t i = 0; i < n; i++) p[i] *= size;
    return p;
}

/* f32 or bf16; blocks have tests of their own. */
static struct weight matrix(enum dtype t, int64_t n_out, int64_t n_in, uint64_t seed) {
    float *p = numbers(n_out * n_in, seed, 2 / sqrtf((float)n_in));
    struct weight w = {DT_F32, p, n_out, n_in, (size_t)n_in * 4, 1};
    if (t == DT_F32) return w;
    bf16 *half = malloc((size_t)(n_out * n_in) * sizeof *half);
    for (int64_t i = 0; i < n_out * n_in; i++) half[i] = bf16_from_f32(p[i]);
    free(p);
    return (struct weight){DT_BF16, half, n_out, n_in, (size_t)n_in * 2, 1};
}

static struct mlp gated(enum dtype t, int64_t width, int64_t hidden, uint64_t seed) {
    return (struct mlp){matrix(t, width, hidden, seed), matrix(t, width, hidden, seed + 1),
                        matrix(t, hidden, width, seed + 2)};
}

struct data {
    struct weight q, k, v, o, router, head;
    struct mlp dense, shared, *expert;
    float *norm, *sink, *freq, *cache_values;
};

static struct data make_data(const struct shape *s) {
    struct data d = {
        .q = matrix(s->type, s->n_head * s->d, s->hidden, 1),
        .k = matrix(s->type, s->n_kv * s->d, s->hidden, 2),
        .v = matrix(s->type, s->n_kv * s->d, s->hidden, 3),
        .o = matrix(s->type, s->hidden, s->n_head * s->d, 4),
        .router = matrix(DT_F32, s->n_expert, s->hidden, 5),
        .head = matrix(s->type, VOCAB, s->hidden, 6),
        .dense = gated(s->type, s->dense, s->hidden, 7),
        .expert = malloc((size_t)s->n_expert * sizeof *d.expert),
        .norm = numbers(s->hidden + s->d, 8, 1),
        .sink = numbers(s->n_head, 9, 2),
        .freq = malloc(OP_MAX_HEAD_DIM * sizeof *d.freq),
    };
    if (s->shared) d.shared = gated(s->type, s->shared, s->hidden, 10);
    for (int32_t e = 0; e < s->n_expert; e++)
        d.expert[e] = gated(s->type, s->width, s->hidden, 20 + 3 * (uint64_t)e);
    for (int32_t i = 0; i < s->d / 2; i++) d.freq[i] = 1.0f / (float)pow(10000.0, 2.0 * i / s->d);
    return d;
}

static void free_weight(struct weight w) {
    free((void *)(uintptr_t)w.data);
}

static void free_mlp(struct mlp m) {
    free_weight(m.gate);
    free_weight(m.up);
    free_weight(m.down);
}

static void free_data(const struct shape *s, struct data *d) {
    free_weight(d->q);
    free_weight(d->k);
    free_weight(d->v);
    free_weight(d->o);
    free_weight(d->router);
    free_weight(d->head);
    free_mlp(d->dense);
    if (s->shared) free_mlp(d->shared);
    for (int32_t e = 0; e < s->n_expert; e++) free_mlp(d->expert[e]);
    free(d->expert);
    free(d->norm);
    free(d->sink);
    free(d->freq);
}

static void fill_list(struct world *w, const struct shape *s, const struct data *d) {
    size_t r = w->rows, h = (size_t)s->hidden, heads = (size_t)(s->n_head * s->d);
    size_t wide = (size_t)(s->dense > s->shared ? s->dense : s->shared);
    size_t slab = cache_slab_bytes(s->n_kv, s->d, s->bf16);
    size_t pages = (size_t)(s->n_row) / PAGE_TOKENS + 1;
    struct op_cache cache = {own(w, pages * slab / 4), slab, 0, s->n_kv, s->d};
    float *a = own(w, r * h), *y = own(w, r * h), *q = own(w, r * heads), *o = own(w, r * heads);
    float *gate = own(w, r * wide), *up = own(w, r * wide);
    w->x = own(w, r * h);
    w->logits = own(w, r * VOCAB);
    for (int i = 0; i < N_OP; i++)
        w->list[i] = (struct op){.hidden = s->hidden, .eps = 1e-6f, .x = w->x};
    w->list[0].kind = OP_NORM_QKV;
    w->list[0].u.norm_qkv = (struct op_norm_qkv){d->norm,
                                                 d->q,
                                                 d->k,
                                                 d->v,
                                                 d->norm + h,
                                                 d->norm + h,
                                                 s->rope ? d->freq : NULL,
                                                 s->n_head,
                                                 cache,
                                                 a,
                                                 q,
                                                 own(w, r * 2 * (size_t)(s->n_kv * s->d))};
    w->list[1].kind = OP_ATTENTION;
    w->list[1].u.attention = (struct op_attention){
        s->sink ? d->sink : NULL, s->n_head, s->window, 1 / sqrtf((float)s->d), cache, q, o};
    w->list[2].kind = OP_ATTN_OUT;
    w->list[2].u.attn_out = (struct op_attn_out){d->o, o, y};
    w->list[3].kind = OP_DENSE_FFN;
    w->list[3].u.dense_ffn = (struct op_dense_ffn){d->norm, d->dense, a, y, gate, up};
    w->list[4].kind = OP_MOE;
    size_t slots = r * (size_t)s->top_k;
    w->list[4].u.moe = (struct op_moe){.norm = d->norm,
                                       .router = d->router,
                                       .expert = d->expert,
                                       .shared = d->shared,
                                       .n_expert = s->n_expert,
                                       .top_k = s->top_k,
                                       .a = a,
                                       .y = y,
                                       .logits = own(w, r * (size_t)s->n_expert),
                                       .ids = own(w, slots),
                                       .weights = own(w, slots),
                                       .act = own(w, slots * 2 * (size_t)s->width),
                                       .each = own(w, slots * h),
                                       .gate = gate,
                                       .up = up,
                                       .order = own(w, 2 * slots + (size_t)s->n_expert + 1)};
    w->list[5].kind = OP_HEAD;
    w->list[5].u.head = (struct op_head){d->norm, d->head, a};
}

static void open_world(struct world *w, const struct shape *s, const struct data *d,
                       enum cpu_isa isa, int n_thread) {
    *w = (struct world){.rows = (size_t)(s->n_row)};
    if (device_open_cpu(&w->device, n_thread, NULL) != SUMI_OK ||
        ops_bind_cpu_isa(w->device, isa, NULL) != SUMI_OK)
        exit(1);
    fill_list(w, s, d);
    if (w->device->prepare && w->device->prepare(w->device, w->list, N_OP, NULL) != SUMI_OK)
        exit(1);
}

static void close_world(struct world *w) {
    device_close(w->device);
    for (int i = 0; i < w->n_owned; i++) free(w->owned[i]);
}

/* What an operation leaves behind. */
static float *result_of(struct world *w, int i, const struct shape *s, size_t *width) {
    *width = i < 2 ? (size_t)(s->n_head * s->d) : i == 5 ? VOCAB : (size_t)s->hidden;
    return i == 0   ? w->list[0].u.norm_qkv.q_out
           : i == 1 ? w->list[1].u.attention.o
           : i == 5 ? w->logits
                    : w->x;
}

struct rows {
    int32_t *pos, *seq, *pick, *slab;
    struct seq_pages pages;
};

static struct rows make_rows(int32_t n) {
    struct rows r = {malloc((size_t)n * 4),
                     calloc((size_t)n, 4),
                     malloc((size_t)n * 4),
                     malloc(((size_t)n / PAGE_TOKENS + 1) * 4),
                     {0}};
    int32_t pages = n / PAGE_TOKENS + 1;
    for (int32_t i = 0; i < n; i++) r.pos[i] = i, r.pick[i] = i;
    for (int32_t i = 0; i < pages; i++) r.slab[i] = pages - 1 - i;
    r.pages = (struct seq_pages){r.slab, pages};
    return r;
}

static void free_rows(struct rows *r) {
    free(r->pos);
    free(r->seq);
    free(r->pick);
    free(r->slab);
}

/* Runs operation i over rows [from, from + n) with x as given. */
static void run_op(struct world *w, int i, const struct shape *s, const struct rows *r,
                   int32_t from, int32_t n, const float *x) {
    struct step step = {.n_row = n,
                        .pos = r->pos + from,
                        .seq_of = r->seq,
                        .pages = &r->pages,
                        .n_logit = n,
                        .logit_row = r->pick,
                        .logits = w->logits,
                        .bf16 = s->bf16};
    sumi_error err = {0};
    memcpy(w->x, x + (size_t)from * (size_t)s->hidden, (size_t)(n * s->hidden) * sizeof *x);
    if (w->device->op[w->list[i].kind](w->device, &w->list[i], &step, &err) != SUMI_OK) {
        printf("%s: %s\n", op_name[i], err.msg);
        n_failed++;
    }
}

static void compare(const struct shape *s, const char *isa, int i, const float *got,
                    const float *ref, size_t n) {
    double *want = malloc(n * sizeof *want), size = 0;
    char name[160];
    for (size_t k = 0; k < n; k++) {
        want[k] = (double)ref[k];
        size += fabs(want[k]) / (double)n;
    }
    snprintf(name, sizeof name, "%s %s: %s", isa, s->name, op_name[i]);
    check_close(name, got, want, n, s->bf16 ? 0.016 * size : 1e-5 * size, s->bf16 ? 0.008 : 1e-5);
    free(want);
}

/* The same in pieces of other sizes, on another number of threads. Attention and the output
 * projection read buffers instead of x: they get the rows that the whole run had. */
static bool pieces_agree(struct world *one, int i, const struct shape *s, const struct rows *r,
                         const float *x, struct world *whole, const float *got, size_t width) {
    bool same = true;
    int32_t total = s->n_row;
    size_t heads = (size_t)(s->n_head * s->d);
    const float *q = whole->list[0].u.norm_qkv.q_out, *o = whole->list[1].u.attention.o;
    for (int32_t from = 0, piece = 1; from < total; from += piece, piece = piece % 11 + 3) {
        if (piece > total - from) piece = total - from;
        size_t at = (size_t)from * heads, bytes = (size_t)piece * heads * sizeof *q;
        if (i == 1) memcpy(one->list[0].u.norm_qkv.q_out, q + at, bytes);
        if (i == 2) memcpy(one->list[1].u.attention.o, o + at, bytes);
        run_op(one, i, s, r, from, piece, x);
        size_t ignored;
        same = same && memcmp(result_of(one, i, s, &ignored), got + (size_t)from * width,
                              (size_t)piece * width * sizeof *got) == 0;
    }
    return same;
}

static void layer_case(const struct shape *s, enum cpu_isa best) {
    struct data d = make_data(s);
    int32_t total = s->n_row;
    struct rows rows = make_rows(total);
    float *x = numbers((int64_t)total * s->hidden, 77, 1);
    for (int64_t i = 0; s->bf16 && i < (int64_t)total * s->hidden; i++) x[i] = bf16_round(x[i]);
    for (enum cpu_isa isa = CPU_ISA_AVX2; isa <= best; isa++) {
        struct world ref, fast, one;
        open_world(&ref, s, &d, CPU_ISA_REF, 2);
        open_world(&fast, s, &d, isa, 3);
        open_world(&one, s, &d, isa, 1);
        bool same = true;
        for (int i = 0; i < N_OP; i++) {
            size_t width;
            run_op(&ref, i, s, &rows, 0, total, x);
            run_op(&fast, i, s, &rows, 0, total, x);
            float *got = result_of(&fast, i, s, &width), *want = result_of(&ref, i, s, &width);
            compare(s, cpu_isa_name(isa), i, got, want, width * (size_t)total);
            same = same && pieces_agree(&one, i, s, &rows, x, &fast, got, width);
        }
        char name[160];
        snprintf(name, sizeof name, "%s %s: pieces and threads change no bit", cpu_isa_name(isa),
                 s->name);
        check_true(name, same);
        close_world(&ref);
        close_world(&fast);
        close_world(&one);
    }
    free_rows(&rows);
    free_data(s, &d);
    free(x);
}

int main(void) {
    static const struct shape shapes[] = {
        {"nano", 64, 8, 2, 32, 9, 8, 2, 64, 128, 192, 40, true, true, false, DT_F32},
        {"nano bf16", 64, 8, 2, 32, 9, 8, 2, 64, 128, 192, 130, true, true, true, DT_BF16},
        {"micro full", 256, 8, 2, 64, 0, 32, 4, 64, 128, 768, 300, true, false, true, DT_BF16},
        {"midi shapes", 512, 8, 1, 128, 513, 16, 6, 128, 256, 96, 600, true, true, true, DT_BF16},
        {"no shared expert, no sink", 48, 4, 4, 16, 65, 5, 3, 17, 0, 33, 129, false, true, false,
         DT_F32},
        {"odd sizes", 50, 2, 1, 8, 1, 3, 1, 15, 31, 16, 65, true, true, true, DT_BF16},
        {"one row", 32, 2, 2, 2, 0, 2, 2, 16, 16, 16, 1, false, false, false, DT_F32},
        {"window of a page", 64, 4, 2, 64, 64, 4, 2, 32, 32, 32, 257, true, true, true, DT_BF16},
    };
    enum cpu_isa best = cpu_isa_best();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) layer_case(&shapes[i], best);
    return n_failed != 0;
}
