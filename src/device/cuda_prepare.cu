/* Weights on their way to the GPU. Host memory (a mapped file) flows in; matrices in the layout of
 * ops/cuda/layout.cuh flow out. Pieces of matrices are gathered in pinned buffers, copied on
 * several streams, and put into tiles by the GPU. NVFP4 stays packed; every other format becomes
 * bf16. */
#include <string.h>

#include "device/cuda.cuh"

extern "C" {
#include "base/mem.h"
#include "base/pool.h"
#include "base/size.h"
#include "file/block.h"
}

#include "ops/moe/moe.cuh"

enum { N_SLOT = 4, SLOT_BYTES = 32 << 20, MAX_PIECE = 256, HOST_PART = 1 << 20 };

/* Rows of a stored matrix that become tiles. */
struct piece {
    enum dtype from;
    const uint8_t *src; /* host */
    size_t src_row;     /* bytes between its rows */
    size_t at, row;     /* place in the buffer, bytes between rows there */
    int n_row, n_in;
    bool raw;          /* copied as it is; else decoded to bf16 */
    struct cu_mat mat; /* data NULL: plain rows to `plain` */
    uint8_t *plain;
    int first_tile, tile_step;
};

struct slot {
    uint8_t *host, *dev;
    cudaStream_t stream;
    cudaEvent_t done;
    size_t used;
    int n;
    struct piece piece[MAX_PIECE];
};

struct feeder {
    struct cu_device *d;
    struct slot slot[N_SLOT];
    int at;
    double bytes, total;
};

/* One thread makes 16 bytes of codes and two scales, or 64 bytes of bf16. */
__global__ void tile_nvfp4(struct cu_mat m, const uint8_t *src, size_t row_bytes, int n_row,
                           int first_tile, int tile_step) {
    int chunk = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (chunk >= m.n_chunk) return;
    uint8_t *tile = const_cast<uint8_t *>(m.data) +
                    (size_t)(first_tile + (int)blockIdx.y * tile_step) * m.tile_bytes;
    uint32_t words[4] = {}, scales[2] = {};
    for (int half = 0; half < 2; half++) {
        int r = blockIdx.y * TILE_ROWS + lane / 4 + half * 8;
        if (r < n_row)
            nvfp4_recode(src + (size_t)r * row_bytes + (size_t)chunk * 36, lane % 4,
                         words + 2 * half, scales + half);
    }
    *reinterpret_cast<uint4 *>(tile + code_offset(chunk, lane)) =
        make_uint4(words[0], words[1], words[2], words[3]);
    *reinterpret_cast<uint16_t *>(tile + scale_offset(m.n_chunk, chunk, lane)) =
        (uint16_t)(scales[0] | scales[1] << 8);
}

__global__ void tile_bf16(struct cu_mat m, const uint8_t *src, size_t row_bytes, int n_row,
                          int first_tile, int tile_step) {
    int chunk = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (chunk >= m.n_chunk) return;
    uint8_t *tile = const_cast<uint8_t *>(m.data) +
                    (size_t)(first_tile + (int)blockIdx.y * tile_step) * m.tile_bytes;
    for (int plane = 0; plane < 4; plane++) {
        int r = blockIdx.y * TILE_ROWS + lane / 4 + plane / 2 * 8;
        int k = chunk * CHUNK + lane % 4 * 16 + plane % 2 * 8;
        uint16_t v[8] = {};
        if (r < n_row)
            for (int i = 0; i < 8; i++)
                if (k + i < m.n_in)
                    v[i] = reinterpret_cast<const uint16_t *>(src + (size_t)r * row_bytes)[k + i];
        *reinterpret_cast<uint4 *>(tile + bf16_offset(chunk, plane, lane)) =
            make_uint4(v[0] | (uint32_t)v[1] << 16, v[2] | (uint32_t)v[3] << 16,
                       v[4] | (uint32_t)v[5] << 16, v[6] | (uint32_t)v[7] << 16);
    }
}

/* ---- pieces into pinned memory ---- */

static void decode_row(const struct piece *p, const uint8_t *src, uint8_t *to) {
    float buf[2048];
    int step = 2048 / dtype_info(p->from)->block * dtype_info(p->from)->block;
    for (int i = 0; i < p->n_in; i += step) {
        int n = p->n_in - i < step ? p->n_in - i : step;
        size_t at;
        dtype_row_bytes(p->from, (size_t)i, &at); /* i is whole blocks */
        block_decode(p->from, src + at, (size_t)n, buf);
        for (int j = 0; j < n; j++) {
            uint16_t v = bf16_from_f32(buf[j]);
            memcpy(to + 2 * (size_t)(i + j), &v, 2);
        }
    }
}

/* Part i of a slot's work: a piece, or some of its rows. */
struct fill {
    const struct slot *s;
    int part_of[MAX_PIECE + 1]; /* first part of each piece */
};

static int rows_per_part(const struct piece *p) {
    return p->row < HOST_PART ? (int)(HOST_PART / p->row) : 1;
}

static void fill_part(void *ctx, int64_t part) {
    const struct fill *f = (const struct fill *)ctx;
    int i = 0;
    while (f->part_of[i + 1] <= part) i++;
    const struct piece *p = &f->s->piece[i];
    int per = rows_per_part(p), from = ((int)part - f->part_of[i]) * per;
    int to = from + per < p->n_row ? from + per : p->n_row;
    uint8_t *at = f->s->host + p->at;
    if (p->raw && p->row == p->src_row) {
        memcpy(at + (size_t)from * p->row, p->src + (size_t)from * p->row,
               (size_t)(to - from) * p->row);
        return;
    }
    for (int r = from; r < to; r++) {
        const uint8_t *src = p->src + (size_t)r * p->src_row;
        if (p->raw) memcpy(at + (size_t)r * p->row, src, p->row);
        else decode_row(p, src, at + (size_t)r * p->row);
    }
}

static sumi_status place_piece(const struct slot *s, const struct piece *p, sumi_error *err) {
    const uint8_t *src = s->dev + p->at;
    if (!p->mat.data) {
        CUDA_TRY(cudaMemcpyAsync(p->plain, src, (size_t)p->n_row * p->row, cudaMemcpyDeviceToDevice,
                                 s->stream));
        return SUMI_OK;
    }
    dim3 grid((unsigned)div_up(p->mat.n_chunk, 4), (unsigned)div_up(p->n_row, TILE_ROWS));
    if (p->mat.format == MAT_NVFP4)
        tile_nvfp4<<<grid, 128, 0, s->stream>>>(p->mat, src, p->row, p->n_row, p->first_tile,
                                                p->tile_step);
    else
        tile_bf16<<<grid, 128, 0, s->stream>>>(p->mat, src, p->row, p->n_row, p->first_tile,
                                               p->tile_step);
    CUDA_TRY(cudaGetLastError());
    return SUMI_OK;
}

static sumi_status flush(struct feeder *f, sumi_error *err) {
    struct slot *s = &f->slot[f->at];
    if (!s->n) return SUMI_OK;
    struct fill fill = {s, {0}};
    for (int i = 0; i < s->n; i++)
        fill.part_of[i + 1] =
            fill.part_of[i] + div_up(s->piece[i].n_row, rows_per_part(&s->piece[i]));
    pool_run(f->d->base.pool, fill.part_of[s->n], fill_part, &fill);
    CUDA_TRY(cudaMemcpyAsync(s->dev, s->host, s->used, cudaMemcpyHostToDevice, s->stream));
    for (int i = 0; i < s->n; i++) TRY(place_piece(s, &s->piece[i], err));
    CUDA_TRY(cudaEventRecord(s->done, s->stream));
    f->bytes += (double)s->used;
    if (f->d->base.progress) f->d->base.progress("weights to the GPU", f->bytes, f->total);
    f->at = (f->at + 1) % N_SLOT;
    s = &f->slot[f->at];
    CUDA_TRY(cudaEventSynchronize(s->done)); /* its buffers are free again */
    s->n = 0;
    s->used = 0;
    return SUMI_OK;
}

/* Takes a whole matrix, cut into pieces of whole tiles. */
static sumi_status feed(struct feeder *f, struct piece p, sumi_error *err) {
    size_t fit = SLOT_BYTES / p.row / TILE_ROWS * TILE_ROWS;
    int left = p.n_row;
    if (fit == 0)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "a matrix row of %zu bytes is too long for the CUDA loader", p.row);
    while (left > 0) {
        struct slot *s = &f->slot[f->at];
        size_t room = (SLOT_BYTES - s->used) / p.row / TILE_ROWS * TILE_ROWS;
        if (room > (size_t)left) room = (size_t)left;
        if (s->n == MAX_PIECE || room == 0 || (room < (size_t)left && room * 4 < fit)) {
            TRY(flush(f, err));
            continue;
        }
        struct piece *q = &s->piece[s->n++];
        *q = p;
        q->at = s->used;
        q->n_row = (int)room;
        s->used = (s->used + room * p.row + 255) / 256 * 256;
        if (s->used > SLOT_BYTES) s->used = SLOT_BYTES;
        left -= (int)room;
        p.src += room * p.src_row;
        p.first_tile += (int)(room / TILE_ROWS) * p.tile_step;
        if (p.plain) p.plain += room * p.row;
    }
    return SUMI_OK;
}

static sumi_status open_feeder(struct feeder *f, sumi_error *err) {
    for (int i = 0; i < N_SLOT; i++) {
        struct slot *s = &f->slot[i];
        CUDA_TRY(cudaMallocHost((void **)&s->host, SLOT_BYTES));
        CUDA_TRY(cudaMalloc((void **)&s->dev, SLOT_BYTES));
        CUDA_TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
        CUDA_TRY(cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
    }
    return SUMI_OK;
}

static void close_feeder(struct feeder *f) {
    for (int i = 0; i < N_SLOT; i++) {
        struct slot *s = &f->slot[i];
        if (s->stream) {
            cudaStreamSynchronize(s->stream);
            cudaStreamDestroy(s->stream);
        }
        if (s->done) cudaEventDestroy(s->done);
        cudaFreeHost(s->host);
        cudaFree(s->dev);
    }
    mem_free(f);
}

/* ---- matrices ---- */

struct part {
    const struct weight *w;
    int first_tile, tile_step;
};

static sumi_status make_mat(struct feeder *f, const struct part *part, int n_part, int n_tile,
                            struct cu_mat *m, sumi_error *err) {
    const struct weight *w = part[0].w;
    bool packed = true;
    m->n_in = (int)w->n_in;
    m->n_chunk = chunks_of(m->n_in);
    m->n_tile = n_tile;
    m->n_out = 0;
    for (int i = 0; i < n_part; i++) {
        packed = packed && part[i].w->dtype == DT_NVFP4;
        m->n_out += (int)part[i].w->n_out;
    }
    m->format = packed ? MAT_NVFP4 : MAT_BF16;
    m->tile_bytes = tile_bytes_of((enum mat_format)m->format, m->n_chunk);
    if (m->n_in % 16)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "the CUDA device needs matrices whose inputs are a multiple of 16, found "
                         "%d: use --device cpu",
                         m->n_in);
    void *data, *scale;
    TRY(cu_weight_alloc(f->d, (size_t)n_tile * m->tile_bytes, &data, err));
    TRY(cu_weight_alloc(f->d, (size_t)n_tile * sizeof(float), &scale, err));
    m->data = (const uint8_t *)data;
    m->scale = (const float *)scale;
    float *scales = (float *)mem_zero((size_t)n_tile, sizeof *scales);
    if (!scales) return NO_MEMORY(err, (size_t)n_tile * sizeof *scales);
    for (int i = 0; i < n_part; i++) {
        float s = part[i].w->scale * (packed ? NVFP4_TILE_FACTOR : 1.0f);
        for (int t = 0; t < div_up(part[i].w->n_out, TILE_ROWS); t++)
            scales[part[i].first_tile + t * part[i].tile_step] = s;
    }
    cudaError_t e =
        cudaMemcpy(scale, scales, (size_t)n_tile * sizeof *scales, cudaMemcpyHostToDevice);
    mem_free(scales);
    if (e != cudaSuccess) return cu_fail(e, "cudaMemcpy", err);
    for (int i = 0; i < n_part; i++) {
        w = part[i].w;
        struct piece p = {};
        p.from = w->dtype;
        p.src = (const uint8_t *)w->data;
        p.src_row = w->row_bytes;
        p.raw = packed || w->dtype == DT_BF16;
        p.row = packed ? (size_t)m->n_chunk * 36 : (size_t)m->n_in * 2;
        p.n_row = (int)w->n_out;
        p.n_in = m->n_in;
        p.mat = *m;
        p.first_tile = part[i].first_tile;
        p.tile_step = part[i].tile_step;
        TRY(feed(f, p, err));
    }
    return SUMI_OK;
}

static sumi_status one_mat(struct feeder *f, const struct weight *w, struct cu_mat *m,
                           sumi_error *err) {
    struct part part = {w, 0, 1};
    return make_mat(f, &part, 1, div_up(w->n_out, TILE_ROWS), m, err);
}

/* Parts under one another; the rows of all but the last are whole tiles. */
static sumi_status fuse(struct feeder *f, const struct weight *const *w, int n, struct cu_mat *m,
                        sumi_error *err) {
    struct part part[3];
    int tiles = 0;
    for (int i = 0; i < n; i++) {
        part[i] = {w[i], tiles, 1};
        tiles += div_up(w[i]->n_out, TILE_ROWS);
    }
    return make_mat(f, part, n, tiles, m, err);
}

/* Gate and up of n MLPs, tile by tile. */
static sumi_status gate_up(struct feeder *f, const struct mlp *mlp, int n, struct cu_mat *m,
                           sumi_error *err) {
    int64_t width = mlp[0].gate.n_out;
    if (width % TILE_ROWS)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "the CUDA device needs MLP widths that are a multiple of 16, found %lld: "
                         "use --device cpu",
                         (long long)width);
    struct part *part = (struct part *)mem_zero((size_t)n * 2, sizeof *part);
    if (!part) return NO_MEMORY(err, (size_t)n * 2 * sizeof *part);
    int tiles = (int)width / TILE_ROWS;
    for (int i = 0; i < n; i++) {
        part[2 * i] = {&mlp[i].gate, i * 2 * tiles, 2};
        part[2 * i + 1] = {&mlp[i].up, i * 2 * tiles + 1, 2};
    }
    sumi_status status = make_mat(f, part, 2 * n, n * 2 * tiles, m, err);
    mem_free(part);
    return status;
}

static sumi_status stack_down(struct feeder *f, const struct mlp *mlp, int n, struct cu_mat *m,
                              sumi_error *err) {
    struct part *part = (struct part *)mem_zero((size_t)n, sizeof *part);
    if (!part) return NO_MEMORY(err, (size_t)n * sizeof *part);
    int tiles = div_up(mlp[0].down.n_out, TILE_ROWS);
    for (int i = 0; i < n; i++) part[i] = {&mlp[i].down, i * tiles, 1};
    sumi_status status = make_mat(f, part, n, n * tiles, m, err);
    mem_free(part);
    return status;
}

static sumi_status vector(struct feeder *f, const float *from, int n, const float **out,
                          sumi_error *err) {
    void *to;
    if (!from) return SUMI_OK;
    TRY(cu_weight_alloc(f->d, (size_t)n * sizeof *from, &to, err));
    CUDA_TRY(cudaMemcpy(to, from, (size_t)n * sizeof *from, cudaMemcpyHostToDevice));
    *out = (const float *)to;
    return SUMI_OK;
}

static sumi_status embedding(struct feeder *f, const struct weight *w, struct cu_op *o,
                             sumi_error *err) {
    struct piece p = {};
    void *table;
    p.from = w->dtype;
    p.src = (const uint8_t *)w->data;
    p.src_row = w->row_bytes;
    p.raw = w->dtype == DT_BF16;
    p.row = (size_t)w->n_in * 2;
    p.n_row = (int)w->n_out;
    p.n_in = (int)w->n_in;
    p.tile_step = 1;
    TRY(cu_weight_alloc(f->d, (size_t)w->n_out * p.row, &table, err));
    p.plain = (uint8_t *)table;
    o->table = (const bf *)table;
    o->table_scale = w->scale;
    f->d->vocab = (int)w->n_out;
    return feed(f, p, err);
}

static sumi_status check_heads(int n_head, const struct op_cache *c, sumi_error *err) {
    int d = c->head_dim, group = n_head / c->n_kv;
    if (d != 32 && d != 64 && d != 128)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "the CUDA device needs heads of 32, 64 or 128 channels, found %d: use "
                         "--device cpu",
                         d);
    if (group > MAX_GROUP)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "%d query heads share a key head, the CUDA device can do at most %d: use "
                         "--device cpu",
                         group, MAX_GROUP);
    return SUMI_OK;
}

static sumi_status prepare_qkv(struct feeder *f, const struct op *op, struct cu_op *o,
                               sumi_error *err) {
    const auto &p = op->u.norm_qkv;
    const struct weight *w[] = {&p.q, &p.k, &p.v};
    TRY(check_heads(p.n_head, &p.cache, err));
    TRY(fuse(f, w, 3, &o->m[0], err));
    TRY(vector(f, p.norm, op->hidden, &o->norm, err));
    TRY(vector(f, p.q_norm, p.cache.head_dim, &o->v0, err));
    return vector(f, p.k_norm, p.cache.head_dim, &o->v1, err);
}

static sumi_status prepare_moe(struct feeder *f, const struct op *op, struct cu_op *o,
                               sumi_error *err) {
    const auto &p = op->u.moe;
    TRY(vector(f, p.norm, op->hidden, &o->norm, err));
    TRY(one_mat(f, &p.router, &o->m[MOE_ROUTER], err));
    TRY(gate_up(f, p.expert, p.n_expert, &o->m[MOE_UP], err));
    TRY(stack_down(f, p.expert, p.n_expert, &o->m[MOE_DOWN], err));
    o->shared = p.shared.gate.n_out != 0;
    if (!o->shared) return SUMI_OK;
    TRY(gate_up(f, &p.shared, 1, &o->m[MOE_SHARED_UP], err));
    return one_mat(f, &p.shared.down, &o->m[MOE_SHARED_DOWN], err);
}

static sumi_status prepare_op(struct feeder *f, const struct op *op, struct cu_op *o,
                              sumi_error *err) {
    switch (op->kind) {
    case OP_EMBED: return embedding(f, &op->u.embed.table, o, err);
    case OP_NORM_QKV: return prepare_qkv(f, op, o, err);
    case OP_ATTENTION:
        TRY(check_heads(op->u.attention.n_head, &op->u.attention.cache, err));
        return vector(f, op->u.attention.sink, op->u.attention.n_head, &o->v0, err);
    case OP_ATTN_OUT: return one_mat(f, &op->u.attn_out.o, &o->m[0], err);
    case OP_DENSE_FFN:
        TRY(vector(f, op->u.dense_ffn.norm, op->hidden, &o->norm, err));
        TRY(gate_up(f, &op->u.dense_ffn.mlp, 1, &o->m[0], err));
        return one_mat(f, &op->u.dense_ffn.mlp.down, &o->m[1], err);
    case OP_MOE: return prepare_moe(f, op, o, err);
    case OP_HEAD:
        TRY(vector(f, op->u.head.norm, op->hidden, &o->norm, err));
        f->d->vocab = (int)op->u.head.head.n_out;
        return one_mat(f, &op->u.head.head, &o->m[0], err);
    case OP_COUNT: break;
    }
    return fail_with(err, SUMI_ERR_UNSUPPORTED, "operation %d is unknown to the CUDA device",
                     (int)op->kind);
}

/* What the list says about the model as a whole. */
static void survey(struct cu_device *d, const struct op *op) {
    int layer = op->layer;
    if (op->kind == OP_NORM_QKV) layer = op->u.norm_qkv.cache.layer;
    if (op->kind == OP_ATTENTION) layer = op->u.attention.cache.layer;
    if (layer >= d->n_layer) d->n_layer = layer + 1;
    if (op->kind == OP_ATTENTION) d->group = op->u.attention.n_head / op->u.attention.cache.n_kv;
    if (op->kind != OP_MOE) return;
    d->n_expert = op->u.moe.n_expert;
    d->top_k = op->u.moe.top_k;
    d->n_moe++;
}

/* Bytes of a list's matrices as they are stored, for the progress line. */
static double stored_bytes(const struct op *op) {
#define BYTES(w) ((double)(w).n_out * (double)(w).row_bytes)
    double sum = 0;
    switch (op->kind) {
    case OP_EMBED: return BYTES(op->u.embed.table);
    case OP_NORM_QKV:
        return BYTES(op->u.norm_qkv.q) + BYTES(op->u.norm_qkv.k) + BYTES(op->u.norm_qkv.v);
    case OP_ATTN_OUT: return BYTES(op->u.attn_out.o);
    case OP_DENSE_FFN:
        return BYTES(op->u.dense_ffn.mlp.gate) + BYTES(op->u.dense_ffn.mlp.up) +
               BYTES(op->u.dense_ffn.mlp.down);
    case OP_MOE:
        for (int e = 0; e < op->u.moe.n_expert; e++) {
            const struct mlp *m = &op->u.moe.expert[e];
            sum += BYTES(m->gate) + BYTES(m->up) + BYTES(m->down);
        }
        return sum + BYTES(op->u.moe.router) + BYTES(op->u.moe.shared.gate) +
               BYTES(op->u.moe.shared.up) + BYTES(op->u.moe.shared.down);
    case OP_HEAD: return BYTES(op->u.head.head);
    case OP_ATTENTION:
    case OP_COUNT: break;
    }
    return 0;
#undef BYTES
}

static sumi_status prepare_all(struct feeder *f, sumi_error *err) {
    struct cu_device *d = f->d;
    TRY(open_feeder(f, err));
    for (int i = 0; i < d->n; i++) f->total += stored_bytes(&d->list[i]);
    for (int i = 0; i < d->n; i++) {
        survey(d, &d->list[i]);
        TRY(prepare_op(f, &d->list[i], &d->plan[i], err));
    }
    TRY(flush(f, err));
    for (int i = 0; i < N_SLOT; i++) CUDA_TRY(cudaStreamSynchronize(f->slot[i].stream));
    if (d->base.progress) d->base.progress("weights to the GPU", 1, 1);
    return SUMI_OK;
}

sumi_status cu_prepare(struct device *base, struct op *list, int n, sumi_error *err) {
    struct cu_device *d = cu_of(base);
    CUDA_TRY(cudaSetDevice(d->index));
    CUDA_TRY(cudaStreamSynchronize(d->stream));
    cu_drop_graphs(d);
    cu_weights_free(d);
    mem_free(d->plan);
    d->n = 0;
    d->n_layer = d->group = 1;
    d->n_moe = d->n_expert = d->top_k = d->vocab = 0;
    d->plan = (struct cu_op *)mem_zero((size_t)n, sizeof *d->plan);
    if (!d->plan) return NO_MEMORY(err, (size_t)n * sizeof *d->plan);
    struct feeder *f = (struct feeder *)mem_zero(1, sizeof *f);
    if (!f) return NO_MEMORY(err, sizeof *f);
    f->d = d;
    d->list = list;
    d->n = n;
    sumi_status status = prepare_all(f, err);
    close_feeder(f);
    if (status != SUMI_OK) {
        cu_weights_free(d);
        d->n = 0;
    }
    return status;
}
