/* Mixture of experts. The router's logits come from a linear layer; one warp a row makes the
 * choice.
 *
 *   up to 8 rows    gate and up: a block for each (slot, tile), which serves all rows of the slot's
 *                   expert if no earlier slot has it; down: a block for each (row, tile) over the
 *                   row's experts and the shared one, which also weighs, adds and joins the
 * residual up to 64 rows   the same gate and up; down per slot like it; a kernel that combines more
 * slots sorted by expert, grouped products of 128 outputs by 64 slots, combine
 *
 * Bound by the bytes of the chosen experts, then by tensor cores. */
#include "ops/moe/moe.cuh"

/* One warp a row: the k-th best is the best of those that come after the one before it, by value
 * and then by index. Numbers that are none count as -inf, so that every choice is an expert. */
__global__ void __launch_bounds__(128)
    choose(const float *logits, int n_expert, int top_k, const int32_t *route, const int32_t *n_row,
           int32_t *ids, float *weights) {
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= *n_row) return;
    const float *z = logits + (int64_t)r * n_expert;
    float last = CUDART_INF_F, sum = 0;
    int last_id = -1;
    for (int k = 0; k < top_k; k++) {
        float best = -CUDART_INF_F;
        int id = 0x7FFFFFFF;
        for (int e = lane; e < n_expert; e += 32) {
            float v = z[e];
            if (isnan(v)) v = -CUDART_INF_F;
            bool after = v < last || (v == last && e > last_id);
            if (after && (v > best || (v == best && e < id))) best = v, id = e;
        }
#pragma unroll
        for (int i = 16; i > 0; i /= 2) {
            float v = __shfl_xor_sync(~0u, best, i);
            int e = __shfl_xor_sync(~0u, id, i);
            if (v > best || (v == best && e < id)) best = v, id = e;
        }
        last = best;
        last_id = id;
        if (route) id = route[(int64_t)r * top_k + k];
        sum += 1.0f / (1.0f + expf(-z[id]));
        if (lane == 0) ids[(int64_t)r * top_k + k] = id;
    }
    __syncwarp();
    for (int k = lane; k < top_k; k += 32) {
        int id = ids[(int64_t)r * top_k + k];
        weights[(int64_t)r * top_k + k] = 1.0f / (1.0f + expf(-z[id])) / sum;
    }
}

/* The slots of this slot's expert, if no earlier slot has the same; how many. Ends with a barrier.
 */
__device__ static int gather_slots(const int32_t *ids, int slot, int n_slot, int32_t *list,
                                   int32_t *count) {
    int e = ids[slot];
    bool earlier = false;
    for (int i = threadIdx.x; i < slot; i += BLOCK) earlier |= ids[i] == e;
    if (__syncthreads_or(earlier)) return 0;
    if (threadIdx.x < 32) {
        int n = 0;
        for (int base = slot; base < n_slot; base += 32) {
            int i = base + (int)threadIdx.x;
            bool mine = i < n_slot && ids[i] == e;
            unsigned all = __ballot_sync(~0u, mine);
            if (mine) list[n + __popc(all & ((1u << threadIdx.x) - 1))] = i;
            n += __popc(all);
        }
        if (threadIdx.x == 0) *count = n;
    }
    __syncthreads();
    return *count;
}

/* GATE: act[slot] = silu(a G^T) * (a U^T) over the row of the slot; else each[slot] = act[slot]
 * D^T. Blocks from first_shared on do the shared expert's gate and up, slots being rows. */
template <int F, bool GATE, bool STAGED>
__global__ void __launch_bounds__(BLOCK) slot_products(const struct slot_args a) {
    constexpr int TM = GATE ? 2 : 1, U = GATE ? 2 : 4;
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ float sums[WARPS];
    __shared__ int32_t n_listed;
    float *red = reinterpret_cast<float *>(shared);
    int32_t *list = reinterpret_cast<int32_t *>(red + WARPS * TM * 128);
    uint8_t *rows = reinterpret_cast<uint8_t *>(list) + (a.rows * a.top_k * 4 + 15) / 16 * 16;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bool is_shared = (int)blockIdx.x >= a.first_shared;
    const struct cu_mat &m = is_shared ? a.shared : a.experts;
    wait_for_predecessor();
    let_successor_start();
    int n_row = min(*a.n_row, a.rows), n = n_row, tile;
    if (is_shared) {
        tile = ((int)blockIdx.x - a.first_shared) * TM;
    } else {
        int slot = (int)blockIdx.x / a.tiles, n_slot = n_row * a.top_k;
        if (slot >= n_slot) return;
        n = gather_slots(a.ids, slot, n_slot, list, &n_listed);
        if (n == 0) return;
        tile = (a.ids[slot] * a.tiles + (int)blockIdx.x % a.tiles) * TM;
    }
    if (STAGED)
        stage_rows(rows, a.x, a.x_stride, NULL, n_row, a.rows, m.n_in, m.n_chunk, a.norm, a.eps,
                   sums);
    const uint8_t *w = m.data + (size_t)tile * m.tile_bytes;
    for (int base = 0; base < n; base += 8) {
        int at = base + lane / 4;
        int slot = at < n ? (is_shared ? at * a.top_k : list[at]) : -1;
        int row = GATE ? slot / a.top_k : slot;
        float c[TM][4] = {};
        for (int first = warp; first < m.n_chunk; first += U * WARPS) {
            chunk_frag<F> f[U][TM];
#pragma unroll
            for (int u = 0; u < U; u++)
                if (first + u * WARPS < m.n_chunk)
#pragma unroll
                    for (int i = 0; i < TM; i++)
                        load_chunk(&f[u][i], w + (size_t)i * m.tile_bytes, first + u * WARPS,
                                   m.n_chunk, lane);
#pragma unroll
            for (int u = 0; u < U; u++) {
                int chunk = first + u * WARPS;
                if (chunk >= m.n_chunk) continue;
                row_frag b = zero_row();
                if (slot >= 0)
                    b = STAGED ? staged_row(rows, row, chunk, m.n_chunk, lane)
                               : global_row(a.x + (int64_t)row * a.x_stride, chunk, m.n_in, lane);
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    uint32_t lo[8], hi[8];
                    expand(&f[u][i], lo, hi);
                    mma_chunk(c[i], lo, hi, b);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < TM; i++) put_partial(red, TM, i, c[i]);
        __syncthreads();
        for (int e = threadIdx.x; e < min(8, n - base) * TILE_ROWS; e += BLOCK) {
            int mm = e % TILE_ROWS, k = e / TILE_ROWS;
            int o = (is_shared ? tile / TM : (int)blockIdx.x % a.tiles) * TILE_ROWS + mm;
            float v = take_partial(red, TM, 0, mm, k) * m.scale[tile];
            if (GATE) {
                float u = take_partial(red, TM, TM - 1, mm, k) * m.scale[tile + TM - 1];
                if (is_shared)
                    a.shared_y[(int64_t)(base + k) * a.shared_stride + o] =
                        to_bf(silu(rounded(v)) * rounded(u));
                else a.y[(int64_t)list[base + k] * a.y_stride + o] = to_bf(silu(v) * u);
            } else if (o < a.n_out) {
                a.y[(int64_t)list[base + k] * a.y_stride + o] = to_bf(v);
            }
        }
        __syncthreads();
    }
}

/* x = rounded(x + rounded(rounded(sum_k w_k y_k) + shared)) for one row and 16 channels. Warps take
 * the row's experts, then pieces of the shared one's inputs. */
template <int F, int FS>
__global__ void __launch_bounds__(BLOCK) down_combine(const struct down_args a) {
    extern __shared__ float item[]; /* [n_item][16] */
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.y, tile = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= *a.n_row) return;
    const int32_t *ids = a.ids + (int64_t)r * a.top_k;
    for (int i = warp; i < a.top_k + a.pieces; i += WARPS) {
        float c[4] = {};
        if (i < a.top_k) {
            const struct cu_mat &m = a.experts;
            const uint8_t *w = m.data + ((size_t)ids[i] * a.tiles + tile) * m.tile_bytes;
            const bf *x = a.act + ((int64_t)r * a.top_k + i) * a.act_stride;
#pragma unroll 4
            for (int chunk = 0; chunk < m.n_chunk; chunk++) {
                chunk_frag<F> f;
                uint32_t lo[8], hi[8];
                load_chunk(&f, w, chunk, m.n_chunk, lane);
                expand(&f, lo, hi);
                mma_chunk(c, lo, hi, lane < 4 ? global_row(x, chunk, m.n_in, lane) : zero_row());
            }
        } else {
            const struct cu_mat &m = a.shared;
            const uint8_t *w = m.data + (size_t)tile * m.tile_bytes;
            const bf *x = a.shared_act + (int64_t)r * a.shared_stride;
            int from = (i - a.top_k) * a.per_piece, to = min(from + a.per_piece, m.n_chunk);
#pragma unroll 4
            for (int chunk = from; chunk < to; chunk++) {
                chunk_frag<FS> f;
                uint32_t lo[8], hi[8];
                load_chunk(&f, w, chunk, m.n_chunk, lane);
                expand(&f, lo, hi);
                mma_chunk(c, lo, hi, lane < 4 ? global_row(x, chunk, m.n_in, lane) : zero_row());
            }
        }
        if (lane % 4 == 0) { /* column 0: row g in c[0], row g + 8 in c[2] */
            item[i * TILE_ROWS + lane / 4] = c[0];
            item[i * TILE_ROWS + lane / 4 + 8] = c[2];
        }
    }
    __syncthreads();
    int m = threadIdx.x, o = tile * TILE_ROWS + m;
    if (m >= TILE_ROWS || o >= a.hidden) return;
    float sum = 0, ys = 0;
    for (int k = 0; k < a.top_k; k++) {
        float y = item[k * TILE_ROWS + m] * a.experts.scale[(int64_t)ids[k] * a.tiles + tile];
        sum = __fadd_rn(sum, __fmul_rn(a.weights[(int64_t)r * a.top_k + k], rounded(y)));
    }
    for (int i = 0; i < a.pieces; i++) ys += item[(a.top_k + i) * TILE_ROWS + m];
    if (a.pieces) ys = rounded(ys * a.shared.scale[tile]);
    bf y = to_bf(rounded(sum) + ys);
    bf *x = a.x + (int64_t)r * a.hidden + o;
    if (a.branch) a.branch[(int64_t)r * a.hidden + o] = y;
    *x = to_bf(to_f32(*x) + to_f32(y));
}

/* The same sum when the products are there: each [slot][hidden], y [row][hidden] (shared). */
__global__ void __launch_bounds__(BLOCK) combine(const struct combine_args a) {
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.y, o = blockIdx.x * BLOCK + threadIdx.x;
    if (r >= *a.n_row || o >= a.hidden) return;
    float sum = 0;
    for (int k = 0; k < a.top_k; k++) {
        int64_t slot = (int64_t)r * a.top_k + k;
        sum = __fadd_rn(sum, __fmul_rn(a.weights[slot], to_f32(a.each[slot * a.hidden + o])));
    }
    int64_t at = (int64_t)r * a.hidden + o;
    bf y = to_bf(rounded(sum) + (a.shared ? to_f32(a.y[at]) : 0.0f));
    if (a.branch) a.branch[at] = y;
    a.x[at] = to_bf(to_f32(a.x[at]) + to_f32(y));
}

template <int F> static void gate_up(struct cu_launch *l, const struct slot_args *a, bool staged) {
    size_t smem = sizeof(float) * WARPS * 2 * 128 + (size_t)a->rows * a->top_k * 4;
    unsigned blocks = (unsigned)(a->rows * a->top_k * a->tiles) +
                      (unsigned)(a->shared_y ? a->shared.n_tile / 2 : 0);
    smem = (smem + 15) / 16 * 16;
    if (staged)
        LAUNCH(l, (slot_products<F, true, true>), dim3(blocks), BLOCK,
               smem + (size_t)a->rows * staged_pitch(a->experts.n_chunk), *a);
    else LAUNCH(l, (slot_products<F, true, false>), dim3(blocks), BLOCK, smem, *a);
}

template <int F> static void down_slots(struct cu_launch *l, const struct slot_args *a) {
    size_t smem = sizeof(float) * WARPS * 128 + (size_t)a->rows * a->top_k * 4;
    LAUNCH(l, (slot_products<F, false, false>), dim3((unsigned)(a->rows * a->top_k * a->tiles)),
           BLOCK, smem, *a);
}

template <int F> static void down_rows(struct cu_launch *l, const struct down_args *a, int rows) {
    dim3 grid((unsigned)a->tiles, (unsigned)rows);
    size_t smem = sizeof(float) * TILE_ROWS * (size_t)(a->top_k + a->pieces);
    if (a->shared.format == MAT_BF16) LAUNCH(l, (down_combine<F, MAT_BF16>), grid, BLOCK, smem, *a);
    else LAUNCH(l, (down_combine<F, MAT_NVFP4>), grid, BLOCK, smem, *a);
}

/* Which buffers an operation has, under their names on the device. */
struct moe_buffers {
    bf *x, *a, *y, *act, *each, *shared_act;
    int hidden, width, shared_width;
    const int32_t *n_row;
};

static struct moe_buffers buffers_of(struct cu_launch *l, const struct op *op,
                                     const struct cu_op *w) {
    const auto &p = op->u.moe;
    return {as_bf(op->x),        as_bf(p.a),          as_bf(p.y),
            as_bf(p.act),        as_bf(p.each),       as_bf(p.gate),
            op->hidden,          w->m[MOE_DOWN].n_in, w->shared ? w->m[MOE_SHARED_DOWN].n_in : 0,
            &l->step.meta->n_row};
}

static void route(struct cu_launch *l, const struct op *op, const struct cu_op *w,
                  const struct moe_buffers *b, bool normed) {
    const auto &p = op->u.moe;
    struct linear_args a = {};
    a.m = w->m[MOE_ROUTER];
    a.x = normed ? b->a : b->x;
    a.x_stride = op->hidden;
    a.norm = normed ? NULL : w->norm;
    a.eps = op->eps;
    a.n_row = b->n_row;
    a.rows = l->rows;
    a.f = p.logits;
    a.f_stride = p.n_expert;
    cu_linear(l, EPI_F32, &a);
    const int32_t *given = l->route ? l->route + (int64_t)p.moe_index * l->n_route * p.top_k : NULL;
    LAUNCH(l, choose, dim3((unsigned)div_up(l->rows, 4)), 128, 0, (const float *)p.logits,
           p.n_expert, p.top_k, given, b->n_row, p.ids, p.weights);
}

static void shared_expert(struct cu_launch *l, const struct cu_op *w, const struct moe_buffers *b,
                          bool gate_up_too) {
    struct linear_args a = {};
    if (gate_up_too) {
        a.m = w->m[MOE_SHARED_UP];
        a.x = b->a;
        a.x_stride = b->hidden;
        a.n_row = b->n_row;
        a.rows = l->rows;
        a.y = b->shared_act;
        a.y_stride = b->shared_width;
        cu_linear(l, EPI_GATE, &a);
    }
    struct linear_args d = {};
    d.m = w->m[MOE_SHARED_DOWN];
    d.x = b->shared_act;
    d.x_stride = b->shared_width;
    d.n_row = b->n_row;
    d.rows = l->rows;
    d.y = b->y;
    d.y_stride = b->hidden;
    d.split = b->hidden;
    cu_linear(l, EPI_STORE, &d);
}

static void combine_slots(struct cu_launch *l, const struct op *op, const struct cu_op *w,
                          const struct moe_buffers *b) {
    const auto &p = op->u.moe;
    struct combine_args c = {b->each,  b->y,      p.weights, b->x,     l->taps ? b->y : NULL,
                             b->n_row, b->hidden, p.top_k,   w->shared};
    LAUNCH(l, combine, dim3((unsigned)div_up(b->hidden, BLOCK), (unsigned)l->rows), BLOCK, 0, c);
}

static void few_rows(struct cu_launch *l, const struct op *op, const struct cu_op *w,
                     const struct moe_buffers *b) {
    const auto &p = op->u.moe;
    const struct cu_mat &up = w->m[MOE_UP];
    bool staged =
        l->rows <= STAGED_ROWS && (size_t)l->rows * staged_pitch(up.n_chunk) <= (size_t)160 << 10;
    if (!staged) cu_norm(l, b->x, NULL, w->norm, b->hidden, op->eps, b->n_row, l->rows, b->a);
    route(l, op, w, b, !staged);
    /* The shared expert rides in the same launch if its matrix has the same format. */
    bool together = w->shared && w->m[MOE_SHARED_UP].format == up.format;
    struct slot_args g = {};
    g.experts = up;
    g.shared = w->m[MOE_SHARED_UP];
    g.x = staged ? b->x : b->a;
    g.x_stride = b->hidden;
    g.norm = staged ? w->norm : NULL;
    g.eps = op->eps;
    g.ids = p.ids;
    g.n_row = b->n_row;
    g.rows = l->rows;
    g.top_k = p.top_k;
    g.tiles = b->width / TILE_ROWS;
    g.first_shared = l->rows * p.top_k * g.tiles;
    g.y = b->act;
    g.y_stride = b->width;
    g.shared_y = together ? b->shared_act : NULL;
    g.shared_stride = b->shared_width;
    if (up.format == MAT_BF16) gate_up<MAT_BF16>(l, &g, staged);
    else gate_up<MAT_NVFP4>(l, &g, staged);
    if (w->shared && !together) {
        struct linear_args a = {};
        a.m = w->m[MOE_SHARED_UP];
        a.x = g.x;
        a.x_stride = b->hidden;
        a.norm = g.norm;
        a.eps = op->eps;
        a.n_row = b->n_row;
        a.rows = l->rows;
        a.y = b->shared_act;
        a.y_stride = b->shared_width;
        cu_linear(l, EPI_GATE, &a);
    }
    const struct cu_mat &down = w->m[MOE_DOWN];
    if (l->rows <= STAGED_ROWS) {
        struct down_args d = {};
        d.experts = down;
        d.shared = w->m[MOE_SHARED_DOWN];
        d.act = b->act;
        d.act_stride = b->width;
        d.shared_act = b->shared_act;
        d.shared_stride = b->shared_width;
        d.ids = p.ids;
        d.weights = p.weights;
        d.n_row = b->n_row;
        d.top_k = p.top_k;
        d.tiles = down.n_tile / p.n_expert;
        d.per_piece = down.n_chunk;
        d.pieces = w->shared ? div_up(d.shared.n_chunk, d.per_piece) : 0;
        d.hidden = b->hidden;
        d.x = b->x;
        d.branch = l->taps ? b->y : NULL;
        if (down.format == MAT_BF16) down_rows<MAT_BF16>(l, &d, l->rows);
        else down_rows<MAT_NVFP4>(l, &d, l->rows);
        return;
    }
    g.experts = down;
    g.x = b->act;
    g.x_stride = b->width;
    g.norm = NULL;
    g.tiles = down.n_tile / p.n_expert;
    g.first_shared = l->rows * p.top_k * g.tiles;
    g.y = b->each;
    g.y_stride = b->hidden;
    g.n_out = b->hidden;
    if (down.format == MAT_BF16) down_slots<MAT_BF16>(l, &g);
    else down_slots<MAT_NVFP4>(l, &g);
    if (w->shared) shared_expert(l, w, b, false);
    combine_slots(l, op, w, b);
}

static void many_rows(struct cu_launch *l, const struct op *op, const struct cu_op *w,
                      const struct moe_buffers *b) {
    const auto &p = op->u.moe;
    cu_norm(l, b->x, NULL, w->norm, b->hidden, op->eps, b->n_row, l->rows, b->a);
    route(l, op, w, b, true);
    cu_sort_slots(l, p.ids, p.n_expert, p.top_k, p.order);
    struct group_args g = {};
    g.m = w->m[MOE_UP];
    g.x = b->a;
    g.x_stride = b->hidden;
    g.x_top_k = p.top_k;
    g.y = b->act;
    g.y_stride = b->width;
    g.n_out = b->width;
    g.order = p.order + p.n_expert + 1;
    g.blocks = l->blocks;
    g.tiles = g.m.n_tile / p.n_expert;
    g.rows = l->rows * p.top_k;
    g.n_expert = p.n_expert;
    cu_grouped(l, true, &g);
    g.m = w->m[MOE_DOWN];
    g.x = b->act;
    g.x_stride = b->width;
    g.x_top_k = 1;
    g.y = b->each;
    g.y_stride = b->hidden;
    g.n_out = b->hidden;
    g.tiles = g.m.n_tile / p.n_expert;
    cu_grouped(l, false, &g);
    if (w->shared) shared_expert(l, w, b, true);
    combine_slots(l, op, w, b);
}

void cu_moe(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    struct moe_buffers b = buffers_of(l, op, w);
    if (l->rows <= SMALL_ROWS) few_rows(l, op, w, &b);
    else many_rows(l, op, w, &b);
}
