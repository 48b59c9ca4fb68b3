/* Experts for many rows: slots are sorted by expert, then each block multiplies 128 outputs of one
 * expert with up to 64 of its slots, gathered row by row. Bound by tensor cores, or by the bytes of
 * the experts while each has few slots. */
#include "ops/moe/moe.cuh"

/* One block an expert: counts the slots of lower experts and its own, then lists its own. No block
 * waits for another, and the order does not depend on timing. */
__global__ void __launch_bounds__(BLOCK)
    sort_slots(const int32_t *ids, const int32_t *n_row, int top_k, int n_expert, int32_t *start,
               int32_t *order) {
    __shared__ int32_t below[WARPS], mine[WARPS];
    wait_for_predecessor();
    int e = blockIdx.x, n = *n_row * top_k, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int low = 0;
    for (int i = threadIdx.x; i < n; i += BLOCK) low += ids[i] < e;
#pragma unroll
    for (int i = 16; i > 0; i /= 2) low += __shfl_xor_sync(~0u, low, i);
    if (lane == 0) below[warp] = low;
    __syncthreads();
    int at = 0;
    for (int i = 0; i < WARPS; i++) at += below[i];
    if (threadIdx.x == 0) start[e] = at;
    for (int base = 0; base < n; base += BLOCK) {
        int i = base + (int)threadIdx.x;
        bool is = i < n && ids[i] == e;
        unsigned all = __ballot_sync(~0u, is);
        if (lane == 0) mine[warp] = __popc(all);
        __syncthreads();
        int before = at;
        for (int w = 0; w < WARPS; w++) {
            if (w < warp) before += mine[w];
            at += mine[w];
        }
        if (is) order[before + __popc(all & ((1u << lane) - 1))] = i;
        __syncthreads();
    }
    if (e == n_expert - 1 && threadIdx.x == 0) start[n_expert] = at;
}

/* One thread lists the blocks; n_expert is small. */
__global__ void list_blocks(const int32_t *start, int n_expert, int32_t *blocks) {
    wait_for_predecessor();
    int n = 0;
    for (int e = 0; e < n_expert; e++)
        for (int at = start[e]; at < start[e + 1]; at += GROUP_ROWS, n++) {
            blocks[1 + 3 * n] = e;
            blocks[2 + 3 * n] = at;
            blocks[3 + 3 * n] = min(GROUP_ROWS, start[e + 1] - at);
        }
    blocks[0] = n;
}

void cu_sort_slots(struct cu_launch *l, const int32_t *ids, int n_expert, int top_k,
                   int32_t *order) {
    LAUNCH(l, sort_slots, dim3((unsigned)n_expert), BLOCK, 0, ids, &l->step.meta->n_row, top_k,
           n_expert, order, order + n_expert + 1);
    LAUNCH(l, list_blocks, dim3(1), 1, 0, (const int32_t *)order, n_expert, l->blocks);
}

enum { GROUP_TILES = 8, GROUP_PITCH = 144, GROUP_STAGES = 3, GROUP_N = GROUP_ROWS / 16 };

__device__ __forceinline__ void fetch_slots(uint8_t *stage, const struct group_args &a,
                                            const int32_t *slots, int count, int chunk) {
    for (int i = threadIdx.x; i < GROUP_ROWS * 8; i += BLOCK) {
        int r = i / 8, k = chunk * CHUNK + i % 8 * 8;
        bool real = r < count && k < a.m.n_in;
        const bf *from = a.x + (real ? (int64_t)(slots[r] / a.x_top_k) * a.x_stride + k : 0);
        cp_async16(shared_address(stage + r * GROUP_PITCH + i % 8 * 16), from, real);
    }
}

/* Warps stand 4 along the outputs (2 tiles each) by 2 along the slots (32 each). */
template <int F, bool GATE>
__global__ void __launch_bounds__(BLOCK) grouped(const struct group_args a) {
    __shared__ __align__(16) uint8_t stages[GROUP_STAGES][GROUP_ROWS * GROUP_PITCH];
    __shared__ int32_t slots[GROUP_ROWS];
    wait_for_predecessor();
    if ((int)blockIdx.y >= a.blocks[0]) return;
    const int32_t *block = a.blocks + 1 + 3 * blockIdx.y;
    int expert = block[0], count = block[2], n_chunk = a.m.n_chunk;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int local = blockIdx.x * GROUP_TILES + warp % 4 * 2; /* tile within the expert */
    if (threadIdx.x < count) slots[threadIdx.x] = a.order[block[1] + (int)threadIdx.x];
    __syncthreads();
    const uint8_t *base = a.m.data + (size_t)expert * a.tiles * a.m.tile_bytes;
    const uint8_t *w0 = base + (size_t)min(local, a.tiles - 1) * a.m.tile_bytes;
    const uint8_t *w1 = base + (size_t)min(local + 1, a.tiles - 1) * a.m.tile_bytes;
    for (int s = 0; s < GROUP_STAGES - 1; s++) {
        if (s < n_chunk) fetch_slots(stages[s], a, slots, count, s);
        cp_async_commit();
    }
    chunk_frag<F> f0, f1;
    load_chunk(&f0, w0, 0, n_chunk, lane);
    load_chunk(&f1, w1, 0, n_chunk, lane);
    float c[2][GROUP_N][4] = {};
    for (int chunk = 0; chunk < n_chunk; chunk++) {
        uint32_t lo[2][8], hi[2][8];
        expand(&f0, lo[0], hi[0]);
        expand(&f1, lo[1], hi[1]);
        if (chunk + 1 < n_chunk) {
            load_chunk(&f0, w0, chunk + 1, n_chunk, lane);
            load_chunk(&f1, w1, chunk + 1, n_chunk, lane);
        }
        cp_async_wait<GROUP_STAGES - 2>();
        __syncthreads(); /* the stage is complete, and the one before it free again */
        int ahead = chunk + GROUP_STAGES - 1;
        if (ahead < n_chunk) fetch_slots(stages[ahead % GROUP_STAGES], a, slots, count, ahead);
        cp_async_commit();
        const uint8_t *stage = stages[chunk % GROUP_STAGES];
#pragma unroll
        for (int n = 0; n < GROUP_N; n++) {
            int r = warp / 4 * (GROUP_ROWS / 2) + n * 8 + lane / 4;
            const uint4 *p =
                reinterpret_cast<const uint4 *>(stage + r * GROUP_PITCH + lane % 4 * 32);
            row_frag b = {p[0], p[1]};
            mma_chunk(c[0][n], lo[0], hi[0], b);
            mma_chunk(c[1][n], lo[1], hi[1], b);
        }
    }
    cp_async_wait<0>();
    if (local >= a.tiles) return;
    const float *scale = a.m.scale + (int64_t)expert * a.tiles + local;
#pragma unroll
    for (int n = 0; n < GROUP_N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int m = lane / 4 + i / 2 * 8;
            int r = warp / 4 * (GROUP_ROWS / 2) + n * 8 + lane % 4 * 2 + i % 2;
            if (r >= count) continue;
            bf *y = a.y + (int64_t)slots[r] * a.y_stride;
            float v = c[0][n][i] * scale[0];
            if (GATE) {
                y[local / 2 * TILE_ROWS + m] = to_bf(silu(v) * (c[1][n][i] * scale[1]));
                continue;
            }
            int o = local * TILE_ROWS + m;
            if (o < a.n_out) y[o] = to_bf(v);
            if (o + TILE_ROWS < a.n_out) y[o + TILE_ROWS] = to_bf(c[1][n][i] * scale[1]);
        }
}

void cu_grouped(struct cu_launch *l, bool gate, const struct group_args *a) {
    dim3 grid((unsigned)div_up(a->tiles, GROUP_TILES),
              (unsigned)group_blocks(a->rows, a->n_expert));
    if (a->m.format == MAT_BF16) {
        if (gate) LAUNCH(l, (grouped<MAT_BF16, true>), grid, BLOCK, 0, *a);
        else LAUNCH(l, (grouped<MAT_BF16, false>), grid, BLOCK, 0, *a);
    } else {
        if (gate) LAUNCH(l, (grouped<MAT_NVFP4, true>), grid, BLOCK, 0, *a);
        else LAUNCH(l, (grouped<MAT_NVFP4, false>), grid, BLOCK, 0, *a);
    }
}
