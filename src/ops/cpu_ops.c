/* The operation table of the CPU, and the copies of weights that its fast operations read. */
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "device/cpu.h"
#include "ops/attention/attention.h"
#include "ops/attn_out/attn_out.h"
#include "ops/dense_ffn/dense_ffn.h"
#include "ops/embed/embed.h"
#include "ops/head/head.h"
#include "ops/kernels.h"
#include "ops/moe/moe.h"
#include "ops/norm_qkv/norm_qkv.h"
#include "ops/tiles.h"

#if defined(__x86_64__)
/* Weights of one operation are counted first, then laid into one piece of memory. */
struct pack {
    struct device *d;
    struct tiles *tiles; /* NULL while counting */
    uint8_t *data;
    size_t n_tiles, bytes;
    bool overflow;
};

static void pack_weight(struct pack *p, struct weight *w) {
    size_t tile_bytes, total, padded;
    if (!w->n_out || !tiles_have(w->dtype)) return;
    if (!tiles_bytes(w, &tile_bytes, &total) || !size_align(total, 64, &padded) ||
        !size_add(p->bytes, padded, &padded)) {
        p->overflow = true;
        return;
    }
    if (p->tiles) {
        struct tiles *t = &p->tiles[p->n_tiles];
        t->data = p->data + p->bytes;
        tiles_pack(p->d->pool, w, t);
        w->data = t;
        w->row_bytes = 0;
    }
    p->n_tiles++;
    p->bytes = padded;
}

static void pack_mlp(struct pack *p, struct mlp *m) {
    pack_weight(p, &m->gate);
    pack_weight(p, &m->up);
    pack_weight(p, &m->down);
}

/* An expert block is computed from tiles or by the reference, not by both. */
static bool all_tileable(const struct op_moe *p) {
    bool ok = tiles_have(p->router.dtype);
    for (int32_t i = 0; i <= p->n_expert; i++) {
        const struct mlp *m = i < p->n_expert ? &p->expert[i] : &p->shared;
        if (m->gate.n_out)
            ok = ok && tiles_have(m->gate.dtype) && tiles_have(m->up.dtype) &&
                 tiles_have(m->down.dtype);
    }
    return ok;
}

static void pack_op(struct pack *p, struct op *op, struct mlp *expert) {
    switch (op->kind) {
    case OP_NORM_QKV:
        pack_weight(p, &op->u.norm_qkv.q);
        pack_weight(p, &op->u.norm_qkv.k);
        pack_weight(p, &op->u.norm_qkv.v);
        break;
    case OP_ATTN_OUT: pack_weight(p, &op->u.attn_out.o); break;
    case OP_DENSE_FFN: pack_mlp(p, &op->u.dense_ffn.mlp); break;
    case OP_MOE:
        if (!all_tileable(&op->u.moe)) break;
        pack_weight(p, &op->u.moe.router);
        for (int32_t i = 0; i < op->u.moe.n_expert; i++) pack_mlp(p, &expert[i]);
        pack_mlp(p, &op->u.moe.shared);
        break;
    case OP_HEAD: pack_weight(p, &op->u.head.head); break;
    case OP_EMBED:
    case OP_ATTENTION:
    case OP_COUNT: break;
    }
}

static sumi_status prepare_op(struct device *d, struct op *op, sumi_error *err) {
    struct mlp *expert = NULL;
    void *p;
    if (op->kind == OP_MOE) {
        size_t bytes = (size_t)op->u.moe.n_expert * sizeof *expert;
        TRY(cpu_keep(d, bytes, &p, err));
        memcpy(p, op->u.moe.expert, bytes);
        op->u.moe.expert = expert = p;
    }
    struct pack pack = {.d = d};
    struct op trial = *op; /* counting changes nothing, but takes the same path */
    pack_op(&pack, &trial, expert);
    if (pack.overflow) return NO_MEMORY(err, SIZE_MAX);
    if (!pack.n_tiles) return SUMI_OK;
    TRY(cpu_keep(d, pack.n_tiles * sizeof *pack.tiles, &p, err));
    struct pack fill = {.d = d, .tiles = p};
    TRY(cpu_keep(d, pack.bytes, &p, err));
    fill.data = p;
    pack_op(&fill, op, expert);
    return SUMI_OK;
}

static sumi_status prepare(struct device *d, struct op *list, int n, sumi_error *err) {
    for (int i = 0; i < n; i++) TRY(prepare_op(d, &list[i], err));
    return SUMI_OK;
}
#endif

static void bind_ref(struct device *d) {
    d->op[OP_EMBED] = embed_ref;
    d->op[OP_NORM_QKV] = norm_qkv_ref;
    d->op[OP_ATTENTION] = attention_ref;
    d->op[OP_ATTN_OUT] = attn_out_ref;
    d->op[OP_DENSE_FFN] = dense_ffn_ref;
    d->op[OP_MOE] = moe_ref;
    d->op[OP_HEAD] = head_ref;
}

#if defined(__x86_64__)
static void bind_fast(struct device *d, const struct cpu_kernels *kernels) {
    cpu_device(d)->kernels = kernels;
    d->prepare = prepare;
    d->op[OP_NORM_QKV] = norm_qkv_fast;
    d->op[OP_ATTENTION] = attention_fast;
    d->op[OP_ATTN_OUT] = attn_out_fast;
    d->op[OP_DENSE_FFN] = dense_ffn_fast;
    d->op[OP_MOE] = moe_fast;
    d->op[OP_HEAD] = head_fast;
}
#endif

/* Puts the versions of this level over the references; there is none for REF. */
static void bind_level(struct device *d, enum cpu_isa isa) {
#if defined(__x86_64__)
    if (isa == CPU_ISA_AVX2) bind_fast(d, &kernels_avx2);
    if (isa == CPU_ISA_AVX512) bind_fast(d, &kernels_avx512);
#else
    (void)d, (void)isa;
#endif
}

sumi_status ops_bind_cpu_isa(struct device *d, enum cpu_isa isa, sumi_error *err) {
    enum cpu_isa use;
    TRY(cpu_isa_choose(isa, &use, err));
    bind_ref(d);
    bind_level(d, use);
    return SUMI_OK;
}

void ops_bind_cpu(struct device *d) {
    ops_bind_cpu_isa(d, CPU_ISA_AUTO, NULL);
}
