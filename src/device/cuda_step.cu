/* Steps: their rows go to the device, operations become launches, launches of small steps become
 * graphs. Host arrays flow in, logits flow out. Knows no kernel. */
#include <string.h>

#include "device/cuda.cuh"

extern "C" {
#include "base/mem.h"
}

#include "ops/moe/moe.cuh"

enum { META_INTS = 8, BLOCK_RUN = 4 /* shorter runs of rows are decoded row by row */ };

static int bucket_of(int rows) {
    int b = 0;
    while (1 << b < rows) b++;
    return b;
}

/* Rows for which grids are made: kernels of small steps know powers of two only. */
static int padded_rows(int rows) {
    return rows <= SMALL_ROWS ? 1 << bucket_of(rows) : rows;
}

void cu_drop_graphs(struct cu_device *d) {
    for (int i = 0; i < N_BUCKET; i++)
        for (int j = 0; j <= N_BUCKET; j++) {
            if (d->graph[i][j]) cudaGraphExecDestroy(d->graph[i][j]);
            d->graph[i][j] = NULL;
            d->warm[i][j] = 0;
        }
}

/* ---- memory that grows; graphs hold its addresses, so they go ---- */

static sumi_status grow_dev(struct cu_device *d, void **p, size_t *cap, size_t want, size_t size,
                            sumi_error *err) {
    if (want <= *cap) return SUMI_OK;
    cu_drop_graphs(d);
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    cudaFree(*p);
    *p = NULL;
    *cap = 0;
    CUDA_TRY(cudaMalloc(p, want * size));
    *cap = want;
    return SUMI_OK;
}

static sumi_status grow_block(struct cu_device *d, struct step_block *b, int rows,
                              sumi_error *err) {
    if (rows <= b->cap) return SUMI_OK;
    size_t ints = META_INTS + (size_t)STEP_ARRAYS * (size_t)rows;
    cu_drop_graphs(d);
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    cudaFreeHost(b->host);
    cudaFree(b->dev);
    b->host = b->dev = NULL;
    b->cap = 0;
    CUDA_TRY(cudaMallocHost((void **)&b->host, ints * sizeof(int32_t)));
    CUDA_TRY(cudaMalloc((void **)&b->dev, ints * sizeof(int32_t)));
    memset(b->host, 0, ints * sizeof(int32_t));
    b->cap = rows;
    const int32_t *at = b->dev + META_INTS;
    b->step.meta = (const struct cu_meta *)b->dev;
    b->step.token = at;
    b->step.pos = at + rows;
    b->step.seq_of = at + 2 * (size_t)rows;
    b->step.logit_row = at + 3 * (size_t)rows;
    b->step.dec_row = at + 4 * (size_t)rows;
    b->step.pre_row = at + 5 * (size_t)rows;
    b->step.pre_n = at + 6 * (size_t)rows;
    return SUMI_OK;
}

/* ---- page tables: the device's copy is brought up to date sequence by sequence ---- */

static int pages_of(const struct step *s, int seq) {
    int n = 0;
    for (int r = 0; r < s->n_row; r++)
        if (s->seq_of[r] == seq && s->pos[r] / PAGE_TOKENS >= n) n = s->pos[r] / PAGE_TOKENS + 1;
    return n;
}

static sumi_status grow_table(struct cu_device *d, int n_seq, int stride, sumi_error *err) {
    size_t want = (size_t)n_seq * (size_t)d->n_layer * (size_t)stride;
    if (want <= d->table_cap) return SUMI_OK;
    cudaFreeHost(d->table_host);
    d->table_host = NULL;
    TRY(grow_dev(d, (void **)&d->table_dev, &d->table_cap, want * 2, sizeof(int32_t), err));
    CUDA_TRY(cudaMallocHost((void **)&d->table_host, d->table_cap * sizeof(int32_t)));
    memset(d->table_host, 0xFF, d->table_cap * sizeof(int32_t));
    CUDA_TRY(cudaMemset(d->table_dev, 0xFF, d->table_cap * sizeof(int32_t)));
    return SUMI_OK;
}

static sumi_status upload_sequence(struct cu_device *d, const struct seq_pages *p, int seq,
                                   int n_page, sumi_error *err) {
    size_t base = (size_t)seq * (size_t)d->n_layer * (size_t)d->stride, lo = SIZE_MAX, hi = 0;
    for (int l = 0; l < d->n_layer; l++) {
        int32_t *have = d->table_host + base + (size_t)l * (size_t)d->stride;
        const int32_t *want = p->slab + (size_t)l * (size_t)p->stride;
        if (memcmp(have, want, (size_t)n_page * sizeof *have) == 0) continue;
        memcpy(have, want, (size_t)n_page * sizeof *have);
        if (lo == SIZE_MAX) lo = base + (size_t)l * (size_t)d->stride;
        hi = base + (size_t)l * (size_t)d->stride + (size_t)n_page;
    }
    if (lo < hi)
        CUDA_TRY(cudaMemcpyAsync(d->table_dev + lo, d->table_host + lo, (hi - lo) * sizeof(int32_t),
                                 cudaMemcpyHostToDevice, d->stream));
    return SUMI_OK;
}

static sumi_status upload_pages(struct cu_device *d, const struct step *s, sumi_error *err) {
    int n_seq = 0, most = 1;
    if (!s->pages || !s->seq_of || !s->pos) return SUMI_OK;
    for (int r = 0; r < s->n_row; r++) {
        if (s->seq_of[r] >= n_seq) n_seq = s->seq_of[r] + 1;
        if (s->pos[r] / PAGE_TOKENS >= most) most = s->pos[r] / PAGE_TOKENS + 1;
    }
    if (most > d->stride) d->stride = (most + 63) / 64 * 64;
    TRY(grow_table(d, n_seq, d->stride, err));
    for (int i = 0; i < n_seq; i++) TRY(upload_sequence(d, &s->pages[i], i, pages_of(s, i), err));
    return SUMI_OK;
}

/* ---- rows ---- */

/* Which rows' attention is split over the context, and which go in blocks. */
static void cut_rows(const struct cu_device *d, const struct step *s, struct step_block *b,
                     struct cu_meta *m) {
    int32_t *dec = b->host + META_INTS + 4 * (size_t)b->cap, *row = dec + b->cap, *n = row + b->cap;
    for (int r = 0, end; r < s->n_row; r = end) {
        for (end = r + 1; end < s->n_row && s->n_row > SMALL_ROWS; end++)
            if (s->seq_of[end] != s->seq_of[r] || s->pos[end] != s->pos[end - 1] + 1) break;
        if (end - r <= BLOCK_RUN) {
            for (int i = r; i < end; i++) dec[m->n_dec++] = i;
            continue;
        }
        int per = 64 / d->group;
        for (int i = r; i < end; i += per) {
            row[m->n_pre] = i;
            n[m->n_pre++] = end - i < per ? end - i : per;
        }
    }
}

static sumi_status check_rows(const struct cu_device *d, const struct step *s, sumi_error *err) {
    if (!s->bf16)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "float32 mode is for checks on the CPU, the CUDA device computes in bf16: "
                         "use --device cpu");
    for (int r = 0; s->token && r < s->n_row; r++)
        if (s->token[r] < 0 || (d->vocab && s->token[r] >= d->vocab))
            return fail_with(err, SUMI_ERR_ARG, "token id %d is outside the vocabulary of %d",
                             s->token[r], d->vocab);
    size_t slots = (size_t)d->n_moe * (size_t)s->n_row * (size_t)d->top_k;
    for (size_t i = 0; s->route && i < slots; i++)
        if (s->route[i] < 0 || s->route[i] >= d->n_expert)
            return fail_with(err, SUMI_ERR_ARG, "expert %d was given for a layer of %d experts",
                             s->route[i], d->n_expert);
    return SUMI_OK;
}

static void copy_ints(struct step_block *b, int array, const int32_t *from, int n) {
    if (from)
        memcpy(b->host + META_INTS + (size_t)array * (size_t)b->cap, from,
               (size_t)n * sizeof *from);
}

/* Fills what a launch must know, and the device's copy of the rows. */
static sumi_status begin_step(struct cu_device *d, const struct step *s, struct cu_launch *l,
                              sumi_error *err) {
    struct step_block *b = s->n_row <= SMALL_ROWS ? &d->small : &d->large;
    TRY(check_rows(d, s, err));
    TRY(grow_block(d, b, s->n_row <= SMALL_ROWS ? SMALL_ROWS : s->n_row, err));
    TRY(upload_pages(d, s, err));
    copy_ints(b, 0, s->token, s->n_row);
    copy_ints(b, 1, s->pos, s->n_row);
    copy_ints(b, 2, s->seq_of, s->n_row);
    copy_ints(b, 3, s->logit_row, s->n_logit);
    struct cu_meta m = {s->n_row, s->n_logit, 0, 0, d->stride};
    if (s->seq_of && s->pos) cut_rows(d, s, b, &m);
    memcpy(b->host, &m, sizeof m);
    size_t ints = META_INTS + (size_t)STEP_ARRAYS * (size_t)b->cap;
    CUDA_TRY(cudaMemcpyAsync(b->dev, b->host, ints * sizeof(int32_t), cudaMemcpyHostToDevice,
                             d->stream));
    size_t logits = (size_t)padded_rows(s->n_logit) * (size_t)d->vocab;
    if (s->n_logit && logits > d->logits_cap) {
        cudaFreeHost(d->logits_host);
        d->logits_host = NULL;
        TRY(grow_dev(d, (void **)&d->logits_dev, &d->logits_cap, logits, sizeof(float), err));
        CUDA_TRY(cudaMallocHost((void **)&d->logits_host, logits * sizeof(float)));
    }
    if (d->n_moe && s->n_row > SMALL_ROWS)
        TRY(grow_dev(d, (void **)&d->blocks, &d->blocks_cap,
                     1 + 3 * (size_t)group_blocks((int64_t)s->n_row * d->top_k, d->n_expert),
                     sizeof(int32_t), err));
    *l = {};
    l->stream = d->stream;
    l->step = b->step;
    l->step.table = d->table_dev;
    l->step.n_layer = d->n_layer;
    l->rows = padded_rows(s->n_row);
    l->n_dec = s->n_row <= SMALL_ROWS ? l->rows : m.n_dec;
    l->n_pre = m.n_pre;
    l->n_logit = s->n_logit ? padded_rows(s->n_logit) : 0;
    l->pdl = d->options.pdl;
    l->logits = d->logits_dev;
    l->partial = d->partial;
    l->counter = d->counter;
    l->blocks = d->blocks;
    return SUMI_OK;
}

static sumi_status enqueue(struct cu_device *d, struct cu_launch *l, int from, int to,
                           sumi_error *err) {
    static cu_op_fn *const fn[OP_COUNT] = {cu_embed,     cu_norm_qkv, cu_attention, cu_attn_out,
                                           cu_dense_ffn, cu_moe,      cu_head};
    for (int i = from; i < to; i++) fn[d->list[i].kind](l, &d->list[i], &d->plan[i]);
    if (l->error != cudaSuccess) return cu_fail(l->error, l->failed, err);
    return SUMI_OK;
}

static sumi_status fetch_logits(struct cu_device *d, const struct step *s, sumi_error *err) {
    size_t bytes = (size_t)s->n_logit * (size_t)d->vocab * sizeof(float);
    if (s->n_logit)
        CUDA_TRY(cudaMemcpyAsync(d->logits_host, d->logits_dev, bytes, cudaMemcpyDeviceToHost,
                                 d->stream));
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    if (s->n_logit) memcpy(s->logits, d->logits_host, bytes);
    return SUMI_OK;
}

/* ---- whole lists ---- */

static sumi_status capture(struct cu_device *d, struct cu_launch *l, cudaGraphExec_t *out,
                           sumi_error *err) {
    cudaGraph_t graph = NULL;
    CUDA_TRY(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal));
    sumi_status status = enqueue(d, l, 0, d->n, err);
    cudaError_t e = cudaStreamEndCapture(d->stream, &graph);
    if (status == SUMI_OK && e != cudaSuccess) status = cu_fail(e, "cudaStreamEndCapture", err);
    if (status == SUMI_OK) {
        e = cudaGraphInstantiate(out, graph, 0);
        if (e != cudaSuccess) status = cu_fail(e, "cudaGraphInstantiate", err);
    }
    if (graph) cudaGraphDestroy(graph);
    return status;
}

/* Small steps: the first of its kind runs plainly, so that everything is loaded; the second is
 * captured; from then on it is replayed. */
static sumi_status run_kernels(struct cu_device *d, struct cu_launch *l, sumi_error *err) {
    d->stats.replayed = false;
    if (!d->options.graphs || l->rows > SMALL_ROWS) {
        TRY(enqueue(d, l, 0, d->n, err));
        d->stats.n_kernel = l->n_kernel;
        return SUMI_OK;
    }
    int r = bucket_of(l->rows), n = l->n_logit ? 1 + bucket_of(l->n_logit) : 0;
    if (!d->warm[r][n]) {
        TRY(enqueue(d, l, 0, d->n, err));
        d->warm[r][n] = 1;
        d->stats.n_kernel = l->n_kernel;
        return SUMI_OK;
    }
    if (!d->graph[r][n]) {
        TRY(capture(d, l, &d->graph[r][n], err));
        d->kernels[r][n] = l->n_kernel;
    }
    CUDA_TRY(cudaGraphLaunch(d->graph[r][n], d->stream));
    d->stats.n_kernel = d->kernels[r][n];
    d->stats.replayed = true;
    return SUMI_OK;
}

static sumi_status usable(const struct cu_device *d, sumi_error *err) {
    if (!d->broken) return SUMI_OK;
    return fail_with(err, SUMI_ERR_DEVICE,
                     "the GPU failed earlier and cannot be used any more: restart the program");
}

static sumi_status run_list(struct cu_device *d, const struct op *list, int n, const struct step *s,
                            sumi_error *err) {
    struct cu_launch l;
    TRY(usable(d, err));
    if (list != d->list || n != d->n)
        return fail_with(err, SUMI_ERR_STATE, "this list of operations was not prepared");
    CUDA_TRY(cudaSetDevice(d->index));
    TRY(begin_step(d, s, &l, err));
    if (d->options.timed) CUDA_TRY(cudaEventRecord(d->begin, d->stream));
    TRY(run_kernels(d, &l, err));
    if (d->options.timed) CUDA_TRY(cudaEventRecord(d->end, d->stream));
    TRY(fetch_logits(d, s, err));
    if (d->options.timed) CUDA_TRY(cudaEventElapsedTime(&d->stats.forward_ms, d->begin, d->end));
    return SUMI_OK;
}

/* A device error is sticky: CUDA answers nothing but it from then on. */
static sumi_status note(struct cu_device *d, sumi_status status) {
    if (status == SUMI_ERR_DEVICE) d->broken = true;
    return status;
}

sumi_status cu_run_list(struct device *base, const struct op *list, int n, const struct step *s,
                        sumi_error *err) {
    struct cu_device *d = cu_of(base);
    return note(d, run_list(d, list, n, s, err));
}

/* ---- one operation, with what checks want from it ---- */

/* Device bf16 rows into host f32. */
static sumi_status fetch_rows(struct cu_device *d, const float *from, size_t n, float *to,
                              sumi_error *err) {
    if (!to) return SUMI_OK;
    bf16 *rows = (bf16 *)mem_alloc(n * sizeof *rows);
    if (!rows) return NO_MEMORY(err, n * sizeof *rows);
    cudaError_t e = cudaStreamSynchronize(d->stream);
    if (e == cudaSuccess) e = cudaMemcpy(rows, from, n * sizeof *rows, cudaMemcpyDeviceToHost);
    for (size_t i = 0; e == cudaSuccess && i < n; i++) to[i] = bf16_to_f32(rows[i]);
    mem_free(rows);
    return e == cudaSuccess ? SUMI_OK : cu_fail(e, "cudaMemcpy", err);
}

static float *tap_at(float *tap, size_t i, size_t n) {
    return tap ? tap + i * n : NULL;
}

static sumi_status fetch_taps(struct cu_device *d, const struct op *op, const struct step *s,
                              sumi_error *err) {
    size_t n = (size_t)s->n_row * (size_t)op->hidden, layer = (size_t)op->layer;
    if (op->kind == OP_EMBED) return fetch_rows(d, op->x, n, s->tap_hidden, err);
    if (op->kind == OP_ATTN_OUT)
        return fetch_rows(d, op->u.attn_out.y, n, tap_at(s->tap_attn, layer, n), err);
    if (op->kind != OP_DENSE_FFN && op->kind != OP_MOE) return SUMI_OK;
    TRY(fetch_rows(d, op->x, n, tap_at(s->tap_hidden, layer + 1, n), err));
    const float *y = op->kind == OP_MOE ? op->u.moe.y : op->u.dense_ffn.y;
    TRY(fetch_rows(d, y, n, tap_at(s->tap_mlp, layer, n), err));
    if (op->kind != OP_MOE) return SUMI_OK;
    const auto &p = op->u.moe;
    size_t slots = (size_t)s->n_row * (size_t)p.top_k, at = (size_t)p.moe_index * slots;
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    if (s->tap_ids)
        CUDA_TRY(cudaMemcpy(s->tap_ids + at, p.ids, slots * sizeof *p.ids, cudaMemcpyDeviceToHost));
    if (s->tap_weights)
        CUDA_TRY(cudaMemcpy(s->tap_weights + at, p.weights, slots * sizeof *p.weights,
                            cudaMemcpyDeviceToHost));
    return SUMI_OK;
}

static sumi_status inject_layer(struct cu_device *d, const struct op *op, const struct step *s,
                                sumi_error *err) {
    size_t n = (size_t)s->n_row * (size_t)op->hidden;
    if (op->kind != OP_NORM_QKV || !s->layer_input) return SUMI_OK;
    bf16 *rows = (bf16 *)mem_alloc(n * sizeof *rows);
    if (!rows) return NO_MEMORY(err, n * sizeof *rows);
    const float *from = s->layer_input + (size_t)op->layer * n;
    for (size_t i = 0; i < n; i++) rows[i] = bf16_from_f32(from[i]);
    cudaError_t e = cudaStreamSynchronize(d->stream);
    if (e == cudaSuccess) e = cudaMemcpy(op->x, rows, n * sizeof *rows, cudaMemcpyHostToDevice);
    mem_free(rows);
    return e == cudaSuccess ? SUMI_OK : cu_fail(e, "cudaMemcpy", err);
}

static sumi_status run_op(struct cu_device *d, const struct op *op, const struct step *s,
                          sumi_error *err) {
    struct cu_launch l;
    TRY(usable(d, err));
    if (op < d->list || op >= d->list + d->n)
        return fail_with(err, SUMI_ERR_STATE, "this operation was not prepared");
    int at = (int)(op - d->list);
    CUDA_TRY(cudaSetDevice(d->index));
    TRY(begin_step(d, s, &l, err));
    l.pdl = false;
    if (s->route && op->kind == OP_MOE) {
        size_t n = (size_t)d->n_moe * (size_t)s->n_row * (size_t)d->top_k;
        TRY(grow_dev(d, (void **)&d->route, &d->route_cap, n, sizeof(int32_t), err));
        CUDA_TRY(cudaMemcpyAsync(d->route, s->route, n * sizeof(int32_t), cudaMemcpyHostToDevice,
                                 d->stream));
        l.route = d->route;
        l.n_route = s->n_row;
    }
    TRY(inject_layer(d, op, s, err));
    l.taps = op->kind != OP_HEAD || s->tap_norm;
    if (op->kind == OP_HEAD && s->tap_norm) { /* the norm of every row, before the head's own */
        int n_logit = l.n_logit;
        l.n_logit = 0;
        TRY(enqueue(d, &l, at, at + 1, err));
        TRY(fetch_rows(d, op->u.head.a, (size_t)s->n_row * (size_t)op->hidden, s->tap_norm, err));
        l.n_logit = n_logit;
        l.taps = false;
    }
    TRY(enqueue(d, &l, at, at + 1, err));
    TRY(fetch_taps(d, op, s, err));
    if (op->kind == OP_HEAD) return fetch_logits(d, s, err);
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    return SUMI_OK;
}

sumi_status cu_run_op(struct device *base, const struct op *op, const struct step *s,
                      sumi_error *err) {
    struct cu_device *d = cu_of(base);
    return note(d, run_op(d, op, s, err));
}
