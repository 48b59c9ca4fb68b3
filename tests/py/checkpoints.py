"""Reading and writing checkpoints for tests: raw safetensors, and a ModelOpt-style NVFP4 twin of a GGUF."""
import json
import os
import re
import shutil
import struct

import numpy as np

ITEM = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "F8_E4M3": 1}


def read(path):
    """{name: (dtype, shape, bytes)} of one .safetensors file."""
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
        data = f.read()
    header.pop("__metadata__", None)
    return {k: (t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]]) for k, t in header.items()}


def write(path, tensors):
    """The inverse of read."""
    header, blob = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def f32(dtype, data):
    if dtype == "F32":
        return np.frombuffer(data, np.float32)
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


def clone(folder, to, change=None, config=None):
    """A copy of a single-file checkpoint with tensors and config changed in place by the two functions."""
    os.makedirs(to, exist_ok=True)
    for f in os.listdir(folder):
        if not f.endswith(".safetensors"):
            shutil.copy(os.path.join(folder, f), to)
    tensors = read(os.path.join(folder, "model.safetensors"))
    if change:
        change(tensors)
    write(os.path.join(to, "model.safetensors"), tensors)
    if config:
        path = os.path.join(to, "config.json")
        c = json.load(open(path))
        config(c)
        json.dump(c, open(path, "w"))
    return to


# GGUF name -> safetensors name, for one layer
LAYER = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
         "ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj",
         "ffn_down_exps": "down_proj"}


def modelopt_name(gguf_name):
    """Base name -> list of checkpoint base names (one per expert for a stack)."""
    if gguf_name == "output":
        return ["lm_head"]
    layer, leaf = re.fullmatch(r"blk\.(\d+)\.(\w+)", gguf_name).groups()
    p = f"model.layers.{layer}."
    return [p + f"mlp.experts.%d.{LAYER[leaf]}"] if leaf.endswith("_exps") else [p + LAYER[leaf]]


def nvidia(blocks):
    """GGUF NVFP4 rows [rows, n/64*36] -> (packed codes [rows, n/2], scales [rows, n/16]), as the specification describes."""
    b = blocks.reshape(len(blocks), -1, 36)
    qs = b[..., 4:].reshape(*b.shape[:2], 4, 8)
    codes = np.concatenate([qs & 15, qs >> 4], -1)  # [..., 4, 16] in column order
    packed = codes[..., 0::2] | codes[..., 1::2] << 4
    return packed.reshape(len(b), -1).astype(np.uint8), b[..., :4].reshape(len(b), -1)


def modelopt_twin(gguf_path, folder, to, inverse=False):
    """The NVFP4 matrices of a GGUF in ModelOpt's safetensors layout (or with compressed-tensors' names and inverse scales)."""
    import gguf
    tensors = {t.name: t for t in gguf.GGUFReader(str(gguf_path)).tensors}

    def change(ck):
        for name, t in tensors.items():
            if t.tensor_type != gguf.GGMLQuantizationType.NVFP4:
                continue
            base = name[:-len(".weight")]
            stack = np.asarray(t.data).reshape(-1, t.data.shape[-2], t.data.shape[-1])
            scale = np.asarray(tensors[base + ".scale"].data, np.float32)
            for e, rows in enumerate(stack):
                out = modelopt_name(base)[0]
                out = out % e if "%d" in out else out
                packed, block = nvidia(rows)
                _, shape, _ = ck.pop(out + ".weight")
                s = np.float32(1) / scale[e] if inverse else scale[e]
                ck[out + (".weight_packed" if inverse else ".weight")] = ("U8", [shape[0], shape[1] // 2], packed.tobytes())
                ck[out + ".weight_scale"] = ("F8_E4M3", [shape[0], shape[1] // 16], block.tobytes())
                ck[out + (".weight_global_scale" if inverse else ".weight_scale_2")] = ("F32", [], np.float32(s).tobytes())
                ck[out + ".input_scale"] = ("F32", [], np.float32(0.25).tobytes())
    return clone(folder, to, change)
