/* The kernels compiled for this instruction set; CMake gives this file its flags. */
#if defined(__x86_64__)
#include "ops/attend_simd.h"
#include "ops/linear_simd.h"
#include "ops/rows_simd.h"

const struct cpu_kernels ISA(kernels) = {
    .linear = tile_linear,
    .norm = norm_row,
    .rotate = rotate_row,
    .gate = gate_row,
    .add = add_row,
    .combine = combine_row,
    .attend = attend_page,
    .attend_merge = attend_join,
};
#endif
