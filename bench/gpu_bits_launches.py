#!/usr/bin/env python3
"""Measures launches of the pack's linear layers with packed weights on a GPU, from which the table of
kernels/twinkle-pack/src/cuda/bits_linear.cu is made.

    gpu_bits_launches.py FOLDER [-o OUT.md] [--seconds 300] [--packing int8]… [--rows 1]… [--shapes 3]

FOLDER: across1.so, across2.so, across4.so and across8.so, of bench/bits_launches.cu, and products.so, of
bench/product_launches.cu, which Hopper alone has (script/bench-gpu --bits builds them).
Calls in one CUDA graph between two events, the least of four runs; weights are rotated, so that the last cache holds
none. Nothing is compared: tests/gpu/bits_on_gpu.py does that. For each size the four fastest are shown, each with its
warps, groups that are read ahead, blocks of a multiprocessor and blocks of a cluster; "supplied" (bits_supply.h): its
warps, KiB of a stage, stages and blocks of a cluster; of products: tiles of eight rows, teams, groups of a step and blocks
of a cluster.
"""

import argparse
import ctypes
import itertools
import pathlib
import sys
import time

import torch

import machine
from contestant import table
from gpu_linear_bench import graphed

PACKINGS = {"int8": 0, "int4": 1, "fp8": 2}
SHAPES = [(3584, 3584), (18944, 3584), (3584, 18944), (4096, 4096), (14336, 4096), (4096, 14336), (512, 3584), (1024, 1024),
          (6144, 4096), (128256, 4096)]
ROWS = {"across1": [1], "across2": [16], "across4": [32], "across8": [64], "products": [64, 128, 192, 256]}  # by library
RUNS, SHOWN = 4, 4


def library(path: pathlib.Path) -> ctypes.CDLL:
    opened = ctypes.CDLL(path)
    opened.name.restype = ctypes.c_char_p
    pointer, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    opened.run.argtypes = [number, number, *[pointer] * 4, *[size] * 3, number, pointer, number]
    return opened


class Weights:
    """Enough of one shape that the last cache holds none when it comes again."""

    def __init__(self, packing: str, outputs: int, depth: int):
        self.packing, self.outputs, self.depth = packing, outputs, depth
        row = depth // 2 if packing == "int4" else depth
        count = max(2, 3 * torch.cuda.get_device_properties(0).L2_cache_size // (outputs * row) + 1)
        self.calls = count * -(-16 // count)
        self.all = [(torch.randint(0, 120, (outputs, row), dtype=torch.uint8, device="cuda"),
                     torch.rand(outputs, 1 if packing == "fp8" else depth // 64, device="cuda")) for _ in range(count)]

    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.all[0])


def measure(opened: ctypes.CDLL, weights: Weights, rows: int, end: float) -> list[tuple[float, str]]:
    x = torch.randn(rows, weights.depth, device="cuda").bfloat16()
    y = torch.empty(rows, weights.outputs, device="cuda", dtype=torch.bfloat16)
    found = []
    for i, cluster_bits in itertools.product(range(opened.count()), range(4)):
        if time.monotonic() > end:
            break

        def call(at: int) -> int:
            values, scales = weights.all[at % len(weights.all)]
            return opened.run(i, PACKINGS[weights.packing], x.data_ptr(), values.data_ptr(), scales.data_ptr(), y.data_ptr(), rows,
                              weights.outputs, weights.depth, cluster_bits, torch.cuda.current_stream().cuda_stream, 0)

        if call(0):
            once = graphed(call, weights.calls)
            found.append((min(once() for _ in range(RUNS)),
                          f"{opened.name(i).decode()} / {1 << cluster_bits}"))
    return sorted(found)


def case(path: pathlib.Path, weights: Weights, rows: int, end: float) -> list[str]:
    fastest = measure(library(path), weights, rows, end)[:SHOWN]
    moved = weights.nbytes() + 2 * rows * (weights.outputs + weights.depth)
    return [f"{weights.outputs} x {weights.depth}", str(rows), weights.packing,
            f"{moved / fastest[0][0] / 1e12:.2f}" if fastest else "",
            *(f"{1e6 * seconds:.1f} ({how})" for seconds, how in fastest), *[""] * (SHOWN - len(fastest))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--packing", action="append", choices=PACKINGS)
    parser.add_argument("--rows", action="append", type=int, choices=sorted({rows for of_library in ROWS.values() for rows in of_library}))
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="the first so many")
    options = parser.parse_args()
    end, cases = time.monotonic() + options.seconds, []
    for (outputs, depth), packing in itertools.product(SHAPES[:options.shapes], options.packing or PACKINGS):
        if time.monotonic() > end:
            print(f"{outputs} x {depth}, {packing}: no time", file=sys.stderr)
            continue
        weights = Weights(packing, outputs, depth)
        cases += [case(path, weights, rows, end) for name, all_rows in ROWS.items() for rows in all_rows
                  if rows in (options.rows or all_rows) and (path := options.folder / f"{name}.so").exists()
                  and not (name == "products" and packing == "fp8")]
    head = ["weight (N x K)", "rows", "packing", "TB/s", *(f"{i + 1}, us" for i in range(SHOWN))]
    text = "\n".join([f"{machine.versions(sys.executable)}; {machine.gpu()}.", "", *table(head, cases)]) + "\n"
    options.output.write_text(text) if options.output else print(text)


if __name__ == "__main__":
    main()
