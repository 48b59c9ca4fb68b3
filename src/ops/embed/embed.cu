/* Embedding lookup: table rows are bf16. Ids were checked by the host. */
#include "ops/cuda/cu.cuh"

__global__ void embed_rows(const struct cu_step s, const bf *table, float scale, int hidden,
                           bf *x) {
    let_successor_start();
    wait_for_predecessor();
    int r = blockIdx.x;
    if (r >= s.meta->n_row) return;
    const bf *from = table + (int64_t)s.token[r] * hidden;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x)
        x[(int64_t)r * hidden + i] = to_bf(to_f32(from[i]) * scale);
}

void cu_embed(struct cu_launch *l, const struct op *op, const struct cu_op *w) {
    LAUNCH(l, embed_rows, dim3((unsigned)l->rows), 256, 0, l->step, w->table, w->table_scale,
           op->hidden, as_bf(op->x));
}
