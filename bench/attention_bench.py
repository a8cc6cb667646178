#!/usr/bin/env python3
"""Attention alone on this CPU: LibTorch's scaled_dot_product_attention, and the pack's, in turns.

    build/venv/bin/python bench/attention_bench.py [BUILD_FOLDER] [--dtype bfloat16]… [--threads N]… [-o FILE.md]

Heads lie as projections give them, [batch, rows, heads, width], without a mask. Medians of the time on the wall; errors are
Euclidean, relative to double precision. TWINKLE_PACK_ISA chooses the instructions, and all sizes; without it the pack
leaves to LibTorch what kernels/twinkle-pack/src/rules.h says, and the row has a dash.
"""

import argparse
import os
import pathlib
import time

import machine
import torch
from contestant import table
from linear_bench import ROOT, medians, operators

# batch, heads, rows, width: Whisper's encoder, BERT, ViT, Llama
SIZES = [(1, 12, 16, 64), (1, 12, 64, 64), (1, 12, 128, 64), (4, 12, 128, 64), (1, 12, 197, 64), (1, 12, 512, 64),
         (1, 8, 1500, 64), (1, 16, 128, 128), (1, 16, 512, 128)]
ROUNDS = 9


def error(result: torch.Tensor, exact: torch.Tensor) -> str:
    return f"{float((result.double() - exact).norm() / exact.norm()):.1e}"


def line(ops, dtype: torch.dtype, size: tuple) -> list[str]:
    batch, heads, rows, width = size
    query, key, value = (torch.randn(batch, rows, heads, width).to(dtype).transpose(1, 2) for _ in range(3))
    calls = {"LibTorch": lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value),
             "pack": lambda: ops.attention(query, key, value, None, width**-0.5, False, False)}
    exact = torch.nn.functional.scaled_dot_product_attention(query.double(), key.double(), value.double())
    if calls["pack"]() is None:
        del calls["pack"]
    found = medians(calls, ROUNDS, time.perf_counter)
    cells = [f"{1000 * found[name]:.3f}" if name in found else "–" for name in ("LibTorch", "pack")]
    ratio = f"{found['LibTorch'] / found['pack']:.2f}" if "pack" in found else "–"
    errors = [error(calls[name](), exact) if name in calls else "–" for name in ("LibTorch", "pack")]
    return [str(dtype).removeprefix("torch."), " x ".join(map(str, size)), *cells, ratio, *errors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=ROOT / "build/release")
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--threads", action="append", type=int)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.set_defaults(json=None)
    options = parser.parse_args()
    ops = operators(options.build)
    lines = ["# Attention on a CPU", "", f"{machine.processor()}, {machine.load()}; LibTorch {torch.__version__}; "
             f"instructions: {os.environ.get('TWINKLE_PACK_ISA', 'the widest')}. Milliseconds a call.", ""]
    with torch.inference_mode():
        for threads in options.threads or [torch.get_num_threads()]:
            torch.set_num_threads(threads)
            body = [line(ops, getattr(torch, dtype), size) for dtype in options.dtype or ["float32", "bfloat16", "float16"]
                    for size in SIZES]
            head = ["dtype", "batch x heads x rows x width", "LibTorch", "pack", "LibTorch / pack", "its error", "ours"]
            lines += [f"## {threads} threads" if threads > 1 else "## One thread", "", *table(head, body), ""]
    machine.publish(options, "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
