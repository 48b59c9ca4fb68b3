/* Norm and projections (one matrix: q, k, v rows under one another), then one warp for each head of
 * a row: norm, rotation, cache write. */
#include "ops/cuda/rows.cuh"

struct heads_args {
    struct cu_step s;
    bf *q, *kv;
    const float *q_norm, *k_norm, *inv_freq;
    float eps;
    uint8_t *pool;
    size_t slab_bytes;
    int layer, n_head, n_kv;
};

/* A lane holds channels lane + 32 j. */
template <int D> struct head { float v[D / 32]; };

template <int D>
__device__ __forceinline__ void norm_head(struct head<D> *h, const float *w, float eps, int lane) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < D / 32; j++) sum += h->v[j] * h->v[j];
    float inv = 1.0f / sqrtf(warp_sum(sum) / (float)D + eps);
#pragma unroll
    for (int j = 0; j < D / 32; j++) h->v[j] = rounded(h->v[j] * inv * w[lane + 32 * j]);
}

/* Products and sums are rounded one by one, as in the reference. */
__device__ __forceinline__ void rotate_pair(float *a, float *b, int pos, float freq) {
    float angle = (float)pos * freq, c = cosf(angle), s = sinf(angle), x = *a, y = *b;
    *a = rounded(__fsub_rn(__fmul_rn(x, c), __fmul_rn(y, s)));
    *b = rounded(__fadd_rn(__fmul_rn(y, c), __fmul_rn(x, s)));
}

template <int D>
__device__ __forceinline__ void rotate(struct head<D> *h, const float *freq, int pos, int lane) {
    if constexpr (D == 32) { /* the partner of channel i is in lane i ^ 16 */
        float other = __shfl_xor_sync(~0u, h->v[0], 16);
        float a = lane < 16 ? h->v[0] : other, b = lane < 16 ? other : h->v[0];
        rotate_pair(&a, &b, pos, freq[lane % 16]);
        h->v[0] = lane < 16 ? a : b;
    } else {
#pragma unroll
        for (int j = 0; j < D / 64; j++)
            rotate_pair(&h->v[j], &h->v[j + D / 64], pos, freq[lane + 32 * j]);
    }
}

template <int D> __global__ void __launch_bounds__(128) finish_heads(const struct heads_args a) {
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.y, h = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (r >= a.s.meta->n_row || h >= a.n_head + 2 * a.n_kv) return;
    bool is_q = h < a.n_head, is_v = h >= a.n_head + a.n_kv;
    int pos = a.s.pos[r], k = is_q ? 0 : (h - a.n_head) % a.n_kv;
    bf *from = is_q ? a.q + ((int64_t)r * a.n_head + h) * D
                    : a.kv + ((int64_t)r * 2 * a.n_kv + h - a.n_head) * D;
    struct head<D> x;
#pragma unroll
    for (int j = 0; j < D / 32; j++) x.v[j] = to_f32(from[lane + 32 * j]);
    if (!is_v) {
        norm_head<D>(&x, is_q ? a.q_norm : a.k_norm, a.eps, lane);
        if (a.inv_freq) rotate<D>(&x, a.inv_freq, pos, lane);
    }
    bf *to = from;
    if (!is_q) {
        int64_t at = ((int64_t)a.s.seq_of[r] * a.s.n_layer + a.layer) * a.s.meta->stride;
        int32_t slab = a.s.table[at + pos / PAGE_TOKENS];
        to = reinterpret_cast<bf *>(a.pool + (size_t)slab * a.slab_bytes) +
             ((int64_t)(k * 2 + is_v) * PAGE_TOKENS + pos % PAGE_TOKENS) * D;
    }
#pragma unroll
    for (int j = 0; j < D / 32; j++) to[lane + 32 * j] = to_bf(x.v[j]);
}

void cu_norm_qkv(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    const auto &p = op->u.norm_qkv;
    int d = p.cache.head_dim, q = p.n_head * d, kv = 2 * p.cache.n_kv * d;
    struct linear_args a = {};
    a.m = w->m[0];
    a.x = as_bf(op->x);
    a.x_stride = op->hidden;
    a.norm = w->norm;
    a.eps = op->eps;
    a.n_row = &l->step.meta->n_row;
    a.rows = l->rows;
    a.y = as_bf(p.q_out);
    a.y_stride = q;
    a.y2 = as_bf(p.kv);
    a.y2_stride = kv;
    a.split = q;
    a.scratch = as_bf(p.a);
    cu_linear(l, EPI_STORE, &a);
    struct heads_args h = {l->step,       a.y,          a.y2,
                           w->v0,         w->v1,        p.inv_freq,
                           op->eps,       p.cache.pool, p.cache.slab_bytes,
                           p.cache.layer, p.n_head,     p.cache.n_kv};
    dim3 grid((unsigned)div_up(p.n_head + 2 * p.cache.n_kv, 4), (unsigned)l->rows);
    if (d == 32) LAUNCH(l, finish_heads<32>, grid, 128, 0, h);
    else if (d == 64) LAUNCH(l, finish_heads<64>, grid, 128, 0, h);
    else LAUNCH(l, finish_heads<128>, grid, 128, 0, h);
}
