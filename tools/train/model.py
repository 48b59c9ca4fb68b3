"""A Flint-shaped language model in plain PyTorch, for training, and its files.

    model.py check CKPT [--tokens N]     compare our logits with transformers' Flint in float32 on the CPU
    model.py init OUTDIR TOKENIZER.json  write an untrained checkpoint (for the check)

Attention has two forms with the same result: `flex` (CUDA: flex_attention, block-sparse over documents and windows) and
`plain` (anywhere). Rows hold several documents; each starts with [gMASK], and attention never crosses such a start.
Positions run through the row: rotary layers only see differences of positions, the others none.
"""
import argparse
import json
import os
import shutil

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128  # flex_attention's block of queries and keys


def make_config(vocab_size, **change):
    """config.json of the small model; every matrix dimension is a multiple of 64, as NVFP4 blocks demand."""
    c = dict(num_hidden_layers=12, hidden_size=256, intermediate_size=768, num_attention_heads=8, num_key_value_heads=2,
             head_dim=64, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=64,
             shared_expert_intermediate_size=256, sliding_window=129, max_position_embeddings=4096, rms_norm_eps=1e-6,
             rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    c.update(change)
    n = c["num_hidden_layers"]
    full = [i for i in range(n) if i < 2 or i % 4 == 1 or i == n - 1]
    return dict(
        architectures=["FlintForCausalLM"], model_type="flint", vocab_size=vocab_size, **c,
        layer_types=["full_attention" if i in full else "sliding_attention" for i in range(n)], no_rope_layer_indices=full,
        mlp_only_layers=[0, 1], decoder_sparse_step=1, norm_topk_prob=True, router_score_function="sigmoid",
        softmax_type="learnable", hidden_act="silu", attention_bias=False, attention_dropout=0.0, use_sliding_window=True,
        tie_word_embeddings=False, use_cache=True, initializer_range=0.02, router_aux_loss_coef=0.0005, dtype="bfloat16")


# ---------------------------------------------------------------- masks

def documents(ids, start):
    """[B, S] ids -> running number of the document each token belongs to."""
    return (ids == start).cumsum(-1).int()


def block_lists(doc, window):
    """Block-sparse pattern of one attention kind: (partial counts, partial indices, full counts, full indices).

    doc never falls along a row, so two blocks share a document iff the key block's last is at least the query block's
    first. A full block needs no mask. window None: causal attention over the document."""
    lo, hi = doc[:, ::BLOCK], doc[:, BLOCK - 1::BLOCK]
    i = torch.arange(lo.shape[1], device=doc.device)
    apart = i[:, None] - i[None, :]
    some = (apart >= 0) & (hi[:, None, :] >= lo[:, :, None])
    full = (apart > 0) & (lo[:, None, :] == hi[:, :, None])
    if window is not None:
        some = some & (apart <= (window + BLOCK - 2) // BLOCK)
        full = full & (apart * BLOCK + BLOCK - 1 < window)
    lists = []
    for m in (some & ~full, full):
        lists += [m.sum(-1, dtype=torch.int32)[:, None].contiguous(),
                  m.to(torch.int8).argsort(dim=-1, descending=True, stable=True).int()[:, None].contiguous()]
    return lists


def dense_mask(doc, window):
    """[B, 1, S, S], True where a query sees a key."""
    i = torch.arange(doc.shape[1], device=doc.device)
    apart = i[:, None] - i[None, :]
    near = (apart >= 0) if window is None else (apart >= 0) & (apart < window)
    return (near & (doc[:, :, None] == doc[:, None, :]))[:, None]


def attend_flex(q, k, v, sink, doc, lists, window):
    """The sink only enlarges the softmax's denominator: o * l / (l + e^sink) = o * sigmoid(lse - sink)."""
    def seen(b, h, i, j):
        inside = (i >= j) & (doc[b, i] == doc[b, j])
        return inside if window is None else inside & (i - j < window)
    mask = BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=BLOCK, mask_mod=seen)
    o, lse = flex_attention(q, k, v, block_mask=mask, enable_gqa=True, return_lse=True)
    return (o * torch.sigmoid(lse - sink[None, :, None])[..., None]).to(q.dtype)


def attend_plain(q, k, v, sink, mask):
    """The definition: softmax over the visible scores and the sink."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = (q.float() @ k.float().transpose(2, 3)) * q.shape[-1] ** -0.5
    s = s.masked_fill(~mask, float("-inf"))
    p = torch.softmax(torch.cat([s, sink[None, :, None, None].expand(*s.shape[:3], 1)], -1), -1)[..., :-1]
    return p.to(v.dtype) @ v


# ---------------------------------------------------------------- mixture of experts

class Dispatch(torch.autograd.Function):
    """x[token of slot]; the backward is a gather too, since every token has exactly k slots."""
    @staticmethod
    def forward(ctx, x, order, inverse, k):
        ctx.save_for_backward(inverse)
        ctx.k = k
        return x[order // k]

    @staticmethod
    def backward(ctx, g):
        inverse, = ctx.saved_tensors
        return g[inverse].unflatten(0, (-1, ctx.k)).sum(1), None, None, None


class Permute(torch.autograd.Function):
    """x[index], where `inverse` undoes it."""
    @staticmethod
    def forward(ctx, x, index, inverse):
        ctx.save_for_backward(inverse)
        return x[index]

    @staticmethod
    def backward(ctx, g):
        inverse, = ctx.saved_tensors
        return g[inverse], None, None


def grouped(x, w, ends):
    """Rows ends[e-1]..ends[e] of x times w[e]^T. CUDA: one grouped matrix product (bf16); elsewhere a loop."""
    if x.is_cuda:
        return torch._grouped_mm(x, w.transpose(1, 2), offs=ends)
    parts, at = [], 0
    for e, end in enumerate(ends.tolist()):
        parts.append(x[at:end] @ w[e].t())
        at = end
    return torch.cat(parts)


def swiglu(x, gate_up, down):
    g, u = F.linear(x, gate_up.to(x.dtype)).chunk(2, -1)
    return F.linear(F.silu(g) * u, down.to(x.dtype))


def rms(x, w, eps):
    return F.rms_norm(x.float(), (x.shape[-1],), w, eps).to(x.dtype)


# ---------------------------------------------------------------- the network

def matrix(*shape, gain=1.0):
    return nn.Parameter(torch.randn(shape) * gain * shape[-1] ** -0.5)


class Layer(nn.Module):
    """One decoder layer. Matrices that read the same input are stored as one; f32 masters, cast to the input's type."""

    def __init__(self, c, i):
        super().__init__()
        h, d, n = c["hidden_size"], c["head_dim"], c["num_hidden_layers"]
        self.nq, self.nkv, self.d, self.eps = c["num_attention_heads"], c["num_key_value_heads"], d, c["rms_norm_eps"]
        self.window = c["sliding_window"] if c["layer_types"][i] == "sliding_attention" else None
        self.sparse, self.k = i not in c["mlp_only_layers"], c["num_experts_per_tok"]
        back = (2 * n) ** -0.5
        self.norm1, self.norm2 = nn.Parameter(torch.ones(h)), nn.Parameter(torch.ones(h))
        self.qkv, self.out = matrix((self.nq + 2 * self.nkv) * d, h), matrix(h, self.nq * d, gain=back)
        sharp = 1.0 if self.window else 1.3  # full layers must single out one of thousands of keys
        self.q_norm, self.k_norm = nn.Parameter(torch.full((d,), sharp)), nn.Parameter(torch.full((d,), sharp))
        self.sink = nn.Parameter(torch.zeros(self.nq))
        if self.sparse:
            e, m = c["num_experts"], c["moe_intermediate_size"]
            self.router = matrix(e, h, gain=0.5)
            self.expert_gate_up, self.expert_down = matrix(e, 2 * m, h), matrix(e, h, m, gain=back)
        m = c["shared_expert_intermediate_size"] if self.sparse else c["intermediate_size"]
        self.gate_up, self.down = matrix(2 * m, h), matrix(h, m, gain=back)

    def attention(self, x, cos, sin, mask):
        b, s, _ = x.shape
        q, k, v = F.linear(x, self.qkv.to(x.dtype)).view(b, s, -1, self.d).split([self.nq, self.nkv, self.nkv], 2)
        q, k = rms(q, self.q_norm, self.eps), rms(k, self.k_norm, self.eps)
        if self.window:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if len(mask) == 1:
            o = attend_plain(q, k, v, self.sink, mask[0])
        else:
            o = attend_flex(q, k, v, self.sink, mask[0], mask[1:], self.window)
        return F.linear(o.transpose(1, 2).reshape(b, s, -1), self.out.to(x.dtype))

    def experts(self, x):
        """-> (sum over each token's k experts, load-balancing loss)."""
        t, e = x.shape[0], self.router.shape[0]
        score = torch.sigmoid(F.linear(x.float(), self.router))
        weight, chosen = score.topk(self.k, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        counts = (chosen.flatten()[:, None] == torch.arange(e, device=x.device)).sum(0)
        share = (score / score.sum(-1, keepdim=True)).mean(0)
        balance = e * (share * counts / (t * self.k)).sum()
        order = chosen.flatten().to(torch.uint8).sort(stable=True)[1]
        inverse = torch.empty_like(order).scatter_(0, order, torch.arange(t * self.k, device=x.device))
        ends = counts.cumsum(0).int()
        g, u = grouped(Dispatch.apply(x, order, inverse, self.k), self.expert_gate_up.to(x.dtype), ends).chunk(2, -1)
        y = grouped(F.silu(g) * u, self.expert_down.to(x.dtype), ends)
        y = Permute.apply(y, inverse, order).unflatten(0, (t, self.k))
        return (y * weight[..., None]).sum(1).to(x.dtype), balance

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(rms(x, self.norm1, self.eps), cos, sin, mask)
        a = rms(x, self.norm2, self.eps)
        y = swiglu(a, self.gate_up, self.down)
        if not self.sparse:
            return x + y, x.new_zeros((), dtype=torch.float32)
        r, balance = self.experts(a.flatten(0, 1))
        return x + (r.view_as(y) + y), balance


def rotate(x, cos, sin):
    """x [B, S, heads, d]; channel i pairs with i + d/2."""
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def head_loss(x, norm, head, ids, weight, eps):
    """Weighted next-token loss, and the mean loss of generated text alone. weight[t] belongs to ids[t] as a target."""
    logits = F.linear(rms(x, norm, eps), head.to(x.dtype)).float()
    ce = F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, 1).flatten(), reduction="none")
    w = weight.roll(-1, 1).float() / 255
    w = torch.cat([w[:, :-1], torch.zeros_like(w[:, :1])], 1).flatten()
    own = (w == 1).float()
    return (ce * w).sum() / w.sum(), (ce * own).sum() / own.sum()


class Flint(nn.Module):
    def __init__(self, config, start):
        """start: id of [gMASK], which begins every document."""
        super().__init__()
        self.config, self.start, self.eps = config, start, config["rms_norm_eps"]
        v, h = config["vocab_size"], config["hidden_size"]
        self.embed, self.norm, self.head = nn.Parameter(torch.randn(v, h) * 0.5), nn.Parameter(torch.ones(h)), matrix(v, h, gain=0.5)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config["num_hidden_layers"]))
        self.head_loss = head_loss

    def compile(self):
        """Compile layer by layer: three different graphs instead of one large one, so the start takes seconds."""
        torch._dynamo.config.cache_size_limit = 64
        for layer in self.layers:
            layer.compile(dynamic=False)
        self.head_loss = torch.compile(head_loss, dynamic=False)

    def hidden(self, ids, flex, dtype):
        """Final hidden state before the last norm, and the mean load-balancing loss."""
        c, s = self.config, ids.shape[1]
        d, theta = c["head_dim"], c["rope_parameters"]["rope_theta"]
        inv = 1 / theta ** (torch.arange(0, d, 2, device=ids.device).float() / d)
        angle = (torch.arange(s, device=ids.device).float()[:, None] * inv)[:, None, :]
        cos, sin = angle.cos(), angle.sin()
        doc = documents(ids, self.start)
        mask = {w: [doc, *block_lists(doc, w)] if flex else [dense_mask(doc, w)] for w in (None, c["sliding_window"])}
        x, balance = F.embedding(ids, self.embed).to(dtype), 0
        for layer in self.layers:
            x, b = layer(x, cos, sin, mask[layer.window])
            balance = balance + b
        return x, balance / sum(layer.sparse for layer in self.layers)

    def loss(self, ids, weight, flex, dtype):
        x, balance = self.hidden(ids, flex, dtype)
        total, own = self.head_loss(x, self.norm, self.head, ids, weight, self.eps)
        return total, own, balance

    def logits(self, x):
        return F.linear(rms(x, self.norm, self.eps), self.head.to(x.dtype)).float()

    def quantised(self):
        """The parameters that NVFP4 files hold in NVFP4: everything linear but the router and the embedding table."""
        return [p for n, p in self.named_parameters() if p.dim() > 1 and n != "embed" and not n.endswith("router")]


def fake_nvfp4(w):
    """Round matrices [..., out, in] to NVFP4: e2m1 x e4m3 per 16 columns x one power of two per matrix.

    With a power of two every value is exact in bf16, so the bf16 checkpoint and an NVFP4 file made from it are the same model."""
    s = torch.exp2(torch.ceil(torch.log2(w.abs().amax((-2, -1), keepdim=True).clamp(min=1e-12) / 2688)))
    g = (w / s).unflatten(-1, (-1, 16))
    d = (g.abs().amax(-1, keepdim=True) / 6).clamp(max=448).to(torch.float8_e4m3fn).float()
    x = (g.abs() / d.clamp(min=2.0 ** -9)).clamp(max=6)
    # steps of 0.5 below 2, of 1 below 4, of 2 above
    step = torch.where(x < 2, 0.5, torch.where(x < 4, 1.0, 2.0))
    return (torch.round(x / step) * step * d * g.sign()).flatten(-2) * s


# ---------------------------------------------------------------- files

def to_disk(model):
    """Our parameters -> {name on disk: tensor}."""
    c = model.config
    q, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    out = {"model.embed_tokens.weight": model.embed}
    for i, l in enumerate(model.layers):
        p = f"model.layers.{i}."
        wq, wk, wv = l.qkv.split([q, kv, kv])
        out |= {p + "input_layernorm.weight": l.norm1, p + "post_attention_layernorm.weight": l.norm2,
                p + "self_attn.q_proj.weight": wq, p + "self_attn.k_proj.weight": wk, p + "self_attn.v_proj.weight": wv,
                p + "self_attn.o_proj.weight": l.out, p + "self_attn.q_norm.weight": l.q_norm,
                p + "self_attn.k_norm.weight": l.k_norm, p + "self_attn.softmax_offset": l.sink}

        def mlp(prefix, gate_up, down):
            gate, up = gate_up.chunk(2)
            out.update({prefix + "gate_proj.weight": gate, prefix + "up_proj.weight": up, prefix + "down_proj.weight": down})
        if l.sparse:
            out[p + "mlp.gate.weight"] = l.router
            for e in range(c["num_experts"]):
                mlp(f"{p}mlp.experts.{e}.", l.expert_gate_up[e], l.expert_down[e])
        mlp(p + ("mlp.shared_expert." if l.sparse else "mlp."), l.gate_up, l.down)
    return out | {"model.norm.weight": model.norm, "lm_head.weight": model.head}


def save(model, outdir, tokenizer_path, dtype=torch.bfloat16, shard_bytes=15 << 20):
    """Write a checkpoint directory in the layout of the released model."""
    os.makedirs(outdir, exist_ok=True)
    for old in os.listdir(outdir):
        if ".safetensors" in old:
            os.remove(os.path.join(outdir, old))
    shards, size = [{}], 0
    for name, t in to_disk(model).items():
        t = t.detach().to(dtype).cpu().contiguous()
        if shards[-1] and size + t.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = t.clone()
        size += t.nbytes
    where = {}
    for i, part in enumerate(shards):
        name = "model.safetensors" if len(shards) == 1 else f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        save_file(part, os.path.join(outdir, name), {"format": "pt"})
        where |= {k: name for k in part}

    def write(name, obj):
        with open(os.path.join(outdir, name), "w", encoding="utf-8") as f:
            json.dump(obj, f, indent=2)
            f.write("\n")
    if len(shards) > 1:
        write("model.safetensors.index.json", {"metadata": {"total_size": sum(t.nbytes for s in shards for t in s.values())},
                                               "weight_map": dict(sorted(where.items()))})
    with open(tokenizer_path, encoding="utf-8") as f:
        ids = {t["content"]: t["id"] for t in json.load(f)["added_tokens"]}
    eos = [ids[t] for t in ("<|endoftext|>", "<|user|>", "<|observation|>")]
    dtype_name = str(dtype).split(".")[1]
    write("config.json", {**model.config, "dtype": dtype_name, "bos_token_id": None, "eos_token_id": eos, "pad_token_id": eos[0]})
    write("generation_config.json", {"do_sample": True, "temperature": 0.3, "top_p": 0.95, "top_k": 20, "eos_token_id": eos,
                                     "pad_token_id": eos[0]})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False, "model_max_length": model.config["max_position_embeddings"],
        "additional_special_tokens": ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]})
    for src, name in ((tokenizer_path, "tokenizer.json"),
                      (os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja"), "chat_template.jinja")):
        if os.path.abspath(src) != os.path.abspath(os.path.join(outdir, name)):
            shutil.copyfile(src, os.path.join(outdir, name))


def load(path, device="cpu"):
    """A checkpoint directory -> model with f32 parameters."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    with open(os.path.join(path, "tokenizer.json"), encoding="utf-8") as f:
        start = next(t["id"] for t in json.load(f)["added_tokens"] if t["content"] == "[gMASK]")
    stored = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".safetensors"):
            stored |= load_file(os.path.join(path, name))
    model = Flint(config, start)
    with torch.no_grad():
        for name, view in to_disk(model).items():  # views of our parameters, so copying fills them
            view.copy_(stored.pop(name))
    assert not stored, f"unknown tensors: {list(stored)[:5]}"
    return model.to(device)


def check(path, n):
    """Our logits against transformers' on the same checkpoint, for both attention forms, over a row of two documents.

    The second document stands at shifted positions, so its rotary angles are rounded differently: a larger difference there is
    no error. What it must show is that the first one stays invisible."""
    from transformers import AutoModelForCausalLM
    ours = load(path)
    theirs = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    assert theirs.config.model_type == "flint"
    g = torch.Generator().manual_seed(1)
    docs = [torch.randint(0, ours.start, (1, n), generator=g) for _ in range(2)]
    for d in docs:
        d[:, 0] = ours.start
    row = torch.cat([*docs, torch.zeros(1, -2 * n % BLOCK, dtype=torch.long)], 1)
    with torch.no_grad():
        want = [theirs(d).logits for d in docs]
        for flex in (False, True):
            got = ours.logits(ours.hidden(row, flex, torch.float32)[0]).split([n, n, row.shape[1] - 2 * n], 1)
            off = [f"{(x - y).abs().max():.1e}" for x, y in zip(got, want)]
            print(f"{'flex' if flex else 'plain'} attention, {n} tokens each: max abs logit difference {off[0]} in the first document, "
                  f"{off[1]} in the second (logit std {want[0].std():.2f})")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("what", choices=("check", "init"))
    ap.add_argument("path")
    ap.add_argument("tokenizer", nargs="?")
    ap.add_argument("--tokens", type=int, default=600)
    a = ap.parse_args()
    if a.what == "check":
        return check(a.path, a.tokens)
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(a.tokenizer)
    torch.manual_seed(0)
    model = Flint(make_config(tok.get_vocab_size()), tok.token_to_id("[gMASK]"))
    for l in model.layers:
        nn.init.normal_(l.sink)
    save(model, a.path, a.tokenizer, torch.float32)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")


if __name__ == "__main__":
    main()
