/* Attention over pages, on tensor cores: 16 rows of queries are the M operand, keys and values pass
 * through shared memory. Few rows: the context of each is split over blocks, the last block of a
 * row to finish merges the parts in their order. Many rows of one sequence: blocks of 64 query rows
 * walk over the pages. Bound by the bytes of keys and values, then by tensor cores. */
#include "ops/cuda/rows.cuh"

enum { ATTN_BLOCK = 128, ATTN_WARPS = 4, SPLIT_STAGES = 3 };

struct attn_args {
    struct cu_step s;
    const bf *q;
    bf *o;
    const uint8_t *pool;
    size_t slab_bytes;
    int layer, n_head, n_kv, group, window, n_split;
    float scale;
    const float *sink;
    float *partial;
    int32_t *counter;
};

/* Bytes between rows of keys or values in shared memory: ldmatrix reads 8 rows without conflict. */
template <int D> struct pitch { static const int value = D * 2 + 16; };

/* 16 rows of queries: q fragments, running maximum and sum of rows g and g + 8, and the output. */
template <int D> struct attention_state {
    uint32_t q[D / 16][4];
    float m[2], l[2];
    float o[D / 8][4];
};

template <int D> __device__ __forceinline__ void begin(struct attention_state<D> *a) {
    a->m[0] = a->m[1] = -CUDART_INF_F;
    a->l[0] = a->l[1] = 0;
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) a->o[i][j] = 0;
}

/* row0, row1: the vectors of rows g and g + 8, or NULL for none. */
template <int D>
__device__ __forceinline__ void load_q(struct attention_state<D> *a, const bf *row0, const bf *row1,
                                       int lane) {
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        int at = k * 16 + lane % 4 * 2;
        a->q[k][0] = row0 ? *reinterpret_cast<const uint32_t *>(row0 + at) : 0;
        a->q[k][1] = row1 ? *reinterpret_cast<const uint32_t *>(row1 + at) : 0;
        a->q[k][2] = row0 ? *reinterpret_cast<const uint32_t *>(row0 + at + 8) : 0;
        a->q[k][3] = row1 ? *reinterpret_cast<const uint32_t *>(row1 + at + 8) : 0;
    }
}

/* Takes 8 NT tokens, keys and values at these shared addresses. Token i of them is seen by row g if
 * lo[0] <= i <= hi[0], by row g + 8 likewise with [1]. */
template <int D, int NT>
__device__ __forceinline__ void attend(struct attention_state<D> *a, uint32_t keys, uint32_t values,
                                       const int lo[2], const int hi[2], float scale, int lane) {
    constexpr int P = pitch<D>::value;
    const float log2e = 1.44269504088896340736f;
    float s[NT][4] = {};
#pragma unroll
    for (int n = 0; n < NT; n += 2) {
        uint32_t at = keys + (uint32_t)((n * 8 + lane / 16 * 8 + lane % 8) * P + lane / 8 % 2 * 16);
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t b[4];
            ldmatrix(b, at + (uint32_t)k * 32);
            mma(s[n], a->q[k][0], a->q[k][1], a->q[k][2], a->q[k][3], b[0], b[1]);
            mma(s[n + 1], a->q[k][0], a->q[k][1], a->q[k][2], a->q[k][3], b[2], b[3]);
        }
    }
    float top[2] = {-CUDART_INF_F, -CUDART_INF_F};
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int token = n * 8 + lane % 4 * 2 + i % 2;
            bool seen = token >= lo[i / 2] && token <= hi[i / 2];
            s[n][i] = seen ? s[n][i] * scale : -CUDART_INF_F;
            top[i / 2] = fmaxf(top[i / 2], s[n][i]);
        }
    float base[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 2));
        float m = fmaxf(a->m[h], top[h]);
        base[h] = m == -CUDART_INF_F ? 0 : m;
        float f = exp2f((a->m[h] - base[h]) * log2e);
        a->m[h] = m;
        a->l[h] *= f;
#pragma unroll
        for (int i = 0; i < D / 8; i++) a->o[i][2 * h] *= f, a->o[i][2 * h + 1] *= f;
    }
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2f((s[n][i] - base[i / 2]) * log2e);
            a->l[i / 2] += s[n][i];
        }
#pragma unroll
    for (int n = 0; n < NT; n += 2) {
        uint32_t p0 = pack(s[n][0], s[n][1]), p1 = pack(s[n][2], s[n][3]);
        uint32_t p2 = pack(s[n + 1][0], s[n + 1][1]), p3 = pack(s[n + 1][2], s[n + 1][3]);
        uint32_t at =
            values + (uint32_t)((n * 8 + lane / 8 % 2 * 8 + lane % 8) * P + lane / 16 * 16);
#pragma unroll
        for (int i = 0; i < D / 8; i += 2) {
            uint32_t b[4];
            ldmatrix_trans(b, at + (uint32_t)i * 16);
            mma(a->o[i], p0, p1, p2, p3, b[0], b[1]);
            mma(a->o[i + 1], p0, p1, p2, p3, b[2], b[3]);
        }
    }
}

/* The lanes of a row hold parts of its sum. */
template <int D> __device__ __forceinline__ void gather_sums(struct attention_state<D> *a) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        a->l[h] += __shfl_xor_sync(~0u, a->l[h], 1);
        a->l[h] += __shfl_xor_sync(~0u, a->l[h], 2);
    }
}

/* Keys (which 0) or values (1) of a page of this layer. */
template <int D>
__device__ __forceinline__ const bf *page_of(const struct attn_args &a, int seq, int page, int kv,
                                             int which) {
    int64_t at = ((int64_t)seq * a.s.n_layer + a.layer) * a.s.meta->stride + page;
    return reinterpret_cast<const bf *>(a.pool + (size_t)a.s.table[at] * a.slab_bytes) +
           (int64_t)(kv * 2 + which) * PAGE_TOKENS * D;
}

/* n rows from the page's token `from` on, by `threads` threads; rows outside [first, last] of the
 * sequence become zeros, for what lies there may be no number. */
template <int D>
__device__ __forceinline__ void fetch_tokens(uint32_t to, const bf *page, int page_index, int from,
                                             int n, int first, int last, int thread, int threads) {
    constexpr int PIECES = D / 8;
    for (int i = thread; i < n * PIECES; i += threads) {
        int token = from + i / PIECES, pos = page_index * PAGE_TOKENS + token;
        bool real = pos >= first && pos <= last;
        cp_async16(to + (uint32_t)(i / PIECES * pitch<D>::value + i % PIECES * 16),
                   page + (int64_t)token * D + i % PIECES * 8, real);
    }
}

struct span {
    int row, seq, pos, first; /* first position seen */
    int from, to;             /* pages of this block */
    int used;                 /* blocks that have pages */
};

__device__ __forceinline__ bool find_span(const struct attn_args &a, struct span *s) {
    int z = blockIdx.z;
    if (z >= a.s.meta->n_dec) return false;
    s->row = a.s.dec_row[z];
    s->seq = a.s.seq_of[s->row];
    s->pos = a.s.pos[s->row];
    s->first = a.window && s->pos >= a.window ? s->pos - a.window + 1 : 0;
    int p0 = s->first / PAGE_TOKENS, n = s->pos / PAGE_TOKENS - p0 + 1;
    int per = (n + a.n_split - 1) / a.n_split;
    s->used = (n + per - 1) / per;
    s->from = p0 + (int)blockIdx.x * per;
    s->to = min(s->from + per, p0 + n);
    return (int)blockIdx.x < s->used;
}

/* x = bf16(o / l) with the sink in l. */
__device__ __forceinline__ bf close_softmax(const struct attn_args &a, int head, float m, float l,
                                            float o) {
    if (a.sink) {
        float top = fmaxf(m, a.sink[head]), f = expf(m - top);
        l = l * f + expf(a.sink[head] - top);
        o *= f;
    }
    return to_bf(o / l);
}

template <int D>
__device__ static void merge_splits(const struct attn_args &a, const struct span &s,
                                    float *factor) {
    int kv = blockIdx.y, g = a.group, size = g * (D + 2);
    const float *part = a.partial + ((int64_t)blockIdx.z * a.n_kv + kv) * a.n_split * (int64_t)size;
    float *top = factor + g * a.n_split, *sum = top + g;
    for (int h = threadIdx.x; h < g; h += ATTN_BLOCK) {
        float m = -CUDART_INF_F, l = 0;
        for (int i = 0; i < s.used; i++) m = fmaxf(m, __ldcg(part + (int64_t)i * size + h));
        for (int i = 0; i < s.used; i++) {
            float f = expf(__ldcg(part + (int64_t)i * size + h) - m);
            factor[h * a.n_split + i] = f;
            l += f * __ldcg(part + (int64_t)i * size + g + h);
        }
        top[h] = m;
        sum[h] = l;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < g * D; e += ATTN_BLOCK) {
        int h = e / D;
        float o = 0;
#pragma unroll 8
        for (int i = 0; i < s.used; i++)
            o += factor[h * a.n_split + i] * __ldcg(part + (int64_t)i * size + 2 * g + e);
        int head = kv * g + h;
        a.o[((int64_t)s.row * a.n_head + head) * D + e % D] =
            close_softmax(a, head, top[h], sum[h], o);
    }
}

/* The four warps' states into one: in place for a row seen by one block, else to its part. */
template <int D>
__device__ static void merge_warps(const struct attn_args &a, const struct span &s,
                                   struct attention_state<D> *t, float *shared) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = a.group, kv = blockIdx.y;
    float *o = shared, *m = o + ATTN_WARPS * MAX_GROUP * D, *l = m + ATTN_WARPS * MAX_GROUP;
    gather_sums<D>(t);
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            o[(warp * MAX_GROUP + lane / 4 + j / 2 * 8) * D + i * 8 + lane % 4 * 2 + j % 2] =
                t->o[i][j];
    if (lane % 4 == 0)
        for (int j = 0; j < 2; j++) {
            m[warp * MAX_GROUP + lane / 4 + j * 8] = t->m[j];
            l[warp * MAX_GROUP + lane / 4 + j * 8] = t->l[j];
        }
    __syncthreads();
    int size = g * (D + 2);
    float *part =
        a.partial + (((int64_t)blockIdx.z * a.n_kv + kv) * a.n_split + blockIdx.x) * (int64_t)size;
    for (int e = threadIdx.x; e < g * D; e += ATTN_BLOCK) {
        int h = e / D;
        float top = -CUDART_INF_F, sum = 0, v = 0;
        for (int w = 0; w < ATTN_WARPS; w++) top = fmaxf(top, m[w * MAX_GROUP + h]);
        for (int w = 0; w < ATTN_WARPS; w++) {
            float f = expf(m[w * MAX_GROUP + h] - top);
            sum += f * l[w * MAX_GROUP + h];
            v += f * o[(w * MAX_GROUP + h) * D + e % D];
        }
        if (s.used == 1) {
            int head = kv * g + h;
            a.o[((int64_t)s.row * a.n_head + head) * D + e % D] =
                close_softmax(a, head, top, sum, v);
            continue;
        }
        __stcg(part + 2 * g + e, v);
        if (e % D == 0) {
            __stcg(part + h, top);
            __stcg(part + g + h, sum);
        }
    }
}

template <int D>
__global__ void __launch_bounds__(ATTN_BLOCK) attend_split(const struct attn_args a) {
    constexpr int P = pitch<D>::value, STAGE = 2 * 16 * P;
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ bool is_last;
    let_successor_start();
    wait_for_predecessor();
    struct span s;
    if (!find_span(a, &s)) return;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, kv = blockIdx.y, g = a.group;
    struct attention_state<D> t;
    begin<D>(&t);
    const bf *q = a.q + ((int64_t)s.row * a.n_head + kv * g) * D;
    load_q<D>(&t, lane / 4 < g ? q + lane / 4 * D : NULL,
              lane / 4 + 8 < g ? q + (lane / 4 + 8) * D : NULL, lane);
    uint32_t ring = shared_address(shared) + (uint32_t)(warp * SPLIT_STAGES * STAGE);
    int n = s.to - s.from, offset = warp * 16; /* this warp's tokens of every page */
    auto fetch = [&](int i) {
        uint32_t to = ring + (uint32_t)(i % SPLIT_STAGES * STAGE);
        for (int which = 0; which < 2; which++)
            fetch_tokens<D>(to + (uint32_t)(which * 16 * P),
                            page_of<D>(a, s.seq, s.from + i, kv, which), s.from + i, offset, 16,
                            s.first, s.pos, lane, 32);
    };
    for (int i = 0; i < SPLIT_STAGES - 1; i++) {
        if (i < n) fetch(i);
        cp_async_commit();
    }
    for (int i = 0; i < n; i++) {
        if (i + SPLIT_STAGES - 1 < n) fetch(i + SPLIT_STAGES - 1);
        cp_async_commit();
        cp_async_wait<SPLIT_STAGES - 1>();
        __syncwarp();
        int at = (s.from + i) * PAGE_TOKENS + offset;
        const int lo[2] = {s.first - at, s.first - at}, hi[2] = {s.pos - at, s.pos - at};
        if (lo[0] < 16 && hi[0] >= 0) {
            uint32_t stage = ring + (uint32_t)(i % SPLIT_STAGES * STAGE);
            attend<D, 2>(&t, stage, stage + 16 * P, lo, hi, a.scale, lane);
        }
        __syncwarp(); /* the stage is free for the copy after next */
    }
    cp_async_wait<0>();
    __syncthreads();
    merge_warps<D>(a, s, &t, reinterpret_cast<float *>(shared));
    if (s.used == 1) return;
    __threadfence();
    __syncthreads();
    int32_t *counter = a.counter + (int64_t)blockIdx.z * a.n_kv + kv;
    if (threadIdx.x == 0) {
        is_last = atomicAdd(counter, 1) == s.used - 1;
        if (is_last) *counter = 0;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    merge_splits<D>(a, s, reinterpret_cast<float *>(shared));
}

/* 64 query rows: (query, head of the group) pairs of neighbouring rows of one sequence. */
template <int D>
__global__ void __launch_bounds__(ATTN_BLOCK) attend_rows(const struct attn_args a) {
    constexpr int P = pitch<D>::value, HALF = PAGE_TOKENS * P, STAGE = 2 * HALF;
    extern __shared__ __align__(16) uint8_t shared[];
    wait_for_predecessor();
    int z = blockIdx.x, kv = blockIdx.y, g = a.group;
    if (z >= a.s.meta->n_pre) return;
    int row = a.s.pre_row[z], n = a.s.pre_n[z], seq = a.s.seq_of[row];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int last = a.s.pos[row + n - 1], begin_pos = a.s.pos[row];
    int first = a.window && begin_pos >= a.window ? begin_pos - a.window + 1 : 0;
    struct attention_state<D> t;
    begin<D>(&t);
    const bf *from[2];
    int pos[2], head[2], query[2];
    for (int h = 0; h < 2; h++) {
        int i = warp * 16 + lane / 4 + h * 8;
        query[h] = i / g;
        head[h] = kv * g + i % g;
        bool real = query[h] < n && i / g < 64 / g;
        pos[h] = real ? begin_pos + query[h] : -1;
        from[h] = real ? a.q + ((int64_t)(row + query[h]) * a.n_head + head[h]) * D : NULL;
    }
    load_q<D>(&t, from[0], from[1], lane);
    int p0 = first / PAGE_TOKENS, pages = last / PAGE_TOKENS - p0 + 1;
    uint32_t ring = shared_address(shared);
    auto fetch = [&](int i) {
        for (int which = 0; which < 2; which++)
            fetch_tokens<D>(ring + (uint32_t)(i % 2 * STAGE + which * HALF),
                            page_of<D>(a, seq, p0 + i, kv, which), p0 + i, 0, PAGE_TOKENS, first,
                            last, threadIdx.x, ATTN_BLOCK);
        cp_async_commit();
    };
    fetch(0);
    for (int i = 0; i < pages; i++) {
        if (i + 1 < pages) fetch(i + 1);
        if (i + 1 < pages) cp_async_wait<1>();
        else cp_async_wait<0>();
        __syncthreads();
        int at = (p0 + i) * PAGE_TOKENS, lo[2], hi[2];
        for (int h = 0; h < 2; h++) {
            lo[h] = a.window ? pos[h] - a.window + 1 - at : 0;
            hi[h] = pos[h] - at; /* negative where there is no row */
        }
        uint32_t stage = ring + (uint32_t)(i % 2 * STAGE);
        attend<D, 8>(&t, stage, stage + HALF, lo, hi, a.scale, lane);
        __syncthreads();
    }
    gather_sums<D>(&t);
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int h = j / 2;
            if (pos[h] < 0) continue;
            a.o[((int64_t)(row + query[h]) * a.n_head + head[h]) * D + i * 8 + lane % 4 * 2 +
                j % 2] = close_softmax(a, head[h], t.m[h], t.l[h], t.o[i][j]);
        }
}

template <int D> static void launch_attention(struct cu_launch *l, const struct attn_args *a) {
    if (l->n_dec) {
        size_t ring = (size_t)ATTN_WARPS * SPLIT_STAGES * 2 * 16 * pitch<D>::value;
        size_t warps = sizeof(float) * ATTN_WARPS * MAX_GROUP * (D + 2);
        size_t splits = sizeof(float) * MAX_GROUP * (MAX_SPLIT + 2);
        size_t smem = ring > warps ? ring : warps;
        if (splits > smem) smem = splits;
        LAUNCH(l, attend_split<D>,
               dim3((unsigned)a->n_split, (unsigned)a->n_kv, (unsigned)l->n_dec), ATTN_BLOCK, smem,
               *a);
    }
    if (l->n_pre)
        LAUNCH(l, attend_rows<D>, dim3((unsigned)l->n_pre, (unsigned)a->n_kv), ATTN_BLOCK,
               (size_t)2 * 2 * PAGE_TOKENS * pitch<D>::value, *a);
}

void cu_attention(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    const auto &p = op->u.attention;
    int n_kv = p.cache.n_kv;
    struct attn_args a = {l->step,
                          as_bf(p.q),
                          as_bf(p.o),
                          p.cache.pool,
                          p.cache.slab_bytes,
                          p.cache.layer,
                          p.n_head,
                          n_kv,
                          p.n_head / n_kv,
                          p.window,
                          attention_splits(l->n_dec, n_kv),
                          p.scale,
                          w->v0,
                          l->partial,
                          l->counter};
    if (p.cache.head_dim == 32) launch_attention<32>(l, &a);
    else if (p.cache.head_dim == 64) launch_attention<64>(l, &a);
    else launch_attention<128>(l, &a);
}
