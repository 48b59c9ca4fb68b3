/* Activation rows in shared memory, and the reductions of a block. */
#ifndef SUMI_OPS_CUDA_ROWS_CUH
#define SUMI_OPS_CUDA_ROWS_CUH

#include "ops/cuda/cu.cuh"

enum { BLOCK = 256, WARPS = BLOCK / 32 };

/* Bytes between staged rows: 16 more than a multiple of 128 keeps the 16-byte loads of a warp,
 * which touch two rows at a time, out of each other's banks. */
BOTH size_t staged_pitch(int n_chunk) {
    return (size_t)n_chunk * 128 + 16;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int i = 16; i > 0; i /= 2) v += __shfl_xor_sync(~0u, v, i);
    return v;
}

__device__ __forceinline__ float square_sum(const uint4 &v) {
    float a = low_half(v.x), b = high_half(v.x), c = low_half(v.y), d = high_half(v.y);
    float e = low_half(v.z), f = high_half(v.z), g = low_half(v.w), h = high_half(v.w);
    return ((a * a + b * b) + (c * c + d * d)) + ((e * e + f * f) + (g * g + h * h));
}

__device__ __forceinline__ uint32_t norm_pair(uint32_t v, float inv, float w0, float w1) {
    return pack(low_half(v) * inv * w0, high_half(v) * inv * w1);
}

__device__ __forceinline__ uint4 norm_eight(uint4 v, float inv, const float *w) {
    float4 a = *reinterpret_cast<const float4 *>(w), b = *reinterpret_cast<const float4 *>(w + 4);
    return make_uint4(norm_pair(v.x, inv, a.x, a.y), norm_pair(v.y, inv, a.z, a.w),
                      norm_pair(v.z, inv, b.x, b.y), norm_pair(v.w, inv, b.z, b.w));
}

/* Rows x[map[r]], r < count <= slots, slots 1, 2, 4 or 8, into shared memory, normed if norm is
 * given, zeros up to a whole chunk. Ends with a barrier. sums: [WARPS] in shared memory. */
__device__ static inline void stage_rows(uint8_t *to, const bf *x, int64_t x_stride,
                                         const int32_t *map, int count, int slots, int n_in,
                                         int n_chunk, const float *norm, float eps, float *sums) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int per_row = WARPS / slots, r = warp / per_row, part = warp % per_row;
    uint8_t *row = to + (size_t)r * staged_pitch(n_chunk);
    const uint4 *from =
        reinterpret_cast<const uint4 *>(x + (int64_t)(r < count && map ? map[r] : r) * x_stride);
    float sum = 0;
    for (int i = part * 32 + lane; i < n_chunk * 8 && r < count; i += per_row * 32) {
        uint4 v = i * 8 < n_in ? from[i] : make_uint4(0, 0, 0, 0);
        reinterpret_cast<uint4 *>(row)[i] = v;
        sum += square_sum(v);
    }
    if (norm) {
        sum = warp_sum(sum);
        if (lane == 0) sums[warp] = sum;
        __syncthreads();
        float total = 0;
        for (int i = 0; i < per_row; i++) total += sums[r * per_row + i];
        float inv = 1.0f / sqrtf(total / (float)n_in + eps);
        for (int i = part * 32 + lane; i * 8 < n_in && r < count; i += per_row * 32) {
            uint4 *v = reinterpret_cast<uint4 *>(row) + i; /* the thread's own values */
            *v = norm_eight(*v, inv, norm + i * 8);
        }
    }
    __syncthreads();
}

/* A lane's share of a chunk of a staged row. */
__device__ __forceinline__ row_frag staged_row(const uint8_t *rows, int row, int chunk, int n_chunk,
                                               int lane) {
    const uint4 *p = reinterpret_cast<const uint4 *>(rows + (size_t)row * staged_pitch(n_chunk) +
                                                     (size_t)chunk * 128 + (lane % 4) * 32);
    return {p[0], p[1]};
}

/* The same of a row in device memory that ends at n_in. */
__device__ __forceinline__ row_frag global_row(const bf *row, int chunk, int n_in, int lane) {
    int k = chunk * CHUNK + (lane % 4) * 16;
    if (k >= n_in) return zero_row();
    const uint4 *p = reinterpret_cast<const uint4 *>(row + k);
    return {p[0], p[1]};
}

/* Partial tiles of all warps: [WARPS][count][128]. Element (m, n) of an n-tile is lane
 * 4 (m % 8) + n / 2, register 2 (m / 8) + n % 2. */
__device__ __forceinline__ void put_partial(float *red, int count, int at, const float c[4]) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    *reinterpret_cast<float4 *>(red + (size_t)(warp * count + at) * 128 + lane * 4) =
        make_float4(c[0], c[1], c[2], c[3]);
}

/* The sum over warps, in their order. */
__device__ __forceinline__ float take_partial(const float *red, int count, int at, int m, int n) {
    int place = ((m % 8) * 4 + n / 2) * 4 + m / 8 * 2 + n % 2;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += red[(size_t)(w * count + at) * 128 + place];
    return sum;
}

#endif
