/* The operation table of the CPU. */
#include "ops/attention/attention.h"
#include "ops/attn_out/attn_out.h"
#include "ops/dense_ffn/dense_ffn.h"
#include "ops/embed/embed.h"
#include "ops/head/head.h"
#include "ops/moe/moe.h"
#include "ops/norm_qkv/norm_qkv.h"

void ops_bind_cpu(struct device *d) {
    d->op[OP_EMBED] = embed_ref;
    d->op[OP_NORM_QKV] = norm_qkv_ref;
    d->op[OP_ATTENTION] = attention_ref;
    d->op[OP_ATTN_OUT] = attn_out_ref;
    d->op[OP_DENSE_FFN] = dense_ffn_ref;
    d->op[OP_MOE] = moe_ref;
    d->op[OP_HEAD] = head_ref;
}
