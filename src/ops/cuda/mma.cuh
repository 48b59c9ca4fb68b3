/* Fragments of mma.m16n8k16 and what a warp does with them. */
#ifndef SUMI_OPS_CUDA_MMA_CUH
#define SUMI_OPS_CUDA_MMA_CUH

#include <cuda_bf16.h>
#include <math_constants.h>

#include "ops/cuda/layout.cuh"

typedef __nv_bfloat16 bf;

__device__ __forceinline__ float to_f32(bf x) {
    return __bfloat162float(x);
}

__device__ __forceinline__ bf to_bf(float x) {
    return __float2bfloat16_rn(x);
}

__device__ __forceinline__ float rounded(float x) {
    return to_f32(to_bf(x));
}

__device__ __forceinline__ float low_half(uint32_t pair) {
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float high_half(uint32_t pair) {
    return __uint_as_float(pair & 0xFFFF0000u);
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
    __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&v);
}

__device__ __forceinline__ uint32_t mul_pair(uint32_t a, uint32_t b) {
    __nv_bfloat162 v =
        __hmul2(*reinterpret_cast<__nv_bfloat162 *>(&a), *reinterpret_cast<__nv_bfloat162 *>(&b));
    return *reinterpret_cast<uint32_t *>(&v);
}

__device__ __forceinline__ float silu(float g) {
    return g / (1.0f + expf(-g));
}

/* c += a * b; a: 16 rows x 16, b: 16 x 8 columns. */
__device__ __forceinline__ void mma(float c[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* A lane's share of one chunk of a tile: inputs 16t .. 16t + 15 of rows g and g + 8. */
template <int F> struct chunk_frag;

template <> struct chunk_frag<MAT_BF16> { uint4 w[4]; };

template <> struct chunk_frag<MAT_NVFP4> {
    uint4 codes;
    uint32_t scales;
};

__device__ __forceinline__ uint4 load_stream(const uint8_t *p) {
    return __ldcs(reinterpret_cast<const uint4 *>(p));
}

__device__ __forceinline__ void load_chunk(chunk_frag<MAT_BF16> *f, const uint8_t *tile, int chunk,
                                           int n_chunk, int lane) {
    (void)n_chunk;
#pragma unroll
    for (int j = 0; j < 4; j++) f->w[j] = load_stream(tile + bf16_offset(chunk, j, lane));
}

__device__ __forceinline__ void load_chunk(chunk_frag<MAT_NVFP4> *f, const uint8_t *tile, int chunk,
                                           int n_chunk, int lane) {
    f->codes = load_stream(tile + code_offset(chunk, lane));
    f->scales =
        __ldg(reinterpret_cast<const uint16_t *>(tile + scale_offset(n_chunk, chunk, lane)));
}

/* Rows g and g + 8 as bf16 pairs: r[2s], r[2s + 1] are the pairs of step s. */
__device__ __forceinline__ void expand(const chunk_frag<MAT_BF16> *f, uint32_t lo[8],
                                       uint32_t hi[8]) {
    const uint4 *w = f->w;
    lo[0] = w[0].x, lo[1] = w[0].y, lo[2] = w[0].z, lo[3] = w[0].w;
    lo[4] = w[1].x, lo[5] = w[1].y, lo[6] = w[1].z, lo[7] = w[1].w;
    hi[0] = w[2].x, hi[1] = w[2].y, hi[2] = w[2].z, hi[3] = w[2].w;
    hi[4] = w[3].x, hi[5] = w[3].y, hi[6] = w[3].z, hi[7] = w[3].w;
}

__device__ __forceinline__ void expand(const chunk_frag<MAT_NVFP4> *f, uint32_t lo[8],
                                       uint32_t hi[8]) {
    uint32_t sl = scale_pair(f->scales & 0xFF), sh = scale_pair(f->scales >> 8);
#pragma unroll
    for (int p = 0; p < 4; p++) {
        lo[p] = mul_pair(code_pair(f->codes.x, p), sl);
        lo[p + 4] = mul_pair(code_pair(f->codes.y, p), sl);
        hi[p] = mul_pair(code_pair(f->codes.z, p), sh);
        hi[p + 4] = mul_pair(code_pair(f->codes.w, p), sh);
    }
}

/* A lane's share of one chunk of an activation row. */
struct row_frag {
    uint4 low, high;
};

__device__ __forceinline__ row_frag zero_row() {
    return {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
}

/* c += (expanded chunk) * (8 rows), one n-tile. */
__device__ __forceinline__ void mma_chunk(float c[4], const uint32_t lo[8], const uint32_t hi[8],
                                          const row_frag &b) {
    mma(c, lo[0], hi[0], lo[1], hi[1], b.low.x, b.low.y);
    mma(c, lo[2], hi[2], lo[3], hi[3], b.low.z, b.low.w);
    mma(c, lo[4], hi[4], lo[5], hi[5], b.high.x, b.high.y);
    mma(c, lo[6], hi[6], lo[7], hi[7], b.high.z, b.high.w);
}

__device__ __forceinline__ void cp_async16(uint32_t to, const void *from, bool real) {
    int bytes = real ? 16 : 0; /* the rest is filled with zeros */
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void ldmatrix(uint32_t r[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_trans(uint32_t r[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* Programmatic dependent launch: without the launch attribute both do nothing. */
__device__ __forceinline__ void wait_for_predecessor() {
    cudaGridDependencySynchronize();
}

__device__ __forceinline__ void let_successor_start() {
    cudaTriggerProgrammaticLaunchCompletion();
}

#endif
