#!/usr/bin/env python3
"""Linear layers alone, on one thread of this CPU: LibTorch's, and each way that the pack has, in turns.

    build/venv/bin/python bench/linear_bench.py [BUILD_FOLDER] [--dtype bfloat16]… [--rows N]… [-o FILE.md]

Weights are used in turn, so many that no cache holds them. "int8" and "int4" are the pack's with fewer bits (of a float32
x); TWINKLE_PACK_ISA chooses the instructions. Medians, in processor time. It prints microseconds a call, and how many times
as long as the pack's choice LibTorch takes: where that is below 1, a border of kernels/twinkle-pack/src/rules.h is wrong.
"""

import argparse
import os
import pathlib
import random
import statistics
import time

import machine
import torch
from contestant import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = [(1024, 1024), (2816, 1024), (1024, 2816), (3072, 768), (4096, 4096)]
ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
WAYS = {"pack": 0, "few": 1, "many": 2}
MOST_FEW_ROWS = 64
BITS = {"int8": 1, "int4": 2}
WEIGHT_BYTES, LEAST_WEIGHTS, MOST_WEIGHTS = 3e8, 2, 40
ROUNDS, SAMPLE_SECONDS = 7, 0.03


def operators(build: pathlib.Path):
    library = next((build / "lib/twinkle/kernels/twinkle-pack/build").glob("*/_twinkle_pack_*.so"))
    torch.ops.load_library(library)
    return getattr(torch.ops, library.stem[1:])


def in_turn(values: list):
    """A function that gives one after the other."""
    state = [0]

    def following():
        state[0] = (state[0] + 1) % len(values)
        return values[state[0]]
    return following


def weights(make, size: float) -> list:
    count = int(WEIGHT_BYTES / size)
    return [make() for _ in range(min(max(count, LEAST_WEIGHTS), MOST_WEIGHTS))]


def seconds(call, count: int, clock) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def medians(calls: dict, rounds: int = ROUNDS, clock=time.process_time) -> dict[str, float]:
    """Seconds of each call, by name, in turns of another order each."""
    counts = {name: max(1, int(SAMPLE_SECONDS / max(seconds(call, 2, clock), 1e-6))) for name, call in calls.items()}
    samples = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            samples[name].append(seconds(calls[name], counts[name], clock))
    return {name: statistics.median(one) for name, one in samples.items()}


def exact_rows(ops, dtype: torch.dtype, columns: int, depth: int, rows: list[int]) -> list[list[str]]:
    weight = in_turn(weights(lambda: torch.randn(columns, depth, dtype=dtype), columns * depth * dtype.itemsize))
    lines = []
    for count in rows:
        x = torch.randn(count, depth, dtype=dtype)
        calls = {"LibTorch": lambda x=x: torch.nn.functional.linear(x, weight())}
        for name, way in WAYS.items():
            if name != "few" or count <= MOST_FEW_ROWS:
                calls[name] = lambda x=x, way=way: ops.linear(x, weight(), None, way=way)
        found = medians(calls)
        lines.append([f"{columns} x {depth}", str(count), *(f"{1e6 * found[name]:.0f}" if name in found else "–" for name in
                      ("LibTorch", *WAYS)), f"{found['LibTorch'] / found['pack']:.2f}"])
    return lines


def bits_rows(ops, columns: int, depth: int, rows: list[int]) -> list[list[str]]:
    scales = torch.rand(columns, depth // 64) / 100
    values = {name: in_turn(weights(lambda of=of: torch.randint(0, 255, (columns, depth // of), dtype=torch.uint8),
                                    columns * depth / of)) for name, of in BITS.items()}
    lines = []
    for count in rows:
        x = torch.randn(count, depth)
        found = medians({name: lambda x=x, name=name: getattr(ops, "linear_" + name)(x, values[name](), scales, None)
                         for name in BITS})
        lines.append([f"{columns} x {depth}", str(count), *(f"{1e6 * found[name]:.0f}" for name in BITS)])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=ROOT / "build/release")
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16", "float16", "bits"])
    parser.add_argument("--rows", action="append", type=int)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.set_defaults(json=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ops, rows = operators(options.build), options.rows or ROWS
    lines = ["# Linear layers on a CPU, one thread", "", f"{machine.processor()}, {machine.load()}; LibTorch "
             f"{torch.__version__}; "
             f"instructions: {os.environ.get('TWINKLE_PACK_ISA', 'the widest')}. Microseconds a call.", ""]
    with torch.inference_mode():
        for dtype in options.dtype or ["float32", "bfloat16", "bits"]:
            body = []
            for columns, depth in SIZES:
                body += bits_rows(ops, columns, depth, rows) if dtype == "bits" else exact_rows(
                    ops, getattr(torch, dtype), columns, depth, rows)
            head = list(BITS) if dtype == "bits" else ["LibTorch", *WAYS, "LibTorch / pack"]
            lines += [f"## {dtype}", "", *table(["weight", "rows", *head], body), ""]
    machine.publish(options, "\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
