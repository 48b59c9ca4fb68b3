"""Layouts that must load alike, and checkpoints that must be refused with a sentence that helps."""
import os
import subprocess

import numpy as np
import pytest

import checkpoints as ck
from test_oracle import SUMI, models, trace  # noqa: F401 (fixtures)

IDS = [3, 141, 59, 26, 53, 58, 97, 93, 238, 46, 264, 33]


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name].view(np.int32), b[name].view(np.int32)), name


def refused(model, *words, options=()):
    r = subprocess.run([SUMI, "trace", str(model), "--ids", "1,2", "--out", str(model) + "-out", *options], capture_output=True,
                       text=True, timeout=60)
    assert r.returncode not in (0, -6, -11), r.stderr
    line = r.stderr.strip().splitlines()[-1]
    for w in words:
        assert w in line, line


def test_modelopt_layout_equals_the_gguf(models, trace, tmp_path):
    path = models("nano", "nvfp4")
    want = trace(path, IDS, "--dtype", "float32")
    same(trace(ck.modelopt_twin(path, models("nano"), tmp_path / "mo"), IDS, "--dtype", "float32"), want)


def test_compressed_tensors_names_mean_the_inverse_scale(models, trace, tmp_path):
    path = models("nano", "nvfp4")
    want = trace(path, IDS, "--dtype", "float32")
    got = trace(ck.modelopt_twin(path, models("nano"), tmp_path / "ct", inverse=True), IDS, "--dtype", "float32")
    assert np.abs(got["logits"] - want["logits"]).max() < 1e-4  # 1 / (1 / s) may differ by one unit


def test_fused_names_equal_single_ones(models, trace, tmp_path):
    def fuse(t):
        for layer in range(2, 6):
            p = f"model.layers.{layer}.mlp.experts."
            both, down = b"", b""
            for e in range(8):
                both += t.pop(f"{p}{e}.gate_proj.weight")[2] + t.pop(f"{p}{e}.up_proj.weight")[2]
                down += t.pop(f"{p}{e}.down_proj.weight")[2]
            t[p + "gate_up_proj"] = ("BF16", [8, 128, 64], both)
            t[p + "down_proj"] = ("BF16", [8, 64, 64], down)
    want = trace(models("nano"), IDS, "--dtype", "bfloat16")
    same(trace(ck.clone(models("nano"), tmp_path / "fused", fuse), IDS, "--dtype", "bfloat16"), want)


def test_float32_routers_and_sinks_load(models, trace, tmp_path):
    def widen(t):
        for name in list(t):
            if name.endswith(("mlp.gate.weight", "softmax_offset")):
                dtype, shape, data = t[name]
                t[name] = ("F32", shape, ck.f32(dtype, data).tobytes())
    want = trace(models("nano"), IDS, "--dtype", "bfloat16")
    same(trace(ck.clone(models("nano"), tmp_path / "wide", widen), IDS, "--dtype", "bfloat16"), want)


def rescaled(path, out, change):
    """A copy of a GGUF whose data bytes were changed in place: change({name: writable uint8 view})."""
    import gguf
    data = bytearray(open(path, "rb").read())
    reader = gguf.GGUFReader(str(path))
    view = np.frombuffer(data, np.uint8)
    change({t.name: view[t.data_offset:t.data_offset + t.n_bytes] for t in reader.tensors})
    open(out, "wb").write(data)
    return out


def test_halved_scales_mean_the_same_wherever_they_stand(models, trace, tmp_path):
    """cases A7: tensor scale s with blocks b, or 2s with every block scale halved (an exponent step, exact above the subnormals)."""
    path = models("nano", "nvfp4")

    def move(t):
        for name, data in t.items():
            if name.endswith(".scale"):
                data.view(np.float32)[:] *= 2
                block = t[name[:-len("scale")] + "weight"].reshape(-1, 36)[:, :4]
                assert ((block >= 16) | (block == 0)).all()  # or halving would round
                block[block > 0] -= 8
    same(trace(rescaled(path, tmp_path / "moved.gguf", move), IDS, "--dtype", "float32"),
         trace(path, IDS, "--dtype", "float32"))


def test_an_absent_scale_is_one(models, trace, tmp_path):
    """The last layer's experts of a mixed file have no scale tensors; its dequantised twin is compared in test_oracle."""
    import gguf
    names = {t.name for t in gguf.GGUFReader(str(models("nano", "mixed"))).tensors}
    assert "blk.5.ffn_gate_exps.scale" not in names and "blk.4.ffn_gate_exps.scale" in names
    assert np.isfinite(trace(models("nano", "mixed"), IDS)["logits"]).all()


BAD = {
    "missing": (lambda t: t.pop("model.layers.3.mlp.experts.5.up_proj.weight"),
                ("model.layers.3.mlp.experts.5.up_proj.weight", "missing", "[64, 64]")),
    "surplus": (lambda t: t.update({"model.layers.3.extra.weight": ("BF16", [2], b"\0" * 4)}),
                ("model.layers.3.extra.weight", "1 tensor")),
    "misshapen": (lambda t: t.update({"model.norm.weight": ("BF16", [32], b"\0" * 64)}), ("model.norm.weight", "BF16 [32]", "[64]")),
    "transposed": (lambda t: t.update({"model.layers.0.self_attn.k_proj.weight": ("BF16", [32, 128], b"\0" * 8192)}),
                   ("k_proj.weight", "BF16 [32, 128]", "[64, 64]")),
    "integer": (lambda t: t.update({"model.layers.0.self_attn.k_proj.weight": ("U8", [64, 64], b"\0" * 4096)}),
                ("k_proj.weight", "U8 [64, 64]")),
    "nan in a norm": (lambda t: t.update({"model.norm.weight": ("F32", [64], np.full(64, np.nan, np.float32).tobytes())}),
                      ("model.norm.weight", "nan")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tensors_are_refused_by_name(models, tmp_path, name):
    change, words = BAD[name]
    refused(ck.clone(models("nano"), tmp_path / "bad", change), *words)


def test_a_config_that_contradicts_the_tensors_is_refused(models, tmp_path):
    refused(ck.clone(models("nano"), tmp_path / "c", config=lambda c: c.update(hidden_size=128)), "128", "expected")


def test_a_truncated_file_says_what_is_missing(models, tmp_path):
    folder = ck.clone(models("nano"), tmp_path / "cut")
    path = folder / "model.safetensors"
    os.truncate(path, os.path.getsize(path) - 1)
    refused(folder, "model.safetensors", "expected", "found")


def test_an_unknown_architecture_is_named(models, tmp_path):
    folder = ck.clone(models("nano"), tmp_path / "arch", config=lambda c: c.update(model_type="qwen9"))
    refused(folder, "qwen9")


def test_no_model_at_all(tmp_path):
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "empty")
    refused(tmp_path / "nowhere", "nowhere")


def test_a_nan_in_a_matrix_is_an_error_not_a_token(models, tmp_path):
    def poison(t):
        dtype, shape, data = t["lm_head.weight"]
        w = np.frombuffer(data, np.uint16).copy()
        w[5 * 64] = 0x7FC0  # one NaN in the row of token 5
        t["lm_head.weight"] = (dtype, shape, w.tobytes())
    folder = ck.clone(models("nano"), tmp_path / "nan", poison)
    r = subprocess.run([SUMI, "run", str(folder), "--prompt", "hello", "--raw", "--max-tokens", "4"], capture_output=True, text=True,
                       timeout=60)
    assert r.returncode != 0 and "not a number" in r.stderr.lower()
