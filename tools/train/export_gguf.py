"""Write a checkpoint directory as one NVFP4 GGUF file: weights, tokenizer, chat template, sampling defaults.

    export_gguf.py CKPT OUT.gguf [--name NAME] [--bf16]

Matrices become NVFP4 with a ".scale" tensor; the token embedding stays BF16, routers, norms and sinks F32. q, k and v of a
layer share one scale, and so do gate and up of an MLP or an expert. Training rounds every matrix to NVFP4 with a power of two
as second-level scale, so this file and the BF16 checkpoint hold equal values; the export proves it and fails otherwise.
--bf16 writes every matrix as BF16. The packing is our own; the finished file is read back with gguf-py and compared.
Needs numpy, safetensors and gguf.
"""
import argparse
import glob
import json
import os
import re
import struct

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)
UE4M3 = np.array([m / 8 * 2.0 ** -6 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)
                  for e in range(16) for m in range(8)], np.float32)[:127]  # 0x7F is NaN
TOP = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm", "lm_head.weight": "output"}
NAMES = {
    "input_layernorm.weight": "attn_norm", "post_attention_layernorm.weight": "ffn_norm",
    "self_attn.q_proj.weight": "attn_q", "self_attn.k_proj.weight": "attn_k", "self_attn.v_proj.weight": "attn_v",
    "self_attn.o_proj.weight": "attn_output", "self_attn.q_norm.weight": "attn_q_norm",
    "self_attn.k_norm.weight": "attn_k_norm", "self_attn.softmax_offset": "attn_sinks", "mlp.gate.weight": "ffn_gate_inp",
    **{f"mlp.{p}_proj.weight": f"ffn_{p}" for p in ("gate", "up", "down")},
    **{f"mlp.shared_expert.{p}_proj.weight": f"ffn_{p}_shexp" for p in ("gate", "up", "down")},
    **{f"mlp.experts.{p}_proj.weight": f"ffn_{p}_exps" for p in ("gate", "up", "down")},
}


# ---------------------------------------------------------------- checkpoint

def read_tensors(path):
    """Every BF16 or F32 tensor of a checkpoint directory, as f32."""
    out = {}
    for name in sorted(glob.glob(os.path.join(path, "*.safetensors"))):
        with open(name, "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            base = f.tell()
            header.pop("__metadata__", None)
            for key, t in header.items():
                f.seek(base + t["data_offsets"][0])
                raw = f.read(t["data_offsets"][1] - t["data_offsets"][0])
                if t["dtype"] == "BF16":
                    x = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
                elif t["dtype"] == "F32":
                    x = np.frombuffer(raw, np.float32)
                else:
                    raise SystemExit(f"{name}: tensor {key} is {t['dtype']}, expected BF16 or F32")
                out[key] = x.reshape(t["shape"])
    return out


def read_json(path, name):
    with open(os.path.join(path, name), encoding="utf-8") as f:
        return json.load(f)


# ---------------------------------------------------------------- NVFP4

def nearest(x, table):
    """Index of the nearest entry of an ascending table (a tie goes up)."""
    return np.searchsorted((table[1:] + table[:-1]) / 2, x, side="right").astype(np.uint8)


def nvfp4_encode(w, scale):
    """[rows, cols] f32 -> [rows, cols/64*36] bytes. Values are code * block scale * scale."""
    g = (w / np.float32(scale)).reshape(len(w), -1, 4, 16)  # [rows, block, group of 16, 16]
    d = nearest(np.abs(g).max(-1) / 6, UE4M3)
    s = UE4M3[d][..., None]
    code = nearest(np.abs(g) / np.where(s > 0, s, np.inf), E2M1) | (g < 0).astype(np.uint8) << 3
    qs = code[..., :8] | code[..., 8:] << 4  # column j with column j + 8
    return np.concatenate([d, qs.reshape(*qs.shape[:2], 32)], -1).reshape(len(w), -1)


def nvfp4_decode(b, scale):
    """Inverse of nvfp4_encode."""
    b = b.reshape(len(b), -1, 36)
    qs = b[..., 4:].reshape(*b.shape[:2], 4, 8)
    code = np.concatenate([qs & 15, qs >> 4], -1)
    mag = E2M1[code & 7] * UE4M3[b[..., :4]][..., None]
    return np.where(code & 8, -mag, mag).reshape(len(b), -1) * np.float32(scale)


def power_of_two(amax):
    """Second-level scale: the least power of two under which the largest value fits code 6 and block scale 448."""
    return np.float32(2.0 ** np.ceil(np.log2(max(amax, 1e-30) / (6 * 448))))


def family(name):
    """The tensors that share a scale with this one."""
    for group in ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"):
        own = [g for g in group if g in name]
        if own:
            return [name.replace(own[0], g) for g in group]
    return [name]


# ---------------------------------------------------------------- GGUF

def gguf_name(name):
    """Checkpoint tensor name -> (GGUF base name, expert index or None)."""
    if name in TOP:
        return TOP[name], None
    layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", name).groups()
    m = re.fullmatch(r"mlp\.experts\.(\d+)\.(.+)", rest)
    return f"blk.{layer}." + NAMES["mlp.experts." + m[2] if m else rest], int(m[1]) if m else None


def storage(base, ndim, bf16):
    """Storage type of a GGUF tensor."""
    leaf = base.split(".")[-1]
    if ndim == 1 or leaf == "ffn_gate_inp":
        return T.F32
    return T.BF16 if bf16 or leaf == "token_embd" else T.NVFP4


def add_model(w, c):
    """Hyper-parameters."""
    n, full = c["num_hidden_layers"], set(c["no_rope_layer_indices"])
    moe, shared = c["moe_intermediate_size"], c["shared_expert_intermediate_size"]
    for key, value in {
        "block_count": n, "context_length": c["max_position_embeddings"], "embedding_length": c["hidden_size"],
        "feed_forward_length": c["intermediate_size"], "vocab_size": c["vocab_size"],
        "attention.head_count": c["num_attention_heads"], "attention.head_count_kv": c["num_key_value_heads"],
        "attention.key_length": c["head_dim"], "attention.value_length": c["head_dim"],
        "attention.sliding_window": c["sliding_window"], "rope.dimension_count": c["head_dim"],
        "expert_count": c["num_experts"], "expert_used_count": c["num_experts_per_tok"],
        "expert_feed_forward_length": moe, "expert_shared_feed_forward_length": shared, "expert_shared_count": shared // moe,
        "leading_dense_block_count": len(c["mlp_only_layers"]), "expert_gating_func": 2,
    }.items():
        w.add_uint32("flint." + key, value)
    w.add_float32("flint.attention.layer_norm_rms_epsilon", c["rms_norm_eps"])
    w.add_float32("flint.rope.freq_base", c.get("rope_theta") or c["rope_parameters"]["rope_theta"])
    w.add_float32("flint.expert_weights_scale", 1.0)
    w.add_bool("flint.expert_weights_norm", c["norm_topk_prob"])
    w.add_array("flint.attention.sliding_window_pattern", [t == "sliding_attention" for t in c["layer_types"]])
    w.add_array("flint.attention.rope_pattern", [i not in full for i in range(n)])


def add_tokenizer(w, c, tok, template):
    """Vocabulary, merges, the three tokens that end an answer, the chat template."""
    tokens = [f"[PAD{i}]" for i in range(c["vocab_size"])]
    kinds = [int(gguf.TokenType.UNUSED)] * c["vocab_size"]
    for text, i in tok["model"]["vocab"].items():
        tokens[i], kinds[i] = text, int(gguf.TokenType.NORMAL)
    for t in tok["added_tokens"]:
        tokens[t["id"]] = t["content"]
        kinds[t["id"]] = int(gguf.TokenType.CONTROL if t["special"] else gguf.TokenType.USER_DEFINED)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("flint")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tok["model"]["merges"]])
    eos = c["eos_token_id"]
    w.add_eos_token_id(eos[0])
    w.add_eot_token_id(eos[1])
    w.add_uint32("tokenizer.ggml.eom_token_id", eos[2])
    w.add_pad_token_id(c["pad_token_id"])
    w.add_add_bos_token(False)
    w.add_chat_template(template)


def add_general(w, name, tensors, generation, bf16):
    """What the file is, and how to sample from it."""
    w.add_name(name)
    w.add_description("A small Flint trained from generated text; answers small questions, reads long texts, calls tools.")
    w.add_size_label(f"{sum(x.size for x in tensors.values()) / 1e6:.0f}M")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16 if bf16 else gguf.LlamaFileType.MOSTLY_NVFP4)
    w.add_float32("general.sampling.temp", generation["temperature"])
    w.add_int32("general.sampling.top_k", generation["top_k"])
    w.add_float32("general.sampling.top_p", generation["top_p"])


def export(ckpt, out, name="flint-tiny", bf16=False):
    """-> {GGUF base name: type}; raises SystemExit if NVFP4 would change a value."""
    config, tensors = read_json(ckpt, "config.json"), read_tensors(ckpt)
    with open(os.path.join(ckpt, "chat_template.jinja"), encoding="utf-8") as f:
        template = f.read()
    w = gguf.GGUFWriter(out, "flint")
    add_general(w, name, tensors, read_json(ckpt, "generation_config.json"), bf16)
    add_model(w, config)
    add_tokenizer(w, config, read_json(ckpt, "tokenizer.json"), template)
    groups = {}
    for key in tensors:
        base, expert = gguf_name(key)
        groups.setdefault(base, {})[expert or 0] = key
    kinds = {}
    for base, by_expert in groups.items():
        keys = [by_expert[e] for e in sorted(by_expert)]
        stacked, kind = base.endswith("_exps"), storage(base, tensors[keys[0]].ndim, bf16)
        kinds[base], parts, scales = kind, [], []
        for key in keys:
            x = tensors[key]
            if kind == T.NVFP4:
                scales.append(power_of_two(max(np.abs(tensors[k]).max() for k in family(key))))
                parts.append(nvfp4_encode(x, scales[-1]))
                if not np.array_equal(nvfp4_decode(parts[-1], scales[-1]), x):
                    raise SystemExit(f"{key}: values are not exact in NVFP4; was the end of the training run without --qat?")
            elif kind == T.BF16:
                parts.append((np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8))
            else:
                parts.append(x)
        w.add_tensor(base + ".weight", np.ascontiguousarray(np.stack(parts) if stacked else parts[0]), raw_dtype=kind)
        if scales:
            w.add_tensor(base + ".scale", np.array(scales, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    check(out, tensors, groups)
    return kinds


def check(path, tensors, groups):
    """Read the file with gguf-py alone: every value must equal the checkpoint's."""
    stored = {t.name: t for t in gguf.GGUFReader(path).tensors}
    for base, by_expert in groups.items():
        t = stored[base + ".weight"]
        got = gguf.quants.dequantize(t.data, t.tensor_type)
        scale = stored[base + ".scale"].data if base + ".scale" in stored else np.ones(len(by_expert), np.float32)
        for e, key in by_expert.items():
            if not np.array_equal((got[e] if base.endswith("_exps") else got) * scale[e], tensors[key]):
                raise SystemExit(f"{path}: {base} (expert {e}) differs from the checkpoint")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("ckpt")
    ap.add_argument("out")
    ap.add_argument("--name", default="flint-tiny")
    ap.add_argument("--bf16", action="store_true")
    a = ap.parse_args()
    kinds = export(a.ckpt, a.out, a.name, a.bf16)
    count = {k.name: list(kinds.values()).count(k) for k in dict.fromkeys(kinds.values())}
    print(f"{a.out}: {os.path.getsize(a.out)} bytes, {count}, every value equal to the checkpoint's")


if __name__ == "__main__":
    main()
