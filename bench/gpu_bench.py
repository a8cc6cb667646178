#!/usr/bin/env python3
"""Measures the bundled pack on a GPU, beside a copy, an empty kernel and what people use instead.

    gpu_bench.py BUILD [-o OUT.md] [--json RAW.json] [--community LIBRARY] [--seconds 500]
                 [--op NAME] [--dtype bfloat16] [--tokens 4096] [--width 4096] [--contestants pack,frozen]
    gpu_bench.py --from RAW.json [-o OUT.md]

BUILD: the pack's CUDA build (…/twinkle-pack/build/torch-stable-abi210-cu…). Times are those of the device: many calls
in one CUDA graph, the graph between two events, in turns with the others'. Calls take different inputs in turn, together
three times the size of the last cache where the case is large enough to matter; at 1 and 16 tokens they stay in it, as
what a model's previous layer has just written does. Whatever is not done after --seconds is left out, and said.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import machine
import torch
import torch.nn.functional as F
from torch import nn

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
TOKENS = [1, 16, 256, 4096, 65536]
WIDTHS = [4096, 11008, 8192]
LEAST_ROUNDS, CALLS = 7, 24


# What models run instead: torch.nn's or transformers' code.
class Silu(nn.Module):
    def forward(self, x: torch.Tensor):
        return F.silu(x)


class Gelu(nn.Module):
    def forward(self, x: torch.Tensor):
        return F.gelu(x)


class GeluTanh(nn.Module):
    def forward(self, x: torch.Tensor):
        return F.gelu(x, approximate="tanh")


class GeluNew(nn.Module):
    def forward(self, x: torch.Tensor):
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


class GeluQuick(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * torch.sigmoid(1.702 * x)


class Relu(nn.Module):
    def forward(self, x: torch.Tensor):
        return F.relu(x)


class SiluMul(nn.Module):
    def forward(self, gate: torch.Tensor, up: torch.Tensor):
        return F.silu(gate) * up


class GeluMul(nn.Module):
    def forward(self, gate: torch.Tensor, up: torch.Tensor):
        return F.gelu(gate) * up


class SiluAndMul(nn.Module):
    def forward(self, x: torch.Tensor):
        gate, up = x.chunk(2, dim=-1)
        return up * F.silu(gate)


class GeluAndMul(nn.Module):
    def forward(self, x: torch.Tensor):
        gate, up = x.chunk(2, dim=-1)
        return up * F.gelu(gate)


class RMSNorm(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype)


class AddRMSNorm(nn.Module):
    def forward(self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor):
        total = x + residual
        wide = total.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype), total


class LayerNorm(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor):
        return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


class AddLayerNorm(nn.Module):
    def forward(self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor):
        total = x + residual
        return F.layer_norm(total, (x.shape[-1],), weight, bias, 1e-5), total


class Rotary(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor):
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * cos + turned * sin


class Operation:
    """inputs: x [tokens, width], X [tokens, 2 * width], w [width], q and c for rotary. `moved`: tensors of [tokens, width]
    that must be read or written."""

    def __init__(self, name, module, inputs, moved, numbers=(), community=None):
        self.name, self.module, self.inputs, self.moved, self.numbers = name, module, inputs, moved, list(numbers)
        self.community = community

    def make(self, tokens, width, dtype):
        def of(shape):
            return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)

        shapes = {"x": (tokens, width), "X": (tokens, 2 * width), "w": (width,), "c": (1, 1, tokens, 128)}
        return [of((1, tokens, width // 128, 128)).transpose(1, 2) if kind == "q" else of(shapes[kind])
                for kind in self.inputs]


OPERATIONS = [
    Operation("silu", Silu, "x", 2, community=("activation", "silu")),
    Operation("gelu", Gelu, "x", 2, community=("activation", "gelu")),
    Operation("gelu_tanh", GeluTanh, "x", 2, community=("activation", "gelu_tanh")),
    Operation("gelu_new", GeluNew, "x", 2, community=("activation", "gelu_new")),
    Operation("gelu_quick", GeluQuick, "x", 2, community=("activation", "gelu_quick")),
    Operation("relu", Relu, "x", 2),
    Operation("silu_mul", SiluMul, "xx", 3),
    Operation("gelu_mul", GeluMul, "xx", 3),
    Operation("silu_and_mul", SiluAndMul, "X", 3, community=("activation", "silu_and_mul")),
    Operation("gelu_and_mul", GeluAndMul, "X", 3, community=("activation", "gelu_and_mul")),
    Operation("rms_norm", RMSNorm, "xw", 2, [1e-6, 0.0, False]),
    Operation("add_rms_norm", AddRMSNorm, "xxw", 4, [1e-6, 0.0, False]),
    Operation("layer_norm", LayerNorm, "xww", 2, [1e-5]),
    Operation("add_layer_norm", AddLayerNorm, "xxww", 4, [1e-5]),
    Operation("apply_rotary", Rotary, "qcc", 2, [False, False]),
]


def device_time(call, sets, rounds):
    """A function that gives the seconds of one call on the device, and what keeps its memory alive. All calls are in
    one graph; where capturing is not possible, they are launched one after another."""
    for i in range(3):
        call(sets[i % len(sets)])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for i in range(CALLS):
                call(sets[i % len(sets)])
        replay = graph.replay
    except Exception:
        torch.cuda.synchronize()

        def replay():
            for i in range(CALLS):
                call(sets[i % len(sets)])

    replay()
    torch.cuda.synchronize()

    def once():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / CALLS

    return once


def contestants(operation, pack, dtype, sets, wanted, community):
    """name -> a function that is called with one set of inputs"""
    op = getattr(pack, operation.name)
    result = {"pack": lambda inputs: op(*inputs, *operation.numbers)}
    source, target = torch.empty(0), torch.empty(0)
    moved = sets[0][0].nbytes // (2 if operation.inputs[0] == "X" else 1) * operation.moved
    source = torch.randint(0, 100, (moved // 2,), dtype=torch.uint8, device="cuda")
    targets = [torch.empty_like(source) for _ in range(2)]
    sources = [source, source.clone()]
    turn = [0]

    def copy(_):
        turn[0] += 1
        targets[turn[0] % 2].copy_(sources[turn[0] % 2])

    result["copy"] = copy
    result["empty"] = lambda _: torch.cuda._sleep(0)  # one thread that asks for the time
    module = operation.module().cuda().eval()
    scripted = torch.jit.script(module)
    result["torchscript"] = lambda inputs: scripted(*inputs)
    if "frozen" in wanted:
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(module)))
        result["frozen"] = lambda inputs: frozen(*inputs)
    if "compile" in wanted:
        torch._dynamo.reset()
        compiled = torch.compile(module, dynamic=False)
        result["compile"] = lambda inputs: compiled(*inputs)
    if community and operation.community and "community" in wanted:
        namespace, name = operation.community
        theirs = getattr(getattr(torch.ops, "community_" + namespace), name)
        half = operation.inputs == "X"

        def run(inputs):
            x = inputs[0]
            out = torch.empty((*x.shape[:-1], x.shape[-1] // 2) if half else x.shape, dtype=x.dtype, device=x.device)
            theirs(out, x)
            return out

        result["community"] = run
    return {name: run for name, run in result.items() if name in wanted}, moved


def check(name, run, original, inputs, dtype):
    """Measuring what is wrong would be of no use."""
    ours, theirs = run(inputs), original(*inputs)
    for a, b in zip(ours if isinstance(ours, (tuple, list)) else [ours],
                    theirs if isinstance(theirs, (tuple, list)) else [theirs], strict=True):
        error = (a.double() - b.double()).abs().max() / b.double().abs().max()
        limit = 1e-5 if dtype == torch.float32 else 4e-3 if dtype == torch.float16 else 3e-2
        if not error <= limit:
            raise RuntimeError(f"{name} is off by {error.item()}")


def measure(operation, pack, tokens, width, dtype, options, wanted):
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    one = operation.make(tokens, width, dtype)
    size = sum(x.nbytes for x in one)
    count = 8 if tokens < 256 else max(2, min(CALLS, 3 * cache // size + 1))
    sets = [one] + [operation.make(tokens, width, dtype) for _ in range(count - 1)]
    runs, moved = contestants(operation, pack, dtype, sets, wanted, options.community)
    timers, failed = {}, {}
    with torch.no_grad():
        for name, run in runs.items():
            try:
                if name not in ("copy", "empty"):
                    check(name, run, operation.module(), sets[0], dtype)
                timers[name] = device_time(run, sets, LEAST_ROUNDS)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
                torch.cuda.synchronize()
        samples = {name: [] for name in timers}
        begin = time.monotonic()
        while min(map(len, samples.values())) < LEAST_ROUNDS or (
                time.monotonic() - begin < 0.08 and len(samples["pack"]) < 40):
            for name in random.sample(list(timers), len(timers)):
                samples[name].append(timers[name]())
    times = {name: [min(some), *statistics.quantiles(some, n=4), max(some)] for name, some in samples.items()}
    return {"op": operation.name, "tokens": tokens, "width": width, "dtype": str(dtype).removeprefix("torch."),
            "bytes": moved, "seconds": times, "failed": failed}


def table(rows):
    names = ["torchscript", "frozen", "compile", "community"]
    lines = ["| operator | dtype | tokens x width | pack µs | quartiles | over an empty kernel µs | TB/s | of the copy | "
             + " | ".join(f"{name} / pack" for name in names) + " |",
             "| --- | --- | --- | " + "--- | " * (5 + len(names))]
    for row in rows:
        times = row["seconds"]
        least, low, median, high, _ = times["pack"]
        cells = [row["op"], row["dtype"], f"{row['tokens']} x {row['width']}", f"{median * 1e6:.2f}",
                 f"{low * 1e6:.2f}–{high * 1e6:.2f}",
                 f"{(median - times['empty'][2]) * 1e6:+.2f}" if "empty" in times else "",
                 f"{row['bytes'] / median / 1e12:.2f}",
                 f"{times['copy'][2] / median:.0%}" if "copy" in times else ""]
        cells += [f"{times[name][2] / median:.2f}" if name in times else "" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows):
    def share(row):
        return row["seconds"]["copy"][2] / row["seconds"]["pack"][2]

    large = [row for row in rows if row["tokens"] >= 4096 and "copy" in row["seconds"]]
    one = [row for row in rows if row["tokens"] == 1 and "empty" in row["seconds"]]
    lines = []
    if large:
        low = sorted(large, key=share)
        lines.append(f"- From 4096 tokens on: {sum(share(r) >= 0.9 for r in large)} of {len(large)} cases reach 90 % of the "
                     f"copy's bandwidth; least {share(low[0]):.0%} ({low[0]['op']} {low[0]['dtype']} "
                     f"{low[0]['tokens']} x {low[0]['width']})")
    if one:
        def over(row):
            return row["seconds"]["pack"][2] - row["seconds"]["empty"][2]

        worst = max(one, key=over)
        lines.append(f"- At 1 token: {sum(over(r) <= 1e-6 for r in one)} of {len(one)} within 1 µs of an empty kernel; most "
                     f"{over(worst) * 1e6:.2f} µs ({worst['op']} {worst['dtype']} {worst['width']})")
    for name in ["torchscript", "frozen", "compile", "community"]:
        both = [row for row in rows if name in row["seconds"]]
        if both:
            slower = [row for row in both if row["seconds"]["pack"][1] > row["seconds"][name][3]]
            lines.append(f"- {name}: slower than the pack in {len(both) - len(slower)} of {len(both)} cases"
                         + (", faster beyond the quartiles in " + ", ".join(
                             f"{r['op']} {r['dtype']} {r['tokens']} x {r['width']}" for r in slower[:12]) if slower else ""))
    failed = {f"{row['op']} {name}: {why}" for row in rows for name, why in row["failed"].items()}
    lines += [f"- not measured: {one}" for one in sorted(failed)]
    return "\n".join(lines)


def cases(options):
    for tokens in TOKENS:  # all operators of a size, so that a run cut short has all of them
        for width in WIDTHS:
            for dtype in DTYPES:
                for operation in OPERATIONS:
                    if operation.inputs[0] == "q" and width != 4096:
                        continue
                    if ((not options.op or options.op == operation.name) and (not options.dtype or options.dtype == dtype)
                            and (not options.tokens or options.tokens == tokens)
                            and (not options.width or options.width == width)):
                        yield operation, tokens, width, DTYPES[dtype]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--from", dest="raw", type=pathlib.Path, help="make the tables of figures that were kept")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--community", type=pathlib.Path, help="built by community_build.py --cuda")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--op")
    parser.add_argument("--dtype")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--contestants", default="pack,copy,empty,torchscript,frozen,compile,community")
    options = parser.parse_args()
    if options.raw:
        kept = json.loads(options.raw.read_text())
        return publish(options, f"torch {kept['torch']}; {kept['before']}", kept["cases"])
    if options.build is None:
        parser.error("BUILD, or --from, must be given")
    library = next(options.build.glob("*.so"))
    torch.ops.load_library(library)
    if options.community:
        torch.ops.load_library(options.community)
    pack = getattr(torch.ops, library.stem[1:])
    stop, rows, left = time.monotonic() + options.seconds, [], 0
    before = machine.gpu()
    for operation, tokens, width, dtype in cases(options):
        if time.monotonic() > stop:
            left += 1
            continue
        torch.cuda.empty_cache()
        row = measure(operation, pack, tokens, width, dtype, options, options.contestants.split(","))
        rows.append(row)
        print(row["op"], row["dtype"], tokens, width,
              {name: round(some[2] * 1e6, 2) for name, some in row["seconds"].items()}, row["failed"] or "",
              file=sys.stderr, flush=True)
        if options.json:  # after every case: what a limit cuts off is not lost
            options.json.write_text(json.dumps({"before": before, "torch": torch.__version__, "cases": rows}))
    publish(options, f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}; {library.stem}; {before} before, "
                     f"{machine.gpu()} after" + (f"; {left} cases left out: no time" if left else ""), rows)


def publish(options, head, rows):
    machine.publish(options, head + "\n\n" + summary(rows) + "\n\n" + table(rows) + "\n")


main()
