/* What the kernels of the expert block are given. A slot is row * top_k + k. */
#ifndef SUMI_OPS_MOE_MOE_CUH
#define SUMI_OPS_MOE_MOE_CUH

#include "ops/cuda/rows.cuh"

/* Matrices of an expert block in struct cu_op. Those of the experts are stacked; gate and up are
 * one matrix of alternating tiles. */
enum { MOE_ROUTER, MOE_UP, MOE_DOWN, MOE_SHARED_UP, MOE_SHARED_DOWN };

struct slot_args {
    struct cu_mat experts, shared;
    const bf *x;
    int64_t x_stride;
    const float *norm;
    float eps;
    const int32_t *ids, *n_row;
    int rows, top_k;
    int tiles;        /* blocks of one slot: tiles, or pairs of tiles */
    int first_shared; /* blocks from here on do the shared expert */
    bf *y;
    int64_t y_stride;
    bf *shared_y; /* NULL: no such blocks */
    int64_t shared_stride;
    int n_out;
};

struct down_args {
    struct cu_mat experts, shared;
    const bf *act, *shared_act;
    int64_t act_stride, shared_stride;
    const int32_t *ids;
    const float *weights;
    const int32_t *n_row;
    int top_k, tiles;
    int pieces, per_piece; /* the shared expert's inputs: pieces of so many chunks */
    int hidden;
    bf *x, *branch;
};

struct combine_args {
    const bf *each, *y;
    const float *weights;
    bf *x, *branch;
    const int32_t *n_row;
    int hidden, top_k;
    bool shared;
};

enum { GROUP_ROWS = 64 };

/* Products of slots sorted by expert, in blocks of at most GROUP_ROWS slots of one expert. */
struct group_args {
    struct cu_mat m;
    const bf *x;
    int64_t x_stride;
    int x_top_k; /* slot / x_top_k is the row of x */
    bf *y;       /* [slot][y_stride] */
    int64_t y_stride;
    int n_out;
    const int32_t *order;  /* slots by expert */
    const int32_t *blocks; /* [1 + 3 n]: n, then expert, first place in order, count */
    int tiles;             /* of one expert */
    int rows, n_expert;    /* slots, at most */
};

/* Most blocks that so many slots can make. */
static inline int group_blocks(int64_t n_slot, int n_expert) {
    return (int)(n_slot / GROUP_ROWS) + n_expert;
}

/* order: [n_expert + 1] starts, then the slots by expert, in ascending order within each. Fills
 * l->blocks too. */
void cu_sort_slots(struct cu_launch *l, const int32_t *ids, int n_expert, int top_k,
                   int32_t *order);
void cu_grouped(struct cu_launch *l, bool gate, const struct group_args *a);

#endif
