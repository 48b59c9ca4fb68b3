/* Attention over pages. Queries of a key/value head's group, and neighbouring rows of a sequence,
 * share each page. Positions are summed in chunks of CHUNK counted from position 0, which are then
 * joined in order; whether one worker does all chunks of some rows or several share them changes
 * nothing in the bits. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu.h"
#include "ops/attention/attention.h"
#include "ops/cache.h"
#include "ops/kernels.h"

enum { CHUNK = 4 * PAGE_TOKENS, SPLIT_BELOW = 4 /* parts per thread */, FEW_HEADS = 16 };

struct job {
    const struct cpu_kernels *kernels;
    const struct op *op;
    const struct step *s;
    int64_t stride; /* head_dim padded to 16 */
    int32_t group;  /* query heads of a key/value head */
    int32_t take;   /* of these, heads that a part takes at once */
    int32_t n_take; /* parts of a group */
    int32_t n_item; /* items; a part is (item, key/value head, take) */
    int32_t *row;   /* [n_item + 1] rows of an item: row[i] .. row[i + 1] - 1 */
    int32_t *chunk; /* [n_row + 1] split: chunks of row r are chunk[r] .. chunk[r + 1] - 1 */
    float *part;    /* split: [chunk][n_head][stride + 2] output, max, sum */
};

static int32_t first_seen(const struct job *j, int32_t r) {
    int32_t w = j->op->u.attention.window, pos = j->s->pos[r];
    return w && pos >= w ? pos - w + 1 : 0;
}

/* The queries of a part. */
struct queries {
    int32_t n, kv, seq;
    const float *q[ATTEND_QUERIES];
    int32_t first[ATTEND_QUERIES], last[ATTEND_QUERIES];
    int32_t row[ATTEND_QUERIES], head[ATTEND_QUERIES];
};

static void collect(const struct job *j, int32_t from, int32_t to, int64_t kv_take,
                    struct queries *q) {
    const struct op_attention *p = &j->op->u.attention;
    int32_t kv = (int32_t)(kv_take / j->n_take), take = (int32_t)(kv_take % j->n_take);
    *q = (struct queries){.kv = kv, .seq = j->s->seq_of[from]};
    for (int32_t r = from; r < to; r++)
        for (int32_t h = take * j->take; h < (take + 1) * j->take && h < j->group; h++) {
            q->row[q->n] = r;
            q->head[q->n] = kv * j->group + h;
            q->q[q->n] = p->q + ((int64_t)r * p->n_head + q->head[q->n]) * p->cache.head_dim;
            q->first[q->n] = first_seen(j, r);
            q->last[q->n++] = j->s->pos[r];
        }
}

static void one_chunk(const struct job *j, const struct queries *q, int32_t from, int32_t to,
                      struct attend_state *state, float *o) {
    const struct op_attention *p = &j->op->u.attention;
    float scratch[PAGE_TOKENS * (OP_MAX_HEAD_DIM + ATTEND_QUERIES)];
    for (int32_t i = 0; i < q->n; i++) state[i] = (struct attend_state){-INFINITY, 0};
    memset(o, 0, (size_t)(q->n * j->stride) * sizeof *o);
    for (int32_t pos = from / PAGE_TOKENS * PAGE_TOKENS; pos <= to; pos += PAGE_TOKENS) {
        struct attend_job a = {.keys = cache_at(&p->cache, j->s, q->seq, pos, q->kv, 0),
                               .values = cache_at(&p->cache, j->s, q->seq, pos, q->kv, 1),
                               .bf16 = j->s->bf16,
                               .head_dim = p->cache.head_dim,
                               .page = pos,
                               .n_query = q->n,
                               .q = q->q,
                               .first = q->first,
                               .last = q->last,
                               .scale = p->scale,
                               .state = state,
                               .o = o,
                               .scratch = scratch};
        j->kernels->attend(&a);
    }
}

/* o / sum with the sink in the sum. */
static void finish(const struct job *j, int32_t row, int32_t head, struct attend_state t,
                   const float *o) {
    const struct op_attention *p = &j->op->u.attention;
    int32_t d = p->cache.head_dim;
    float *to = p->o + ((int64_t)row * p->n_head + head) * d, factor = 1;
    if (p->sink) {
        float max = p->sink[head] > t.max ? p->sink[head] : t.max;
        factor = expf(t.max - max);
        t.sum = t.sum * factor + expf(p->sink[head] - max);
    }
    for (int32_t i = 0; i < d; i++) {
        float v = o[i] * factor / t.sum;
        to[i] = j->s->bf16 ? bf16_round(v) : v;
    }
}

/* An item's rows over all their chunks. */
static void whole_rows(void *ctx, int64_t at) {
    const struct job *j = ctx;
    int32_t n_kv_take = j->op->u.attention.cache.n_kv * j->n_take;
    int32_t item = (int32_t)(at / n_kv_take);
    struct queries q;
    collect(j, j->row[item], j->row[item + 1], at % n_kv_take, &q);
    struct attend_state total[ATTEND_QUERIES], part[ATTEND_QUERIES];
    float o[ATTEND_QUERIES * OP_MAX_HEAD_DIM], part_o[ATTEND_QUERIES * OP_MAX_HEAD_DIM];
    int32_t low = q.first[0], high = q.last[q.n - 1];
    for (int32_t i = 0; i < q.n; i++) total[i] = (struct attend_state){-INFINITY, 0};
    memset(o, 0, (size_t)(q.n * j->stride) * sizeof *o);
    for (int32_t c = low / CHUNK; c <= high / CHUNK; c++) {
        int32_t from = (int32_t)max_i64(low, c * CHUNK);
        one_chunk(j, &q, from, (int32_t)min_i64(high, c * CHUNK + CHUNK - 1), part, part_o);
        for (int32_t i = 0; i < q.n; i++)
            if (q.first[i] < (c + 1) * CHUNK && q.last[i] >= c * CHUNK)
                j->kernels->attend_merge(&total[i], o + i * j->stride, &part[i],
                                         part_o + i * j->stride, (int32_t)j->stride);
    }
    for (int32_t i = 0; i < q.n; i++) finish(j, q.row[i], q.head[i], total[i], o + i * j->stride);
}

/* Split: one chunk of one row. */
static void one_piece(void *ctx, int64_t at) {
    const struct job *j = ctx;
    int32_t n_kv_take = j->op->u.attention.cache.n_kv * j->n_take, r = 0;
    int32_t piece = (int32_t)(at / n_kv_take);
    while (piece >= j->chunk[r + 1]) r++;
    struct queries q;
    collect(j, r, r + 1, at % n_kv_take, &q);
    struct attend_state state[ATTEND_QUERIES];
    float o[ATTEND_QUERIES * OP_MAX_HEAD_DIM];
    int32_t c = q.first[0] / CHUNK + piece - j->chunk[r];
    one_chunk(j, &q, (int32_t)max_i64(q.first[0], c * CHUNK),
              (int32_t)min_i64(q.last[0], c * CHUNK + CHUNK - 1), state, o);
    for (int32_t i = 0; i < q.n; i++) {
        float *to =
            j->part + ((int64_t)piece * j->op->u.attention.n_head + q.head[i]) * (j->stride + 2);
        memcpy(to, o + i * j->stride, (size_t)j->stride * sizeof *to);
        to[j->stride] = state[i].max;
        to[j->stride + 1] = state[i].sum;
    }
}

static void join_pieces(void *ctx, int64_t at) {
    const struct job *j = ctx;
    int32_t n_head = j->op->u.attention.n_head;
    int32_t r = (int32_t)(at / n_head), head = (int32_t)(at % n_head);
    struct attend_state total = {-INFINITY, 0};
    float o[OP_MAX_HEAD_DIM] = {0};
    for (int32_t c = j->chunk[r]; c < j->chunk[r + 1]; c++) {
        const float *from = j->part + ((int64_t)c * n_head + head) * (j->stride + 2);
        struct attend_state part = {from[j->stride], from[j->stride + 1]};
        j->kernels->attend_merge(&total, o, &part, from, (int32_t)j->stride);
    }
    finish(j, r, head, total, o);
}

/* Neighbouring rows of a sequence form an item while their queries fit into a part. */
static void list_items(struct job *j) {
    int32_t most = ATTEND_QUERIES / j->take;
    for (int32_t r = 0; r < j->s->n_row; r++) {
        bool joins = r && j->s->seq_of[r] == j->s->seq_of[r - 1] &&
                     j->s->pos[r] == j->s->pos[r - 1] + 1 && r - j->row[j->n_item - 1] < most;
        if (!joins) j->row[j->n_item++] = r;
    }
    j->row[j->n_item] = j->s->n_row;
}

static void count_chunks(struct job *j) {
    j->chunk[0] = 0;
    for (int32_t r = 0; r < j->s->n_row; r++)
        j->chunk[r + 1] = j->chunk[r] + j->s->pos[r] / CHUNK - first_seen(j, r) / CHUNK + 1;
}

sumi_status attention_fast(struct device *d, const struct op *op, const struct step *s,
                           sumi_error *err) {
    const struct op_attention *p = &op->u.attention;
    struct job j = {.kernels = cpu_device(d)->kernels, .op = op, .s = s};
    j.stride = ((int64_t)p->cache.head_dim + 15) / 16 * 16;
    j.group = p->n_head / p->cache.n_kv;
    j.take = j.group < ATTEND_QUERIES ? j.group : ATTEND_QUERIES;
    j.n_take = (j.group + j.take - 1) / j.take;
    size_t lists = ((size_t)s->n_row + 1) * 2 * sizeof *j.row;
    void *scratch;
    TRY(cpu_scratch(d, lists, &scratch, err));
    j.row = scratch;
    j.chunk = j.row + s->n_row + 1;
    list_items(&j);
    int64_t n_part = (int64_t)j.n_item * p->cache.n_kv * j.n_take;
    if (n_part >= SPLIT_BELOW * (int64_t)pool_threads(d->pool)) {
        pool_run(d->pool, n_part, whole_rows, &j);
        return SUMI_OK;
    }
    count_chunks(&j);
    int64_t pieces = j.chunk[s->n_row];
    size_t bytes = (size_t)(pieces * p->n_head * (j.stride + 2)) * sizeof(float);
    TRY(cpu_scratch(d, lists + bytes, &scratch, err));
    j.row = scratch;
    j.chunk = j.row + s->n_row + 1;
    j.part = (float *)(void *)(j.chunk + s->n_row + 1);
    count_chunks(&j);
    pool_run(d->pool, pieces * p->cache.n_kv * j.n_take, one_piece, &j);
    int64_t heads = (int64_t)s->n_row * p->n_head;
    pool_run(heads <= FEW_HEADS ? NULL : d->pool, heads, join_pieces, &j);
    return SUMI_OK;
}
