#!/usr/bin/env python3
"""Measures the pack's linear layers with packed weights for more rows of x on a GPU, beside the exact layer (LibTorch's), and
beside unpacking the weight for it, of fp8 beside LibTorch's product of rounded rows.

    TWINKLE_PACK_CUDA=build/gpu/lib/twinkle/kernels/twinkle-pack/build/VARIANT gpu_bits_rows.py [-o OUT.md] [--rows 64]…

Calls in one CUDA graph between two events, the least of four runs; weights are rotated, so that the last cache holds
none. Nothing is compared: tests/gpu/bits_on_gpu.py does that.
"""

import argparse
import importlib
import importlib.util
import itertools
import os
import pathlib
import sys

import torch

import machine
from contestant import table
from gpu_linear_bench import graphed

SHAPES = [(18944, 3584), (3584, 18944), (3584, 3584), (512, 3584)]
ROWS = [33, 64, 65, 96, 128, 160, 192, 256]
KINDS = ["int8", "int4", "fp8"]
RUNS, LEAST_CALLS = 4, 16


def pack():
    package = pathlib.Path(os.environ["TWINKLE_PACK_CUDA"])
    specification = importlib.util.spec_from_file_location("twinkle_pack_measured", package / "__init__.py",
                                                           submodule_search_locations=[str(package)])
    sys.modules["twinkle_pack_measured"] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return importlib.import_module("twinkle_pack_measured.low_bits")


def seconds(call, weights: list) -> float:
    once = graphed(lambda i: call(weights[i % len(weights)]), len(weights) * -(-LEAST_CALLS // len(weights)))
    return min(once() for _ in range(RUNS))


def rotated(make) -> list:
    """Enough copies that the last cache holds none when it comes again."""
    first = make()
    nbytes = sum(tensor.nbytes for tensor in first)
    count = max(2, 3 * torch.cuda.get_device_properties(0).L2_cache_size // nbytes + 1)
    return [first, *([tensor.clone() for tensor in first] for _ in range(count - 1))]


def case(low_bits, kind: str, outputs: int, depth: int, packed: list, plain: list, rows: int) -> list[str]:
    x = torch.randn(rows, depth, device="cuda").bfloat16()
    linear, exact = getattr(low_bits.ops, f"linear_{kind}"), torch.nn.functional.linear
    unpack = getattr(low_bits.ops, f"unpack_{kind}")

    def by_libtorch(weight):
        if kind != "fp8":
            return exact(x, unpack(x, *weight))
        values, scales = low_bits.ops.round_to_fp8(x)
        return torch._scaled_mm(values, weight[0].t(), scales, weight[1].t(), out_dtype=x.dtype)

    ours = seconds(lambda weight: linear(x, *weight, None), packed)
    libtorch = seconds(by_libtorch, packed)
    cublas = seconds(lambda weight: exact(x, *weight), plain)
    return [f"{outputs} x {depth}", kind, str(rows), *(f"{1e6 * time:.1f}" for time in (ours, libtorch, cublas)), f"{ours / cublas:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--rows", action="append", type=int)
    options = parser.parse_args()
    low_bits, cases = pack(), []
    for (outputs, depth), kind in itertools.product(SHAPES, KINDS):
        packed = rotated(lambda: getattr(low_bits, f"quantize_{kind}")(torch.randn(outputs, depth, device="cuda")))
        plain = rotated(lambda: [torch.randn(outputs, depth, device="cuda").bfloat16()])
        cases += [case(low_bits, kind, outputs, depth, packed, plain, rows) for rows in options.rows or ROWS]
    head = ["weight (N x K)", "bits", "rows", "ours, us", "LibTorch's, us", "exact, us", "ours / exact"]
    text = "\n".join([f"{machine.versions(sys.executable)}; {machine.gpu()}.", "", *table(head, cases)]) + "\n"
    options.output.write_text(text) if options.output else print(text)


if __name__ == "__main__":
    main()
