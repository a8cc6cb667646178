#!/usr/bin/env python3
"""Measures the bundled pack's linear layers for few rows on a GPU, beside cuBLAS (LibTorch's linear) and copies.

    gpu_linear_bench.py LIBRARY [-o OUT.md] [--json RAW.json] [--seconds 400] [--dtype bfloat16] [--rows N]

LIBRARY: of bench/linear_library.cu (script/bench-gpu --linear builds it). Times are those of the device: calls in one
CUDA graph between two events, contestants in turns, medians. Weights are rotated, so that the last cache holds none.
Every result is compared with one in double.
"""

import argparse
import ctypes
import json
import pathlib
import random
import statistics
import time

import torch

DTYPES = {"bfloat16": (torch.bfloat16, 1), "float16": (torch.float16, 2), "float32": (torch.float32, 0)}
SHAPES = [(4096, 4096), (12288, 4096), (4096, 12288), (18944, 3584), (3584, 18944), (1024, 1024), (2048, 8192),
          (14336, 4096), (128256, 4096)]
ROWS = [1, 2, 4, 8, 16, 32, 64]
ROUNDS, LEAST_CALLS = 9, 24


def graphed(call, calls):
    """A function that gives the seconds of one call, all in one graph."""
    for i in range(2):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            call(i)
    graph.replay()
    torch.cuda.synchronize()

    def once():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls

    return once


def medians(timers):
    samples = {name: [] for name in timers}
    for _ in range(ROUNDS):
        for name in random.sample(list(timers), len(timers)):
            samples[name].append(timers[name]())
    return {name: statistics.median(some) for name, some in samples.items()}


def relative_error(result, expect):
    return ((result.double() - expect).norm() / expect.norm()).item()


class Weights:
    """Enough of one shape that the last cache holds none when it comes again."""

    def __init__(self, dtype, outputs, inner):
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        size = outputs * inner * dtype.itemsize
        count = max(2, 3 * cache // size + 1)
        self.calls = count * -(-LEAST_CALLS // count)
        self.all = [torch.empty(outputs, inner, dtype=dtype, device="cuda").normal_() for _ in range(count)]
        self.bias = torch.randn(outputs, device="cuda").to(dtype)
        self.source = torch.randint(0, 100, (count, size // 2), dtype=torch.uint8, device="cuda")
        self.target = torch.empty_like(self.source)
        self.copy = graphed(lambda i: self.target[i % count].copy_(self.source[i % count]), self.calls)

    def of(self, i):
        return self.all[i % len(self.all)]


def measure(library, name, weights, rows):
    dtype, number = DTYPES[name]
    outputs, inner = weights.of(0).shape
    x = [torch.randn(rows, inner, device="cuda").to(dtype) for _ in range(2)]
    y = torch.full((rows, outputs), float("nan"), dtype=dtype, device="cuda")

    def ours(i):
        return library.linear(number, x[i % 2].data_ptr(), weights.of(i).data_ptr(), weights.bias.data_ptr(), y.data_ptr(),
                              rows, outputs, inner, torch.cuda.current_stream().cuda_stream, 0)

    def cublas(i):
        return torch.nn.functional.linear(x[i % 2], weights.of(i), weights.bias)

    row = {"dtype": name, "outputs": outputs, "inner": inner, "rows": rows}
    expect = x[0].double() @ weights.of(0).double().T + weights.bias.double()
    served = ours(0)
    torch.cuda.synchronize()
    row["cublas_error"] = relative_error(cublas(0), expect)
    timers = {"cublas": graphed(cublas, weights.calls), "copy": weights.copy}
    if served < 0:
        raise RuntimeError("a kernel cannot be launched")
    if served:
        row["error"] = relative_error(y, expect)
        if not row["error"] <= max(2 * row["cublas_error"], 1e-6):
            raise RuntimeError(f"{row} is off by {row['error']}")
        timers["ours"] = graphed(ours, weights.calls)
    row["bytes"] = (outputs * inner + rows * inner + rows * outputs + outputs) * dtype.itemsize
    row["copied"] = 2 * weights.source[0].nbytes
    row["seconds"] = medians(timers)
    return row


def table(kept):
    lines = ["| dtype | weight (N x K) | rows | ours µs | TB/s | of the fastest copy | of a copy as large | cuBLAS µs "
             "| cuBLAS / ours | error | cuBLAS' |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in kept["cases"]:
        times = row["seconds"]
        best = times.get("ours", times["cublas"])
        rate = row["bytes"] / best
        lines.append(f"| {row['dtype']} | {row['outputs']} x {row['inner']} | {row['rows']} | "
                     + (f"{best * 1e6:.2f}" if "ours" in times else "cuBLAS")
                     + f" | {rate / 1e12:.2f} | {rate / kept['copy']:.0%} | {times['copy'] / best:.0%} "
                     f"| {times['cublas'] * 1e6:.2f} | {times['cublas'] / best:.2f} | "
                     + (f"{row['error']:.1e}" if "error" in row else "") + f" | {row['cublas_error']:.1e} |")
    return "\n".join(lines)


def summary(kept):
    served = [row for row in kept["cases"] if "ours" in row["seconds"]]
    ratios = [row["seconds"]["cublas"] / row["seconds"]["ours"] for row in served]
    lines = [f"- The fastest copy: {kept['copy'] / 1e12:.2f} TB/s, read and written.",
             f"- Computed by the pack: {len(served)} of {len(kept['cases'])}; slower than cuBLAS by more than 2 %: "
             f"{sum(ratio < 0.98 for ratio in ratios)}, least {min(ratios):.2f}."]
    large = [row for row in served if row["bytes"] >= 64 << 20]
    for name in DTYPES:
        for rows in ROWS:
            some = [row["bytes"] / row["seconds"]["ours"] / kept["copy"] for row in large
                    if row["dtype"] == name and row["rows"] == rows]
            if some:
                lines.append(f"- {name}, {rows} rows, weights of 64 MiB and more: {min(some):.0%} to {max(some):.0%} of that, "
                             f"median {statistics.median(some):.0%}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--dtype", choices=list(DTYPES))
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    library = ctypes.CDLL(str(options.library.resolve()))
    address, size = ctypes.c_void_p, ctypes.c_int64
    library.linear.argtypes = [ctypes.c_int, address, address, address, address, size, size, size, address, ctypes.c_int]
    begin = time.monotonic()
    kept = {"torch": torch.__version__, "cases": []}
    left_out = 0
    for name in [options.dtype] if options.dtype else DTYPES:
        for outputs, inner in SHAPES:
            if time.monotonic() - begin > options.seconds:
                left_out += 1
                continue
            weights = Weights(DTYPES[name][0], outputs, inner)
            for rows in [options.rows] if options.rows else ROWS:
                kept["cases"].append(measure(library, name, weights, rows))
            del weights
            torch.cuda.empty_cache()
    # The best of all copies: bytes read and written, a second.
    kept["copy"] = max(row["copied"] / row["seconds"]["copy"] for row in kept["cases"])
    text = f"{summary(kept)}\n\n{table(kept)}\n"
    if left_out:
        text += f"\nLeft out for want of time: {left_out} weights.\n"
    print(f"torch {kept['torch']}, {torch.cuda.get_device_name(0)}\n\n{text}")
    if options.output:
        options.output.write_text(text)
    if options.json:
        options.json.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
