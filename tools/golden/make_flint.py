"""Rewrite tests/golden/flint: small excerpts of what transformers computes for random Flint checkpoints.

    make_flint.py [--only NAME]

Needs the packages of tools/oracle/README.md. The checkpoints are made from their seeds by tools/oracle/flint_tiny.py, so only
results are stored. Each case is NAME.npz:

    ids             int16 [T]        the prompt
    rows            int16 [R]        positions whose logits are stored: the first, those around the window, the last, some between
    logits          f32   [R, V]
    router_ids      uint8 [M, T, K]
    router_close    bool  [M, T]     router margin at most 1e-5: another choice is excusable
    generated       int16 [N]        greedy continuation, float32 cases of 100 tokens

and for bfloat16 cases, as raw bf16 bits: hidden, attn_out, mlp_out [L, T, H] (hidden [L + 1, T, H]).
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "oracle")
OUT = os.path.join(HERE, "..", "..", "tests", "golden", "flint")

# name, preset, GGUF kind whose dequantised twin is run (or None), tokens, dtype, generated
CASES = [
    ("nano-8", "nano", None, 8, "float32", 0),  # window - 1
    ("nano-9", "nano", None, 9, "float32", 0),  # window
    ("nano-10", "nano", None, 10, "float32", 0),  # window + 1
    ("nano-100", "nano", None, 100, "float32", 64),
    ("nano-600", "nano", None, 600, "float32", 0),
    ("nano-2000", "nano", None, 2000, "float32", 0),
    ("nano-nvfp4", "nano", "nvfp4", 100, "float32", 0),
    ("nano-q8_0", "nano", "q8_0", 100, "float32", 0),
    ("nano-mixed", "nano", "mixed", 100, "float32", 0),
    ("nano-bf16", "nano", None, 40, "bfloat16", 0),
    ("micro-32", "micro", None, 32, "float32", 0),
    ("micro-33", "micro", None, 33, "float32", 0),
    ("micro-34", "micro", None, 34, "float32", 0),
    ("micro-100", "micro", None, 100, "float32", 64),
    ("micro-600", "micro", None, 600, "float32", 0),
    ("micro-2000", "micro", None, 2000, "float32", 0),
    ("micro-nvfp4", "micro", "nvfp4", 100, "float32", 0),
    ("micro-bf16", "micro", None, 40, "bfloat16", 0),
]


def run(script, *args):
    subprocess.run([sys.executable, os.path.join(ORACLE, script), *map(str, args)], check=True)


def bits(x):
    """f32 that holds bf16 values -> their bits."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    assert not (u & 0xFFFF).any()
    return (u >> 16).astype(np.uint16)


def excerpt(g, window):
    n = len(g["ids"])
    rows = {0, 1, window - 2, window - 1, window, window + 1, 2 * window, n // 2, n - 2, n - 1, *range(0, n, max(1, n // 12))}
    rows = np.array(sorted(r for r in rows if 0 <= r < n), np.int16)
    out = dict(ids=g["ids"].astype(np.int16), rows=rows, logits=g["logits"][rows], router_ids=g["router_ids"].astype(np.uint8),
               router_close=g["router_margin"] <= 1e-5)
    if "generated" in g:
        out["generated"] = g["generated"].astype(np.int16)
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only")
    a = ap.parse_args()
    os.makedirs(OUT, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        at = lambda *p: os.path.join(tmp, *p)
        for name, preset, quant, tokens, dtype, generate in CASES:
            if a.only and a.only != name:
                continue
            if not os.path.exists(at(preset)):
                run("flint_tiny.py", at(preset), "--preset", preset)
            folder = at(preset)
            if quant:
                folder = at(f"{preset}-{quant}")
                run("flint_gguf.py", at(preset), at("x.gguf"), "--quant", quant, "--dequant", folder)
            run("flint_reference.py", folder, "--random", tokens, "--dtype", dtype, "--generate", generate, "--out", at("g.npz"))
            g = np.load(at("g.npz"))
            out = excerpt(g, {"nano": 9, "micro": 33}[preset])
            if dtype == "bfloat16":
                out.update({k: bits(g[k]) for k in ("hidden", "attn_out", "mlp_out")})
            np.savez_compressed(os.path.join(OUT, name + ".npz"), **out)


if __name__ == "__main__":
    main()
