/* Planning memory before any is taken. In come a model's dimensions and the options, out come the
 * sizes of everything; nothing is allocated here. */
#include "cli/memory.h"

#include <math.h>
#include <string.h>

#include "base/machine.h"
#include "base/option_table.h"
#include "base/pages.h"
#include "base/size.h"
#include "model/runner.h"

/* A pool is no larger than this unless one sequence needs it or the options say so: what a
 * workstation can spare without being asked. */
static const int64_t default_pool = (int64_t)1 << 30;

static int64_t count(const struct options *o, const char *name, int64_t fallback) {
    return opt_given(o, name) ? opt_int(o, name) : fallback;
}

/* Sequences, rows per step and the wanted length. */
static sumi_status wishes(struct memory_plan *p, const struct options *o, const struct model *m,
                          sumi_error *err) {
    int64_t len = opt_int(o, "max-model-len");
    if (opt_given(o, "max-model-len") && len > m->max_position)
        return fail_param(err, SUMI_ERR_ARG, "max-model-len",
                          "--max-model-len %lld is more than the %d positions of the model",
                          (long long)len, m->max_position);
    p->max_model_len = len > 0 ? (int32_t)len : m->max_position;
    unsigned verb = options_verb(o)->bit;
    bool serve = verb & (VERB_SERVE | VERB_PLAN);
    int64_t factor = strcmp(opt_string(o, "performance-mode"), "throughput") == 0 ? 2 : 1;
    int64_t seqs = count(o, "max-num-seqs", serve ? 256 * factor : 1);
    int64_t rows = count(o, "max-num-batched-tokens", serve ? 2048 * factor : 512);
    if (verb == VERB_SERVE) {
        seqs = min_i64(seqs, count(o, "max-num-active-seqs", seqs));
        rows = min_i64(rows, count(o, "max-num-scheduled-tokens", rows));
    }
    if (seqs > 65536 || rows > 1 << 20)
        return fail_param(err, SUMI_ERR_ARG,
                          seqs > 65536 ? "max-num-seqs" : "max-num-batched-tokens",
                          "at most 65536 sequences and 1048576 tokens a step are possible, found "
                          "%lld and %lld",
                          (long long)seqs, (long long)rows);
    if (opt_given(o, "max-num-batched-tokens") && rows < seqs && opt_given(o, "max-num-seqs"))
        return fail_param(err, SUMI_ERR_ARG, "max-num-batched-tokens",
                          "--max-num-batched-tokens %lld is less than --max-num-seqs %lld; each "
                          "running sequence needs a token of a step",
                          (long long)rows, (long long)seqs);
    p->max_num_seqs = (int32_t)(opt_given(o, "max-num-seqs") ? seqs : min_i64(seqs, rows));
    p->max_rows = (int32_t)max_i64(rows, p->max_num_seqs);
    int64_t all = (int64_t)p->max_num_seqs * p->max_model_len;
    if (p->max_rows > all) p->max_rows = (int32_t)all;
    return SUMI_OK;
}

/* Longest sequence that n_slab slabs hold. */
static int32_t longest(const struct model *m, int64_t n_slab, int32_t chunk, int32_t limit) {
    int32_t lo = 0, hi = limit;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo + 1) / 2;
        if (runner_sequence_slabs(m, mid, min_i64(mid, chunk)) <= n_slab) lo = mid;
        else hi = mid - 1;
    }
    return lo;
}

/* Slabs that memory allows; INT32_MAX when nothing is known about it. */
static int64_t allowed_slabs(const struct memory_plan *p, const struct options *o) {
    if (opt_given(o, "kv-cache-memory-bytes"))
        return opt_int(o, "kv-cache-memory-bytes") / (int64_t)p->slab_bytes;
    if (p->available < 0) return INT32_MAX;
    double share = opt_double(o, "gpu-memory-utilization");
    double left =
        floor((double)p->available * share) - (double)(p->weights + p->scratch + p->logits);
    return left < 0 ? 0 : (int64_t)(left / (double)p->slab_bytes);
}

static sumi_status fit(struct memory_plan *p, const struct options *o, const struct model *m,
                       sumi_error *err) {
    int64_t allowed = min_i64(allowed_slabs(p, o), INT32_MAX);
    bool given_len = opt_given(o, "max-model-len") && opt_int(o, "max-model-len") > 0;
    bool given_pool = opt_given(o, "kv-cache-memory-bytes");
    p->slabs_per_sequence =
        runner_sequence_slabs(m, p->max_model_len, min_i64(p->max_model_len, p->max_rows));
    if (allowed < p->slabs_per_sequence) {
        int32_t len = longest(m, allowed, p->max_rows, p->max_model_len);
        if (given_len || len < 1)
            return fail_param(err, SUMI_ERR_LIMIT, "max-model-len",
                              "a sequence of %d tokens needs %.2f GiB of keys and values, and %.2f "
                              "GiB can be had; the longest that fits has %d tokens "
                              "(--max-model-len), or give more with --kv-cache-memory-bytes",
                              p->max_model_len,
                              (double)p->slabs_per_sequence * (double)p->slab_bytes / 0x1p30,
                              (double)allowed * (double)p->slab_bytes / 0x1p30, len);
        p->shortened = true;
        p->max_model_len = len;
        p->slabs_per_sequence = runner_sequence_slabs(m, len, min_i64(len, p->max_rows));
    }
    int64_t wanted = p->slabs_per_sequence * p->max_num_seqs;
    int64_t spare = max_i64(default_pool / (int64_t)p->slab_bytes, p->slabs_per_sequence);
    int64_t n = given_pool ? allowed : min_i64(min_i64(wanted, spare), allowed);
    p->n_slab = (int32_t)min_i64(n, INT32_MAX);
    return SUMI_OK;
}

sumi_status memory_plan(struct memory_plan *p, const struct options *o, const struct model *m,
                        int64_t weights, bool half, sumi_error *err) {
    *p = (struct memory_plan){.weights = weights, .available = machine_memory_available()};
    TRY(wishes(p, o, m, err));
    p->slab_bytes = runner_slab_bytes(m, half);
    p->scratch = (int64_t)runner_scratch_bytes(m, p->max_rows);
    p->logits = (int64_t)p->max_num_seqs * m->vocab * (int64_t)sizeof(float);
    TRY(fit(p, o, m, err));
    p->pool = (int64_t)p->n_slab * (int64_t)p->slab_bytes;
    p->total = p->weights + p->scratch + p->logits + p->pool;
    return SUMI_OK;
}

static void line(struct buf *out, const char *what, int64_t bytes) {
    if (bytes >= (int64_t)1 << 30) buf_printf(out, "%-24s %8.2f GiB", what, (double)bytes / 0x1p30);
    else buf_printf(out, "%-24s %8.2f MiB", what, (double)bytes / 0x1p20);
}

void memory_describe(const struct memory_plan *p, const struct model *m, struct buf *out) {
    int32_t full = 0;
    for (int32_t l = 0; l < m->n_layer; l++) full += m->layer[l].attn.window == 0;
    line(out, "weights", p->weights);
    buf_putc(out, '\n');
    line(out, "work space", p->scratch + p->logits);
    buf_printf(out, "  (steps of %d tokens, %d sequences)\n", p->max_rows, p->max_num_seqs);
    line(out, "keys and values", p->pool);
    buf_printf(out, "  (%d slabs of %zu bytes; %d layers keep everything, %d a window)\n",
               p->n_slab, p->slab_bytes, full, m->n_layer - full);
    line(out, "total", p->total);
    buf_putc(out, '\n');
    if (p->available >= 0) {
        line(out, "available", p->available);
        buf_putc(out, '\n');
    }
    buf_printf(out, "%-24s %8d tokens%s\n", "context", p->max_model_len,
               p->shortened ? "  (shortened: the model's own length does not fit)" : "");
    line(out, "one such sequence", p->slabs_per_sequence * (int64_t)p->slab_bytes);
    buf_printf(out, "  (%.1f of them fit at once)\n",
               (double)p->n_slab / (double)p->slabs_per_sequence);
    buf_printf(out, "%-24s %8.0f bytes\n", "a token in full layers",
               (double)full * (double)p->slab_bytes / PAGE_TOKENS);
}
