/* Linear layers. Up to 64 rows a block owns 16 outputs (or 16 gate and 16 up rows), its eight warps
 * share the inputs and their sums meet in shared memory, in a fixed order: bound by the bytes of
 * the matrix. Above that a block owns 128 outputs of 128 rows: bound by tensor cores. */
#include "ops/cuda/rows.cuh"

/* How many chunks a warp requests before it uses the first. */
template <int F, int TM> struct depth {
    static const int value = F == MAT_NVFP4 || TM == 1 ? 4 : 2;
};

template <int F, int TM, int U> struct batch_frag { chunk_frag<F> c[U][TM]; };

template <int F, int TM, int U>
__device__ __forceinline__ void load_batch(batch_frag<F, TM, U> *f, const struct cu_mat &m,
                                           int first_tile, int base, int lane) {
#pragma unroll
    for (int u = 0; u < U; u++) {
        int chunk = base + u * WARPS;
        if (chunk >= m.n_chunk) continue;
#pragma unroll
        for (int i = 0; i < TM; i++)
            load_chunk(&f->c[u][i], m.data + (size_t)(first_tile + i) * m.tile_bytes, chunk,
                       m.n_chunk, lane);
    }
}

template <int EPI>
__device__ __forceinline__ void finish(const struct linear_args &a, int tile, int m, int r, float v,
                                       float up) {
    int o = (EPI == EPI_GATE ? tile / 2 : tile) * TILE_ROWS + m;
    if (EPI == EPI_GATE) {
        a.y[(int64_t)r * a.y_stride + o] = to_bf(silu(rounded(v)) * rounded(up));
        return;
    }
    if (o >= a.m.n_out) return;
    if (EPI == EPI_F32) {
        a.f[(int64_t)r * a.f_stride + o] = v;
    } else if (EPI == EPI_ADD) {
        bf *x = a.add + (int64_t)r * a.y_stride + o;
        bf y = to_bf(v);
        if (a.y) a.y[(int64_t)r * a.y_stride + o] = y;
        *x = to_bf(to_f32(*x) + to_f32(y));
    } else if (o < a.split) {
        a.y[(int64_t)r * a.y_stride + o] = to_bf(v);
    } else {
        a.y2[(int64_t)r * a.y2_stride + o - a.split] = to_bf(v);
    }
}

/* NT 0: up to 8 rows, staged in shared memory. Else 8 NT rows, read from device memory. */
template <int F, int NT, int EPI>
__global__ void __launch_bounds__(BLOCK) small_linear(const struct linear_args a) {
    constexpr int TM = EPI == EPI_GATE ? 2 : 1, N = NT ? NT : 1, U = depth<F, TM>::value;
    extern __shared__ __align__(16) uint8_t shared[];
    __shared__ float sums[WARPS];
    float *red = reinterpret_cast<float *>(shared);
    uint8_t *rows = shared + sizeof(float) * WARPS * TM * N * 128;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tile = blockIdx.x * TM;
    batch_frag<F, TM, U> f;
    load_batch<F, TM, U>(&f, a.m, tile, warp, lane); /* weights depend on no other kernel */
    let_successor_start();
    wait_for_predecessor();
    int count = min(*a.n_row, a.rows);
    if (NT == 0)
        stage_rows(rows, a.x, a.x_stride, a.row_map, count, a.rows, a.m.n_in, a.m.n_chunk, a.norm,
                   a.eps, sums);
    float c[TM][N][4] = {};
    for (int base = warp; base < a.m.n_chunk; base += U * WARPS) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            int chunk = base + u * WARPS;
            if (chunk >= a.m.n_chunk) continue;
            uint32_t lo[TM][8], hi[TM][8];
#pragma unroll
            for (int i = 0; i < TM; i++) expand(&f.c[u][i], lo[i], hi[i]);
#pragma unroll
            for (int n = 0; n < N; n++) {
                int r = n * 8 + lane / 4;
                row_frag b = zero_row();
                if (r < count)
                    b = NT == 0 ? staged_row(rows, r, chunk, a.m.n_chunk, lane)
                                : global_row(a.x + (int64_t)r * a.x_stride, chunk, a.m.n_in, lane);
#pragma unroll
                for (int i = 0; i < TM; i++) mma_chunk(c[i][n], lo[i], hi[i], b);
            }
        }
        load_batch<F, TM, U>(&f, a.m, tile, base + U * WARPS, lane);
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int n = 0; n < N; n++) put_partial(red, TM * N, i * N + n, c[i][n]);
    __syncthreads();
    for (int e = threadIdx.x; e < count * TILE_ROWS; e += BLOCK) {
        int m = e % TILE_ROWS, r = e / TILE_ROWS;
        float v = take_partial(red, TM * N, r / 8, m, r % 8) * a.m.scale[tile];
        float up =
            TM == 2 ? take_partial(red, TM * N, N + r / 8, m, r % 8) * a.m.scale[tile + 1] : 0.0f;
        finish<EPI>(a, tile, m, r, v, up);
    }
}

enum { BIG_TILES = 8, BIG_ROWS = 128, BIG_PITCH = 144, BIG_STAGES = 3 };

/* One chunk of BIG_ROWS activation rows on its way to shared memory. */
__device__ __forceinline__ void fetch_rows(uint8_t *stage, const struct linear_args &a, int first,
                                           int count, int chunk) {
    for (int i = threadIdx.x; i < BIG_ROWS * 8; i += BLOCK) {
        int r = i / 8, k = chunk * CHUNK + i % 8 * 8, row = first + r;
        bool real = row < count && k < a.m.n_in;
        const bf *from = a.x + (real ? (int64_t)row * a.x_stride + k : 0);
        cp_async16(shared_address(stage + r * BIG_PITCH + i % 8 * 16), from, real);
    }
}

/* Warps stand 4 along the outputs (2 tiles each) by 2 along the rows (64 each). */
template <int F, int EPI>
__global__ void __launch_bounds__(BLOCK, 1) big_linear(const struct linear_args a) {
    extern __shared__ __align__(16) uint8_t shared[];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_chunk = a.m.n_chunk;
    int tile = blockIdx.x * BIG_TILES + warp % 4 * 2, first = blockIdx.y * BIG_ROWS;
    const uint8_t *w0 = a.m.data + (size_t)min(tile, a.m.n_tile - 1) * a.m.tile_bytes;
    const uint8_t *w1 = a.m.data + (size_t)min(tile + 1, a.m.n_tile - 1) * a.m.tile_bytes;
    wait_for_predecessor();
    int count = *a.n_row;
    if (first >= count) return;
    for (int s = 0; s < BIG_STAGES - 1; s++) {
        if (s < n_chunk) fetch_rows(shared + s * BIG_ROWS * BIG_PITCH, a, first, count, s);
        cp_async_commit();
    }
    chunk_frag<F> f0, f1;
    load_chunk(&f0, w0, 0, n_chunk, lane);
    load_chunk(&f1, w1, 0, n_chunk, lane);
    float c[2][8][4] = {};
    for (int chunk = 0; chunk < n_chunk; chunk++) {
        uint32_t lo[2][8], hi[2][8];
        expand(&f0, lo[0], hi[0]);
        expand(&f1, lo[1], hi[1]);
        if (chunk + 1 < n_chunk) {
            load_chunk(&f0, w0, chunk + 1, n_chunk, lane);
            load_chunk(&f1, w1, chunk + 1, n_chunk, lane);
        }
        cp_async_wait<BIG_STAGES - 2>();
        __syncthreads(); /* the stage is complete, and the one before it free again */
        int ahead = chunk + BIG_STAGES - 1;
        if (ahead < n_chunk)
            fetch_rows(shared + ahead % BIG_STAGES * BIG_ROWS * BIG_PITCH, a, first, count, ahead);
        cp_async_commit();
        const uint8_t *stage = shared + chunk % BIG_STAGES * BIG_ROWS * BIG_PITCH;
#pragma unroll
        for (int n = 0; n < 8; n++) {
            int r = warp / 4 * 64 + n * 8 + lane / 4;
            const uint4 *p = reinterpret_cast<const uint4 *>(stage + r * BIG_PITCH + lane % 4 * 32);
            row_frag b = {p[0], p[1]};
            mma_chunk(c[0][n], lo[0], hi[0], b);
            mma_chunk(c[1][n], lo[1], hi[1], b);
        }
    }
    cp_async_wait<0>();
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int m = lane / 4 + i / 2 * 8;
            int r = first + warp / 4 * 64 + n * 8 + lane % 4 * 2 + i % 2;
            if (r >= count || tile >= a.m.n_tile) continue;
            float v = c[0][n][i] * a.m.scale[tile];
            if (EPI == EPI_GATE) {
                finish<EPI>(a, tile, m, r, v, c[1][n][i] * a.m.scale[tile + 1]);
            } else {
                finish<EPI>(a, tile, m, r, v, 0);
                if (tile + 1 < a.m.n_tile)
                    finish<EPI>(a, tile + 1, m, r, c[1][n][i] * a.m.scale[tile + 1], 0);
            }
        }
}

template <int F, int NT, int EPI>
static void launch_small(struct cu_launch *l, const struct linear_args *a) {
    constexpr int TM = EPI == EPI_GATE ? 2 : 1, N = NT ? NT : 1;
    size_t smem = sizeof(float) * WARPS * TM * N * 128;
    if (NT == 0) smem += (size_t)a->rows * staged_pitch(a->m.n_chunk);
    LAUNCH(l, (small_linear<F, NT, EPI>), dim3(a->m.n_tile / TM), BLOCK, smem, *a);
}

template <int F, int EPI> static void launch_any(struct cu_launch *l, struct linear_args a) {
    if (a.rows <= STAGED_ROWS && (size_t)a.rows * staged_pitch(a.m.n_chunk) <= (size_t)160 << 10) {
        launch_small<F, 0, EPI>(l, &a);
        return;
    }
    if (a.norm || a.row_map) {
        cu_norm(l, a.x, a.row_map, a.norm, a.m.n_in, a.eps, a.n_row, a.rows, a.scratch);
        a.x = a.scratch;
        a.x_stride = a.m.n_in;
        a.norm = NULL;
        a.row_map = NULL;
    }
    if (a.rows <= 16) {
        launch_small<F, 2, EPI>(l, &a);
    } else if (a.rows <= 32) {
        launch_small<F, 4, EPI>(l, &a);
    } else if (a.rows <= SMALL_ROWS) {
        launch_small<F, 8, EPI>(l, &a);
    } else {
        LAUNCH(l, (big_linear<F, EPI>),
               dim3(div_up(a.m.n_tile, BIG_TILES), div_up(a.rows, BIG_ROWS)), BLOCK,
               BIG_STAGES * BIG_ROWS * BIG_PITCH, a);
    }
}

template <int F>
static void launch_epilogue(struct cu_launch *l, enum epilogue e, const struct linear_args *a) {
    switch (e) {
    case EPI_STORE: launch_any<F, EPI_STORE>(l, *a); break;
    case EPI_ADD: launch_any<F, EPI_ADD>(l, *a); break;
    case EPI_F32: launch_any<F, EPI_F32>(l, *a); break;
    case EPI_GATE: launch_any<F, EPI_GATE>(l, *a); break;
    }
}

void cu_linear(struct cu_launch *l, enum epilogue e, const struct linear_args *a) {
    if (a->m.format == MAT_BF16) launch_epilogue<MAT_BF16>(l, e, a);
    else launch_epilogue<MAT_NVFP4>(l, e, a);
}

/* One block a row. */
__global__ void __launch_bounds__(BLOCK)
    norm_rows(const bf *x, const int32_t *row_map, const float *w, int n, float eps,
              const int32_t *n_row, bf *a) {
    __shared__ float sums[WARPS];
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.x;
    if (r >= *n_row) return;
    const uint4 *from =
        reinterpret_cast<const uint4 *>(x + (int64_t)(row_map ? row_map[r] : r) * n);
    uint4 *to = reinterpret_cast<uint4 *>(a + (int64_t)r * n);
    float sum = 0, total = 0;
    for (int i = threadIdx.x; i * 8 < n; i += BLOCK) sum += square_sum(from[i]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    for (int i = 0; i < WARPS; i++) total += sums[i];
    float inv = 1.0f / sqrtf(total / (float)n + eps);
    for (int i = threadIdx.x; i * 8 < n; i += BLOCK)
        to[i] = w ? norm_eight(from[i], inv, w + i * 8) : from[i];
}

void cu_norm(struct cu_launch *l, const bf *x, const int32_t *row_map, const float *w, int n,
             float eps, const int32_t *n_row, int rows, bf *a) {
    LAUNCH(l, norm_rows, dim3((unsigned)rows), BLOCK, 0, x, row_map, w, n, eps, n_row, a);
}
