#!/usr/bin/env python3
"""A whole model on this GPU: kernelized, and replayed as CUDA graphs, against what people use instead, in one run.

    gpu_model_bench.py BUILD_FOLDER [-o OUT.md] [--json RAW.json] [--seconds 12] [--stop 440]
                       [--tokens N]… [--no-compile] [--model large-causal] [--dtype bfloat16] [--device cuda]
                       [--hub FOLDER] [--precision int8]… [--only torchscript]… [--peer compile,max-autotune]…

A model like Llama (transformers' code, random weights: hidden 4096, intermediate 12288, 32 heads, 8 layers), traced
on the GPU, kernelized with layers and patterns. All but torch.compile and torchao run in C++ (model_runner), without
Python. Two times are taken: "back to back", calls enqueued one after another, between two events of the device;
"waiting", from the call until its result is there, by the host's clock. The contestants take turns, sample by sample,
in random order; those of torch.compile and torchao are processes of their own, and at rest meanwhile. Before each
sample the contestant runs unmeasured for a while: at its power limit a GPU lowers its clocks within a few hundred
milliseconds, and a sample that follows a contestant that needs less power, or a rest, is up to 15 % faster for that
alone. What is not done --stop seconds after the start is left out (torch.compile first), and said. --hub: kernelized
with the Hub's kernels, too, as tests/gpu/build_hub_kernels.py has built them. "linear" are the pack's exact linear
layers, which no preset binds on a GPU; --precision: those with fewer bits, too. --only: these contestants, beside
ours. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON (script/bench-gpu --models).
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import machine
from community_build import manifest
from contestant import Gone, Runner, kernelize, replaced, table

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = [1, 16, 256, 4096]
MANIFEST = 'presets = ["transformers", "patterns"]\n'
# Name: file, and how it is run (model_runner.cpp).
CONTESTANTS = {"torchscript": "plain.pt", "frozen": "frozen:plain.pt", "graphs": "graphs:plain.pt",
               "kernelized": "kernelized.pt", "kernelized,frozen": "frozen:kernelized.pt",
               "kernelized,graphs": "graphs:kernelized.pt", "kernelized,graphs,fused": "fused:kernelized.pt",
               "linear": "linear.pt", "linear,graphs": "graphs:linear.pt"}
OURS = "kernelized,graphs"
FEWER_BITS = 'presets = ["transformers", "linear", "patterns"]\n'
LINEAR = MANIFEST + '[layers.Linear]\nclasses = ["torch.nn.modules.linear.Linear"]\n'
HUB = {"hub": "hub.pt", "hub,graphs": "graphs:hub.pt"}
# Name: peer and mode of torch.compile (peers.py).
PEERS = {"compile": ("torch.compile", "default"), "compile,reduce-overhead": ("torch.compile", "reduce-overhead"),
         "compile,max-autotune": ("torch.compile", "max-autotune"), "torchao-fp8": ("torchao-fp8", "reduce-overhead"),
         "torchao-int8-weights": ("torchao-int8-weights", "reduce-overhead"),
         "torchao-int4-weights": ("torchao-int4-weights", "reduce-overhead")}
USUAL_PEERS = ["compile", "compile,reduce-overhead"]
# How long calls are repeated for a sample, and before it, until clocks have settled.
SAMPLE_SECONDS, SETTLE_SECONDS = 0.1, 0.15
# How many calls there are before the first sample: they profile, compile, capture.
LEAST_ROUNDS, WARM_UP = 7, 5
KINDS = {"time": "back to back", "wait": "waiting"}


class Contestant:
    def __init__(self, name: str, runner: Runner):
        self.name, self.runner = name, runner
        self.result = {"time": [], "wait": []}

    def start(self, tokens: int) -> None:
        begin = time.monotonic()
        self.runner.ask("wait", self.name, tokens)
        self.result["first"] = time.monotonic() - begin
        self.result["differs"] = self.runner.ask("differ", self.name, tokens)
        self.runner.ask("wait", self.name, tokens, WARM_UP)
        self.seconds = self.runner.ask("wait", self.name, tokens, 3)

    def calls(self, seconds: float) -> int:
        return max(1, round(seconds / self.seconds))

    def sample(self, tokens: int) -> None:
        self.runner.ask("time", self.name, tokens, self.calls(SETTLE_SECONDS))
        for kind in KINDS:
            self.result[kind].append(self.runner.ask(kind, self.name, tokens, self.calls(SAMPLE_SECONDS)))


def measure(contestants: list[Contestant], tokens: int, seconds: float) -> None:
    start, turn, order = time.monotonic(), 0, random.Random(tokens)
    while turn < LEAST_ROUNDS or time.monotonic() - start < seconds:
        for contestant in order.sample(contestants, len(contestants)):
            contestant.sample(tokens)
        turn += 1


def measure_size(options, runners: dict[str, Runner], tokens: int, left_out: list[str], first: dict[str, float]) -> dict:
    contestants = []
    for name, runner in runners.items():
        if name in PEERS and time.monotonic() + 1.3 * first.get(name, 60) + 2 * options.seconds > options.end:
            left_out.append(f"{name} at {tokens} tokens: no time")
            continue
        one = Contestant(name, runner)
        try:
            one.start(tokens)
        except Gone as error:
            if name not in PEERS:
                raise SystemExit(f"{name} ended: {error}") from error
            left_out.append(f"{name} at {tokens} tokens: {error}")
            continue
        first[name] = one.result["first"]
        contestants.append(one)
    measure(contestants, tokens, options.seconds)
    row = {"tokens": tokens, "contestants": {one.name: one.result for one in contestants}}
    print(tokens, {one.name: f"{1000 * statistics.median(one.result['time']):.3f} ms" for one in contestants},
          file=sys.stderr, flush=True)
    return row


def cell(samples: list[float]) -> str:
    low, median, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else samples * 3
    return f"{1000 * median:.3f} ({1000 * low:.3f}–{1000 * high:.3f})"


def report(result: dict) -> str:
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row["contestants"]))
    replacements = {"Replaced": result["replaced"], **({"With the Hub's": result["hub"]} if "hub" in result else {})}
    replacements |= {"With linear layers": result["linear"]} if "linear" in result else {}
    replacements |= {f"With {precision}": result[precision] for precision in result["precisions"]}
    lines = [f"# A whole model on a GPU: {result['model']}, {result['dtype']}", "",
             f"{result['versions']}; {result['before']} before, {result['after']} after; {result['processor']}, "
             f"{result['load']}. Batch 1, random weights, no cache of keys and values, traced at 8 tokens.", "",
             *(f"{title}: " + ", ".join(f"{count} × {layer}" for layer, count in counts.items()) + "."
               for title, counts in replacements.items()), ""]
    for kind, title in KINDS.items():
        lines += [f"Milliseconds a call, {title}: median (quartiles)", ""]
        lines += table(["tokens", *names], [
            [str(row["tokens"]), *(cell(row["contestants"][name][kind]) if name in row["contestants"] else ""
                                   for name in names)] for row in rows]) + [""]
        lines += [f"The others' median by that of {OURS}, {title}:", ""]
        lines += table(["tokens", *(name for name in names if name != OURS)], [
            [str(row["tokens"]), *(ratio(row, name, kind) for name in names if name != OURS)] for row in rows]) + [""]
    lines += ["Relative (Euclidean) difference to the traced model's result, of torch.compile to the model's own:", ""]
    lines += table(["tokens", *names], [
        [str(row["tokens"]), *(f"{row['contestants'][name]['differs']:.1e}" if name in row["contestants"] else ""
                               for name in names)] for row in rows]) + [""]
    lines += ["Seconds of the first call of a size: " + "; ".join(
        f"{name} " + ", ".join(f"{row['contestants'][name]['first']:.1f}" for row in rows if name in row["contestants"])
        for name in names) + ".", ""]
    lines += ["Replays: " + ", ".join(f"{name} {count}" for name, count in result["replays"].items()) + ".", ""]
    lines += [f"Left out: {one}" for one in result["left_out"]]
    return "\n".join(lines).rstrip() + "\n"


def ratio(row: dict, name: str, kind: str) -> str:
    contestants = row["contestants"]
    if name not in contestants:
        return ""
    return f"{statistics.median(contestants[name][kind]) / statistics.median(contestants[OURS][kind]):.2f}"


def run(options: argparse.Namespace, folder: pathlib.Path, stack: contextlib.ExitStack) -> dict:
    result = {"model": options.model, "dtype": options.dtype, "versions": machine.versions(sys.executable),
              "processor": machine.processor(), "load": machine.load(), "before": machine.gpu(), "left_out": [], "rows": [], "replays": {},
              "precisions": options.precision}
    models, started = [sys.executable, HERE / "models.py"], time.monotonic()
    subprocess.run([*models, "make", options.model, options.dtype, folder / "plain.pt", options.device], check=True)
    result["replaced"] = replaced(kernelize(options.build, folder, "kernelized", MANIFEST, "--device", options.device))
    contestants = {name: how for name, how in CONTESTANTS.items() if not options.only or name in (OURS, *options.only)}
    if any("linear" in name for name in contestants):
        result["linear"] = replaced(kernelize(options.build, folder, "linear", LINEAR, "--device", options.device))
    contestants |= HUB if options.hub else {}
    if options.hub:
        os.environ["TWINKLE_KERNELS"] = str(options.hub)
        result["hub"] = replaced(kernelize(options.build, folder, "hub", manifest(options.hub), "--device", options.device,
                                           "--inputs", "int64[1,8]:1..999"))
    for precision in options.precision:
        contestants |= {precision: f"{precision}.pt", f"{precision},graphs": f"graphs:{precision}.pt"}
        result[precision] = replaced(kernelize(options.build, folder, precision, FEWER_BITS, "--device", options.device,
                                               "--inputs", "int64[1,8]:1..999", "--precision", precision,
                                               "--max-error", "1"))
    specifications = [f"{name}={how.rpartition(':')[0]}{':' if ':' in how else ''}{folder}/{how.rpartition(':')[2]}"
                      for name, how in contestants.items()]
    command = [options.build / "bench/model_runner", "--device", options.device, *specifications]
    here = Runner(command, folder, stack)
    runners = dict.fromkeys(contestants, here)
    for name in (options.peer or USUAL_PEERS) if options.compile else []:
        peer, mode = PEERS[name]
        runners[name] = Runner([sys.executable, HERE / "peers.py", peer, options.model, options.dtype, folder,
                                "--device", options.device, "--mode", mode], folder, stack)
    first: dict[str, float] = {}
    for tokens in options.tokens or TOKENS:
        if result["rows"] and time.monotonic() + 2 * options.seconds > options.end:
            result["left_out"].append(f"{tokens} tokens: no time")
            continue
        result["rows"].append(measure_size(options, runners, tokens, result["left_out"], first))
        if options.json:  # after every size: what a limit cuts off is not lost
            options.json.write_text(json.dumps(result, indent=1) + "\n")
    result["replays"] = {name: int(here.ask("replays", name, 1)) for name in contestants if "graphs" in name}
    result["after"], result["seconds"] = machine.gpu(), time.monotonic() - started
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=12, help="for each size")
    parser.add_argument("--stop", type=float, default=440, help="seconds after which nothing new is begun")
    parser.add_argument("--model", default="large-causal", help="of models.py")
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", action="append", type=int)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--peer", action="append", choices=PEERS, help="instead of the two modes of torch.compile")
    parser.add_argument("--folder", help="for the models: 8 GB")
    parser.add_argument("--hub", type=lambda text: pathlib.Path(text).resolve(), help="kernels of the Hub")
    parser.add_argument("--only", action="append", help="a contestant, of those that are no peers")
    parser.add_argument("--precision", action="append", default=[], help="fewer bits of linear layers")
    options = parser.parse_args()
    options.build, options.end = options.build.resolve(), time.monotonic() + options.stop
    with tempfile.TemporaryDirectory(prefix="gpu-model-", dir=options.folder) as name, contextlib.ExitStack() as stack:
        result = run(options, pathlib.Path(name), stack)
    machine.publish(options, report(result), result)


if __name__ == "__main__":
    main()
