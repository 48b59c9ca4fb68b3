/* bench_engine MODEL [--isa LEVEL] [--threads N] [--context 0,1024,...] [--prefill N] [--steps N]
 *              [--busy]   one thread by processor time, where other programs run too
 *
 * Prefill and decode by context depth, one CSV row each. A row's bandwidth is the best of three
 * read loops that run between the steps being judged, its peaks come from loops in registers just
 * before. Bytes of a step: weights that it reads (chosen experts only) and cached keys and values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "machine.h"
#include "model/load.h"
#include "model/runner.h"
#include "ops/op.h"

struct bench {
    struct loaded loaded;
    struct device *device;
    struct runner *runner;
    struct machine machine;
    int32_t *table, *token, *pos, *seq, stride, chunk;
    float *logits;
    char name[256];
    const char *isa;
    double peak_f32, peak_bf16;
};

struct options {
    const char *model, *isa, *context;
    int threads, prefill, steps;
};

static double weight_bytes(const struct weight *w) {
    return (double)w->n_out * (double)w->row_bytes;
}

static double mlp_bytes(const struct mlp *m) {
    return weight_bytes(&m->gate) + weight_bytes(&m->up) + weight_bytes(&m->down);
}

static double mlp_size(const struct mlp *m) {
    return 3.0 * (double)m->gate.n_out * (double)m->gate.n_in;
}

/* Bytes that one token's step reads, and its multiply-adds without attention and head. */
static double step_bytes(const struct model *m, int32_t context, double *products) {
    double bytes = weight_bytes(&m->head);
    *products = 0;
    for (int32_t i = 0; i < m->n_layer; i++) {
        const struct layer *l = &m->layer[i];
        const struct weight *w[] = {&l->attn.q, &l->attn.k, &l->attn.v, &l->attn.o};
        int64_t seen = l->attn.window ? min_i64(context, l->attn.window) : context;
        for (int k = 0; k < 4; k++) {
            bytes += weight_bytes(w[k]);
            *products += (double)w[k]->n_out * (double)w[k]->n_in;
        }
        bytes += (double)seen * m->n_kv * m->head_dim * 4;
        if (!l->is_moe) {
            bytes += mlp_bytes(&l->dense);
            *products += mlp_size(&l->dense);
            continue;
        }
        bytes += weight_bytes(&l->moe.router) + m->top_k * mlp_bytes(&l->moe.expert[0]);
        *products += (double)l->moe.router.n_out * (double)l->moe.router.n_in +
                     m->top_k * mlp_size(&l->moe.expert[0]);
        if (!l->moe.shared.gate.n_out) continue;
        bytes += mlp_bytes(&l->moe.shared);
        *products += mlp_size(&l->moe.shared);
    }
    return bytes;
}

static sumi_status step(struct bench *b, int32_t from, int32_t n, sumi_error *err) {
    uint32_t state = (uint32_t)from * 2654435761u + 12345;
    for (int32_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        b->token[i] = (int32_t)((state >> 8) % 400);
        b->pos[i] = from + i;
    }
    struct seq_pages pages = {b->table, b->stride};
    int32_t last = n - 1;
    struct batch batch = {.n_row = n,
                          .token = b->token,
                          .pos = b->pos,
                          .seq_of = b->seq,
                          .n_seq = 1,
                          .seq = &pages,
                          .n_logit = 1,
                          .logit_row = &last};
    return runner_step(b->runner, &batch, b->logits, err);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const struct bench *b, const struct options *o, const char *phase, int32_t context,
                int32_t n, double best, double median, double bytes, double products) {
    double read = b->machine.best_read;
    const char *slash = strrchr(o->model, '/');
    printf("%s,%s,%s,%d,%d,%.3f,%.3f,%.1f,%.2f,%.2f,%.3f,%.1f,%.1f,%.1f,%.3f,\"%s\"\n",
           slash ? slash + 1 : o->model, b->isa, phase, context, n, best * 1e3, median * 1e3,
           n / best, bytes / best / 1e9, read / 1e9, bytes / best / read,
           2 * products * n / best / 1e9, b->peak_f32 / 1e9, b->peak_bf16 / 1e9,
           b->peak_bf16 > 0 ? 2 * products * n / best / b->peak_bf16 : 0, b->name);
    fflush(stdout);
}

static sumi_status decode_at(struct bench *b, const struct options *o, int32_t context,
                             sumi_error *err) {
    double *t = mem_zero((size_t)o->steps, sizeof *t), products;
    double bytes = step_bytes(b->loaded.model, context + o->steps / 2, &products);
    if (!t) return NO_MEMORY(err, o->steps);
    sumi_status status = SUMI_OK;
    b->machine.best_read = 0;
    for (int i = 0; i < o->steps && status == SUMI_OK; i++) {
        if (i % 16 == 0) machine_read(&b->machine);
        double start = seconds();
        status = step(b, context + i, 1, err);
        t[i] = seconds() - start;
    }
    qsort(t, (size_t)o->steps, sizeof *t, by_value);
    if (status == SUMI_OK)
        row(b, o, "decode", context, 1, t[o->steps / 10], t[o->steps / 2], bytes, products);
    mem_free(t);
    return status;
}

/* Fills the cache up to `context`, then times o->prefill rows from there. */
static sumi_status prefill_at(struct bench *b, const struct options *o, int32_t from,
                              int32_t context, sumi_error *err) {
    for (; from < context; from += b->chunk)
        TRY(step(b, from, (int32_t)min_i64(b->chunk, context - from), err));
    double t[5], products, bytes = step_bytes(b->loaded.model, context, &products);
    for (int i = 0; i < 5; i++) {
        machine_read(&b->machine);
        double start = seconds();
        TRY(step(b, context, o->prefill, err));
        t[i] = seconds() - start;
    }
    qsort(t, 5, sizeof *t, by_value);
    row(b, o, "prefill", context, o->prefill, t[0], t[2], bytes, products);
    return SUMI_OK;
}

static sumi_status open_bench(struct bench *b, const struct options *o, sumi_error *err) {
    struct load_options load = {.path = o->model, .generation_config = "auto"};
    enum cpu_isa isa;
    TRY(cpu_isa_parse(o->isa, &isa, err));
    TRY(model_load(&b->loaded, &load, err));
    TRY(device_open_cpu(&b->device, o->threads, err));
    TRY(ops_bind_cpu_isa(b->device, isa, err));
    TRY(cpu_isa_choose(isa, &isa, err));
    b->isa = cpu_isa_name(isa);
    int32_t most = 0;
    for (const char *p = o->context; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        most = (int32_t)max_i64(most, atoi(p));
    b->chunk = (int32_t)max_i64(o->prefill, 512);
    b->stride = (most + b->chunk + o->steps) / PAGE_TOKENS + 1;
    struct runner_options ro = {
        .bf16 = true, .max_rows = b->chunk, .n_slab = b->stride * b->loaded.model->n_layer};
    double start = seconds();
    TRY(runner_open(&b->runner, b->loaded.model, b->device, &ro, err));
    fprintf(stderr, "weights prepared in %.2f s\n", seconds() - start);
    size_t rows = (size_t)b->chunk;
    b->table = mem_zero((size_t)ro.n_slab, sizeof *b->table);
    b->token = mem_zero(rows, sizeof *b->token);
    b->pos = mem_zero(rows, sizeof *b->pos);
    b->seq = mem_zero(rows, sizeof *b->seq);
    b->logits = mem_zero((size_t)b->loaded.model->vocab, sizeof *b->logits);
    if (!b->table || !b->token || !b->pos || !b->seq || !b->logits) return NO_MEMORY(err, rows);
    for (int32_t i = 0; i < ro.n_slab; i++) b->table[i] = (int32_t)((int64_t)i * 7919 % ro.n_slab);
    TRY(machine_open(&b->machine, b->device->pool, (size_t)512 << 20, err));
    machine_name(&b->machine, b->name, sizeof b->name);
    b->peak_f32 = machine_peak_f32(&b->machine);
    b->peak_bf16 = machine_peak_bf16(&b->machine);
    return SUMI_OK;
}

static sumi_status run(struct bench *b, const struct options *o, sumi_error *err) {
    TRY(open_bench(b, o, err));
    printf("model,isa,phase,context,rows,ms,median_ms,tokens_per_s,gb_per_s,read_gb_per_s,"
           "share_of_read,gflop_per_s,peak_f32_gflop,peak_bf16_gflop,share_of_bf16_peak,machine\n");
    int32_t from = 0;
    for (const char *p = o->context; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        int32_t context = atoi(p);
        TRY(prefill_at(b, o, from, context, err));
        TRY(decode_at(b, o, context, err));
        from = context;
    }
    return SUMI_OK;
}

int main(int argc, char **argv) {
    struct options o = {.isa = "auto", .context = "0,1024", .prefill = 512, .steps = 64};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-') {
            o.model = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--isa") == 0) o.isa = value;
        else if (strcmp(argv[i], "--threads") == 0) o.threads = atoi(value);
        else if (strcmp(argv[i], "--busy") == 0) o.threads = 1, seconds_of_processor(), i--;
        else if (strcmp(argv[i], "--context") == 0) o.context = value;
        else if (strcmp(argv[i], "--prefill") == 0) o.prefill = atoi(value);
        else if (strcmp(argv[i], "--steps") == 0) o.steps = atoi(value);
        else o.model = NULL, i = argc;
        i++;
    }
    if (!o.model || o.prefill < 1 || o.steps < 1) {
        fprintf(stderr, "usage: bench_engine MODEL [--isa LEVEL] [--threads N] [--context A,B,...] "
                        "[--prefill N] [--steps N] [--busy]\n");
        return 2;
    }
    struct bench b = {0};
    sumi_error err = {0};
    sumi_status status = run(&b, &o, &err);
    if (status != SUMI_OK) fprintf(stderr, "%s\n", err.msg);
    machine_reset(&b.machine);
    runner_close(b.runner);
    device_close(b.device);
    loaded_reset(&b.loaded);
    mem_free(b.table);
    mem_free(b.token);
    mem_free(b.pos);
    mem_free(b.seq);
    mem_free(b.logits);
    return status != SUMI_OK;
}
