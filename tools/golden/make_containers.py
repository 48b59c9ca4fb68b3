"""Writes tests/golden/small.gguf and tests/golden/small.safetensors with the public writers.

    python3 tools/golden/make_containers.py [OUTDIR]

tests/unit/test_gguf.c and test_safetensors.c know what is in them. Made with gguf 0.19.0,
safetensors 0.8.0, numpy 2.4.6.
"""
import pathlib
import sys

import gguf
import numpy as np
from safetensors.numpy import save_file


def write_gguf(path):
    w = gguf.GGUFWriter(path, "toy")
    w.add_custom_alignment(64)
    w.add_uint32("toy.block_count", 3)
    w.add_float32("toy.eps", 0.25)
    w.add_bool("toy.norm", True)
    w.add_array("toy.pattern", [True, False, True])
    w.add_array("tokenizer.ggml.tokens", ["a", "", "\u00e9\u4e2d"])
    w.add_int64("toy.offset", -(1 << 40))
    w.add_tensor("v.weight", np.arange(5, dtype=np.float32))
    w.add_tensor("m.weight", np.arange(6, dtype=np.float16).reshape(2, 3))
    block = np.arange(2 * 36, dtype=np.uint8).reshape(2, 36)
    w.add_tensor("q.weight", block, raw_dtype=gguf.GGMLQuantizationType.NVFP4)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_safetensors(path):
    save_file({"v": np.arange(5, dtype=np.float32),
               "m": np.arange(6, dtype=np.float16).reshape(2, 3),
               "flag": np.array([True, False]), "scalar": np.array(7, np.int64)},
              path, {"format": "np"})


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tests/golden"
    out.mkdir(parents=True, exist_ok=True)
    write_gguf(out / "small.gguf")
    write_safetensors(out / "small.safetensors")


if __name__ == "__main__":
    main()
