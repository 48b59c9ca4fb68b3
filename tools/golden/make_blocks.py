"""Writes tests/golden/blocks/*.bin: stored bytes of each number format and the f32 they mean.

    python3 tools/golden/make_blocks.py [OUTDIR]

The values come from gguf-py (gguf.quants.dequantize), those of E4M3 from torch.float8_e4m3fn.
Layout of a file, little endian: u32 number of values, u32 number of stored bytes, the stored bytes,
the values as f32. Stored bytes are random, with these exceptions:

- f16 scales inside blocks are finite (an infinite one would make NaN, whose bits nobody defines);
- NVFP4 block scales are below 0x80: gguf-py makes 480 of 0xFF, which no sound file holds;
- F16, BF16, E4M3 and UE4M3 hold chosen edge values or all values instead.

Made with gguf 0.19.0, numpy 2.4.6, torch 2.14.1.
"""
import pathlib
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T

# type, blocks, offsets of f16 fields in a block
BLOCKS = [(T.Q4_0, 24, (0,)), (T.Q4_1, 24, (0, 2)), (T.Q8_0, 24, (0,)), (T.Q4_K, 5, (0, 2)),
          (T.Q5_K, 5, (0, 2)), (T.Q6_K, 5, (208,)), (T.NVFP4, 16, ())]
# Zeros, subnormals, one, largest, infinities of both signs, then whatever comes.
F16_EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0x3C01, 0x7BFF, 0xFBFF,
             0x7C00, 0xFC00]
BF16_EDGES = [0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80]


def write(out, name, stored, values):
    stored = np.ascontiguousarray(stored).view(np.uint8).reshape(-1)
    values = np.ascontiguousarray(values, "<f4").reshape(-1)
    head = np.array([values.size, stored.size], "<u4")
    (out / f"{name}.bin").write_bytes(head.tobytes() + stored.tobytes() + values.tobytes())


def random_blocks(rng, kind, n, halves):
    block = rng.integers(0, 256, (n, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
    for at in halves:
        high = block[:, at + 1]
        block[:, at + 1] = np.where(high & 0x7C == 0x7C, high & 0xBF, high)
    if halves:
        block[0, halves[0]:halves[0] + 2] = (1, 0)  # the smallest subnormal f16
    if kind == T.NVFP4:
        block[:, :4] &= 0x7F
        block[0, :4] = (0x00, 0x01, 0x7E, 0x7F)
    return block


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tests/golden/blocks"
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240)
    for kind, n, halves in BLOCKS:
        block = random_blocks(rng, kind, n, halves)
        write(out, kind.name, block, gguf.quants.dequantize(block, kind))
    for kind, edges in (T.F16, F16_EDGES), (T.BF16, BF16_EDGES):
        bits = np.concatenate([np.array(edges), rng.integers(0, 0x7C00, 100)]).astype("<u2")
        write(out, kind.name, bits, gguf.quants.dequantize(bits.view(np.uint8), kind))
    f32 = rng.integers(0, 0x7F800000, 32, dtype=np.uint32)
    write(out, "F32", f32, f32.view(np.float32))
    every = np.arange(256, dtype=np.uint8)
    e4m3 = torch.from_numpy(every.copy()).view(torch.float8_e4m3fn).to(torch.float32).numpy()
    write(out, "F8_E4M3", every, e4m3)
    # gguf-py halves this scale because its codes are doubled; 0xFF is left out, see above.
    write(out, "UE4M3", every[:255], 2 * gguf.quants.NVFP4.ue4m3_to_fp32(every[:255]))


if __name__ == "__main__":
    main()
