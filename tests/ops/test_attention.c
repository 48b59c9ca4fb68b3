/* Projection, rotation, cache and attention against plain double-precision formulas: full and
 * windowed, with and without sink, over page borders, with shuffled pages. */
#include "check.h"
#include "ops/attention/attention.h"
#include "ops/cache.h"
#include "ops/norm_qkv/norm_qkv.h"

struct shape {
    int32_t n_head, n_kv, d, window, n_ctx, n_row;
    bool sink, rope, bf16;
};

struct fixture {
    struct device *device;
    struct op qkv, attention;
    struct step step;
    int32_t *slab, *pos, *seq;
    float *x, *inv_freq, *sink, *norms;
    struct seq_pages pages;
    int32_t hidden;
};

static float *device_floats(size_t n) {
    return calloc(n ? n : 1, sizeof(float));
}

static struct weight matrix(int64_t n_out, int64_t n_in, uint64_t seed) {
    float *p = random_floats((size_t)(n_out * n_in), seed);
    for (int64_t i = 0; i < n_out * n_in; i++) p[i] /= sqrtf((float)n_in) / 2;
    return (struct weight){DT_F32, p, n_out, n_in, (size_t)n_in * 4, 1.0f};
}

static void setup(struct fixture *f, const struct shape *s) {
    int32_t n = s->n_ctx, hidden = 48, pages = (n + PAGE_TOKENS - 1) / PAGE_TOKENS;
    *f = (struct fixture){.hidden = hidden};
    device_open_cpu(&f->device, 2, NULL);
    size_t slab_bytes = cache_slab_bytes(s->n_kv, s->d, s->bf16);
    struct op_cache cache = {calloc((size_t)pages * 2, slab_bytes), slab_bytes, 1, s->n_kv, s->d};
    f->slab = malloc((size_t)pages * 2 * sizeof *f->slab);
    for (int32_t i = 0; i < 2 * pages; i++) f->slab[i] = 2 * pages - 1 - i;
    f->pages = (struct seq_pages){f->slab, pages};
    f->x = random_floats((size_t)n * (size_t)hidden, 11);
    f->norms = random_floats((size_t)(hidden + 2 * s->d), 12);
    f->sink = random_floats((size_t)s->n_head, 13);
    f->inv_freq = device_floats((size_t)s->d / 2);
    for (int32_t i = 0; i < s->d / 2; i++)
        f->inv_freq[i] = 1.0f / (float)pow(10000.0, 2.0 * i / s->d);
    size_t rows = (size_t)n, heads = (size_t)s->n_head * (size_t)s->d;
    f->qkv = (struct op){.kind = OP_NORM_QKV, .hidden = hidden, .eps = 1e-6f};
    f->qkv.u.norm_qkv =
        (struct op_norm_qkv){.norm = f->norms,
                             .q = matrix(s->n_head * s->d, hidden, 1),
                             .k = matrix(s->n_kv * s->d, hidden, 2),
                             .v = matrix(s->n_kv * s->d, hidden, 3),
                             .q_norm = f->norms + hidden,
                             .k_norm = f->norms + hidden + s->d,
                             .inv_freq = s->rope ? f->inv_freq : NULL,
                             .n_head = s->n_head,
                             .cache = cache,
                             .a = device_floats(rows * (size_t)hidden),
                             .q_out = device_floats(rows * heads),
                             .kv = device_floats(rows * 2 * (size_t)s->n_kv * (size_t)s->d)};
    f->attention = (struct op){.kind = OP_ATTENTION};
    f->attention.u.attention = (struct op_attention){.sink = s->sink ? f->sink : NULL,
                                                     .n_head = s->n_head,
                                                     .window = s->window,
                                                     .scale = 1.0f / sqrtf((float)s->d),
                                                     .cache = cache,
                                                     .q = f->qkv.u.norm_qkv.q_out,
                                                     .o = device_floats(rows * heads)};
    f->pos = malloc(rows * sizeof *f->pos);
    f->seq = calloc(rows, sizeof *f->seq);
    for (int32_t i = 0; i < n; i++) f->pos[i] = i;
    f->step = (struct step){
        .n_row = n, .pos = f->pos, .seq_of = f->seq, .pages = &f->pages, .bf16 = s->bf16};
}

static void teardown(struct fixture *f) {
    struct op_norm_qkv *p = &f->qkv.u.norm_qkv;
    free(p->cache.pool);
    free((void *)(uintptr_t)p->q.data);
    free((void *)(uintptr_t)p->k.data);
    free((void *)(uintptr_t)p->v.data);
    free(p->a);
    free(p->q_out);
    free(p->kv);
    free(f->attention.u.attention.o);
    free(f->slab);
    free(f->pos);
    free(f->seq);
    free(f->x);
    free(f->inv_freq);
    free(f->sink);
    free(f->norms);
    device_close(f->device);
}

/* One head's vector at one position: projection, norm, rotation; in double. */
static void head_vector(const struct fixture *f, const struct shape *s, const struct weight *w,
                        const float *norm, int32_t h, int32_t pos, bool rotate, double *out) {
    const float *x = f->x + (size_t)pos * (size_t)f->hidden, *rows = w->data;
    double sum = 0, a[64], half = s->d / 2;
    for (int32_t i = 0; i < f->hidden; i++) sum += (double)x[i] * x[i];
    for (int32_t i = 0; i < f->hidden; i++)
        a[i] = f->norms[i] * x[i] / sqrt(sum / f->hidden + 1e-6);
    sum = 0;
    for (int32_t k = 0; k < s->d; k++) {
        out[k] = 0;
        for (int32_t i = 0; i < f->hidden; i++)
            out[k] += a[i] * rows[(size_t)(h * s->d + k) * (size_t)f->hidden + (size_t)i];
        sum += out[k] * out[k];
    }
    for (int32_t k = 0; norm && k < s->d; k++) out[k] *= norm[k] / sqrt(sum / s->d + 1e-6);
    for (int32_t k = 0; rotate && k < half; k++) {
        double angle = (double)((float)pos * f->inv_freq[k]), p = out[k], q = out[k + (int)half];
        out[k] = p * cos(angle) - q * sin(angle);
        out[k + (int)half] = q * cos(angle) + p * sin(angle);
    }
}

static void expect_row(const struct fixture *f, const struct shape *s, int32_t pos, double *want) {
    const struct op_norm_qkv *p = &f->qkv.u.norm_qkv;
    double q[128], k[128], v[128], *score = malloc((size_t)(pos + 1) * sizeof *score);
    for (int32_t h = 0; h < s->n_head; h++) {
        int32_t kv = h * s->n_kv / s->n_head, first = s->window ? pos - s->window + 1 : 0;
        double total = s->sink ? exp(f->sink[h]) : 0, *o = want + h * s->d;
        head_vector(f, s, &p->q, p->q_norm, h, pos, s->rope, q);
        memset(o, 0, (size_t)s->d * sizeof *o);
        for (int32_t j = first < 0 ? 0 : first; j <= pos; j++) {
            head_vector(f, s, &p->k, p->k_norm, kv, j, s->rope, k);
            head_vector(f, s, &p->v, NULL, kv, j, false, v);
            double dot = 0;
            for (int32_t i = 0; i < s->d; i++) dot += q[i] * k[i];
            score[j] = exp(dot / sqrt(s->d));
            total += score[j];
            for (int32_t i = 0; i < s->d; i++) o[i] += score[j] * v[i];
        }
        for (int32_t i = 0; i < s->d; i++) o[i] /= total;
    }
    free(score);
}

static void attention_case(const struct shape *s) {
    struct fixture f;
    setup(&f, s);
    size_t heads = (size_t)s->n_head * (size_t)s->d,
           bytes = (size_t)s->n_ctx * heads * sizeof(float);
    f.qkv.x = malloc((size_t)s->n_ctx * (size_t)f.hidden * sizeof(float));
    memcpy(f.qkv.x, f.x, (size_t)s->n_ctx * (size_t)f.hidden * sizeof(float));
    norm_qkv_ref(f.device, &f.qkv, &f.step, NULL);
    attention_ref(f.device, &f.attention, &f.step, NULL);
    float *o = f.attention.u.attention.o;
    double *want = malloc(heads * sizeof *want);
    char name[128];
    const int32_t rows[] = {0, s->n_ctx / 2, s->n_ctx - 1};
    for (int i = 0; i < 3; i++) {
        expect_row(&f, s, rows[i], want);
        snprintf(name, sizeof name,
                 "attention %d/%d x %d, window %d, sink %d, rope %d, bf16 %d, row %d of %d",
                 s->n_head, s->n_kv, s->d, s->window, s->sink, s->rope, s->bf16, rows[i], s->n_ctx);
        check_close(name, o + (size_t)rows[i] * heads, want, heads, s->bf16 ? 0.03 : 3e-6,
                    s->bf16 ? 0.03 : 1e-5);
    }
    /* The last rows once more, one at a time, over the cache that is there. */
    float *whole = malloc(bytes);
    memcpy(whole, o, bytes);
    bool same = true;
    for (int32_t r = s->n_ctx > 5 ? s->n_ctx - 5 : 0; r < s->n_ctx; r++) {
        f.step.n_row = 1;
        f.step.pos = f.pos + r;
        memcpy(f.qkv.x, f.x + (size_t)r * (size_t)f.hidden, (size_t)f.hidden * sizeof(float));
        norm_qkv_ref(f.device, &f.qkv, &f.step, NULL);
        attention_ref(f.device, &f.attention, &f.step, NULL);
        same = same && memcmp(o, whole + (size_t)r * heads, heads * sizeof *o) == 0;
    }
    snprintf(name, sizeof name, "attention window %d, context %d: decode has the bits of prefill",
             s->window, s->n_ctx);
    check_true(name, same);
    free(whole);
    free(want);
    free(f.qkv.x);
    teardown(&f);
}

int main(void) {
    static const struct shape shapes[] = {
        {8, 2, 32, 9, 40, 0, true, true, false},    {8, 2, 32, 0, 40, 0, true, false, false},
        {4, 1, 64, 33, 130, 0, true, true, false},  {4, 4, 16, 64, 129, 0, false, true, false},
        {4, 2, 16, 65, 129, 0, false, true, false}, {2, 1, 128, 63, 128, 0, true, true, false},
        {2, 1, 8, 1, 65, 0, true, true, false},     {2, 2, 2, 0, 1, 0, false, false, false},
        {8, 2, 64, 129, 200, 0, true, true, true},  {8, 2, 64, 0, 200, 0, true, false, true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) attention_case(&shapes[i]);
    return n_failed != 0;
}
