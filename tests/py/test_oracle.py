"""`sumi trace` against what the public implementation computes (tests/golden/flint, made by tools/golden/make_flint.py)."""
import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GOLDEN = os.path.join(ROOT, "tests", "golden", "flint")
ORACLE = os.path.join(ROOT, "tools", "oracle")
SUMI = os.environ.get("SUMI_BIN", os.path.join(ROOT, "build", "sumi"))
SHA256 = {"nano": "1041e8a5a932e803"}  # of model.safetensors: another random stream would void the stored results
WINDOW = {"nano": 9, "micro": 33}


def make(script, *args):
    subprocess.run([sys.executable, os.path.join(ORACLE, script), *map(str, args)], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """models(preset, quant) -> a checkpoint directory or a GGUF file."""
    tmp = tmp_path_factory.mktemp("flint")

    def get(preset, quant=None):
        folder = tmp / preset
        if not folder.exists():
            make("flint_tiny.py", folder, "--preset", preset)
            if preset in SHA256:
                digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
                assert digest.startswith(SHA256[preset])
        if not quant:
            return folder
        path = tmp / f"{preset}-{quant}.gguf"
        if not path.exists():
            make("flint_gguf.py", folder, path, "--quant", quant, "--no-check")
        return path

    return get


@pytest.fixture
def trace(tmp_path):
    """trace(model, ids, options) -> {name: array}."""
    count = iter(range(1000))

    def run(model, ids, *options):
        out = tmp_path / f"trace{next(count)}"
        cmd = [SUMI, "trace", str(model), "--ids", ",".join(map(str, ids)), "--out", str(out), *map(str, options)]
        r = subprocess.run(cmd, capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
        return {f.stem: np.load(f) for f in out.iterdir()}

    return run


def golden(name):
    g = dict(np.load(os.path.join(GOLDEN, name + ".npz")))
    for key in ("hidden", "attn_out", "mlp_out"):
        if key in g:
            g[key] = (g[key].astype(np.uint32) << 16).view(np.float32)
    return g


def relative(x, y):
    return float(np.sqrt(np.mean((x - y) ** 2) / np.mean(y ** 2)))


def check_float32(got, g, limit):
    """Choices and logits up to the first token whose choice hangs on a margin of 1e-5: there another engine may rightly part."""
    close = g["router_close"].any(0)
    end = int(close.argmax()) if close.any() else len(close)
    rows = g["rows"] < end
    assert rows.sum() > 3
    assert np.abs(got["logits"][g["rows"][rows]] - g["logits"][rows]).max() <= limit
    # The margin is that of the choice; two chosen experts whose scores tie may stand in either order.
    assert np.array_equal(np.sort(got["router_ids"])[:, :end], np.sort(g["router_ids"])[:, :end])


FLOAT32 = [f"nano-{n}" for n in (8, 9, 10, 100, 600, 2000)] + [f"micro-{n}" for n in (32, 33, 34, 100, 600, 2000)]


@pytest.mark.parametrize("name", FLOAT32)
def test_float32_agrees_with_the_reference(models, trace, name):
    g = golden(name)
    n = len(g.get("generated", ()))
    got = trace(models(name.split("-")[0]), g["ids"], "--dtype", "float32", "--generate", n)
    check_float32(got, g, 1e-4 if len(g["ids"]) <= 600 else 1e-3)
    if n:
        assert got["generated"].tolist() == g["generated"].tolist()


@pytest.mark.parametrize("name", ["nano-2000", "micro-2000"])
def test_long_prompts_agree_throughout_with_given_routes(models, trace, tmp_path, name):
    g = golden(name)
    np.save(tmp_path / "route.npy", g["router_ids"].astype(np.int32))
    got = trace(models(name.split("-")[0]), g["ids"], "--dtype", "float32", "--route", tmp_path / "route.npy")
    assert np.abs(got["logits"][g["rows"]] - g["logits"]).max() <= 1e-3


@pytest.mark.parametrize("name", ["nano-nvfp4", "nano-q8_0", "nano-mixed", "micro-nvfp4"])
def test_gguf_agrees_with_its_dequantised_twin(models, trace, name):
    g = golden(name)
    preset, quant = name.split("-")
    check_float32(trace(models(preset, quant), g["ids"], "--dtype", "float32"), g, 1e-4)


@pytest.mark.parametrize("chunk", [1, 3, 64, 512])
def test_chunked_prefill_gives_the_same_bits(models, trace, chunk):
    ids = golden("nano-600")["ids"]
    for dtype in ("float32", "bfloat16"):
        whole = trace(models("nano"), ids, "--dtype", dtype)
        cut = trace(models("nano"), ids, "--dtype", dtype, "--chunk", chunk)
        for name in whole:
            assert np.array_equal(whole[name].view(np.int32), cut[name].view(np.int32)), name


@pytest.mark.parametrize("preset", ["nano", "micro"])
def test_bfloat16_layers_agree_within_one_percent(models, trace, tmp_path, preset):
    g = golden(f"{preset}-bf16")
    np.save(tmp_path / "hidden.npy", g["hidden"])
    np.save(tmp_path / "route.npy", g["router_ids"].astype(np.int32))
    got = trace(models(preset), g["ids"], "--dtype", "bfloat16", "--layerwise", tmp_path / "hidden.npy", "--route",
                tmp_path / "route.npy")
    for name in ("attn_out", "mlp_out"):
        for layer, (x, y) in enumerate(zip(got[name], g[name])):
            assert relative(x, y) <= 0.01, (name, layer)


@pytest.mark.parametrize("preset", ["nano", "micro"])
def test_bfloat16_with_injected_routes_agrees_within_five_percent(models, trace, tmp_path, preset):
    g = golden(f"{preset}-bf16")
    np.save(tmp_path / "route.npy", g["router_ids"].astype(np.int32))
    got = trace(models(preset), g["ids"], "--dtype", "bfloat16", "--route", tmp_path / "route.npy")
    assert relative(got["logits"][g["rows"]], g["logits"]) <= 0.05
    assert np.array_equal(got["router_ids"], g["router_ids"])


def test_bfloat16_with_free_routes_mostly_picks_the_same_token(models, trace):
    g = golden("micro-bf16")
    got = trace(models("micro"), g["ids"], "--dtype", "bfloat16")
    same = got["logits"][g["rows"]].argmax(-1) == g["logits"].argmax(-1)
    print(f"free routing: {100 * same.mean():.0f} % of {len(same)} positions pick the same token")
    assert same.mean() > 0.5  # a statistic: the reference's own figure is 89 to 98 %


@pytest.mark.parametrize("what, options, word", [
    ("route", ["--route", "hidden.npy"], "int32"),
    ("layerwise", ["--layerwise", "route.npy"], "float32"),
    ("missing", ["--route", "absent.npy"], "absent.npy"),
])
def test_injected_files_are_checked(models, tmp_path, what, options, word):
    np.save(tmp_path / "hidden.npy", np.zeros((7, 3, 64), np.float32))
    np.save(tmp_path / "route.npy", np.zeros((4, 3, 2), np.int32))
    r = subprocess.run([SUMI, "trace", str(models("nano")), "--ids", "1,2,3", "--out", str(tmp_path / "o"), options[0],
                        str(tmp_path / options[1])], capture_output=True, text=True)
    assert r.returncode != 0 and word in r.stderr
