#!/usr/bin/env python3
"""A server that only calls torch::jit::load, on this GPU: with models marked by `kernelize --graphs`, and without.

    gpu_server_bench.py BUILD_FOLDER [-o OUT.md] [--json RAW.json] [--seconds 5] [--stop 240] [--device cuda]
                        [--model NAME]… [--tokens N]… [--folder FOLDER]

plain_server is no program of twinkle: it has the preload library in its process, as Triton would, but for the first
contestant, the original model in LibTorch alone. Every contestant is a process of its own; they take turns, sample by
sample, in random order, after a while unmeasured (see gpu_model_bench.py). Two times are taken: "waiting", from the
call until its result is there, by the host's clock; "back to back", by the device's. Then what replays must not break:
results are compared with those of the same file without replays (TWINKLE_GRAPHS=off), for new tokens in every size,
in training, and after a weight was written into; and memory, over sixty lengths. BUILD_FOLDER is configured with
-DTWINKLE_BENCH=ON (script/bench-gpu --server). Exits with 1 where a result differs, or nothing was replayed.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import machine
from contestant import kernelize, replaced, table
from gpu_model_bench import HERE, MANIFEST, SAMPLE_SECONDS, SETTLE_SECONDS, cell

TOKENS = [1, 16, 256, 4096]
LENGTHS = range(1, 61)
LEAST_ROUNDS = 7
# Name: how it is kernelized (none: not at all), and what the server's environment has.
FILES = {"original": None, "original --graphs": ["--only", "nothing", "--graphs"],
         "kernelized": [], "kernelized --graphs": ["--graphs"]}
PAIRS = {"original --graphs": "original", "kernelized --graphs": "kernelized"}
KINDS = {"wait": "waiting for each result", "time": "back to back"}
# Euclidean, relative to the result; bfloat16's rounding is 4e-3.
ALLOWED = 1e-3


class Server:
    """A process with one model, and what it says on stderr."""

    def __init__(self, name: str, command: list, environment: dict[str, str], folder: pathlib.Path,
                 stack: contextlib.ExitStack):
        self.name, self.log = name, folder / (re.sub(r"\W+", "_", name) + f".{random.getrandbits(32)}.log")
        self.process = stack.enter_context(subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=stack.enter_context(self.log.open("w")), env=os.environ | environment))

    def ask(self, what: str, tokens: int = 0, calls: int = 1, name: str = "-") -> float:
        self.process.stdin.write(f"{what} {name} {tokens} {calls}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended:\n{self.log.read_text()}")
        return float(answer)

    def result(self, tokens: int, folder: pathlib.Path) -> torch.Tensor:
        file = folder / "result.bin"
        self.ask("save", tokens, name=str(file))
        return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float32).double()

    def close(self) -> list[str]:
        """What it said of graphs, until it ended."""
        self.process.stdin.close()
        self.process.wait(timeout=60)
        lines = self.log.read_text().splitlines()
        others = [line for line in lines if "twinkle: graphs: " not in line]
        if others:
            print(f"{self.name}:", *others, sep="\n  ", file=sys.stderr)
        return [line.split("twinkle: graphs: ", 1)[1] for line in lines if "twinkle: graphs: " in line]


def difference(have: torch.Tensor, want: torch.Tensor) -> float:
    return float((have - want).norm() / want.norm()) if len(have) == len(want) else math.inf


class Bench:
    def __init__(self, options, model: str, folder: pathlib.Path, stack: contextlib.ExitStack):
        self.options, self.folder, self.stack = options, folder, stack
        self.result = {"model": model, "rows": [], "problems": [], "left_out": [], "said": {}, "checks": [], "memory": {}}

    def make(self, model: str) -> None:
        made = [sys.executable, HERE / "models.py", "make", model, self.options.dtype, self.folder / "plain.pt", self.options.device]
        subprocess.run(made, check=True)
        for name, how in FILES.items():
            if how is not None:
                report = kernelize(self.options.build, self.folder, self.file(name).stem, MANIFEST, "--device", self.options.device, *how)
                self.result.setdefault("replaced", {})[name] = replaced(report)
        print(f"{model}: made", file=sys.stderr, flush=True)

    def file(self, name: str) -> pathlib.Path:
        return self.folder / ("plain.pt" if name == "original" else name.replace(" --", "_") + ".pt")

    def serve(self, name: str, **environment: str) -> Server:
        preload = self.options.build / "lib/libtwinkle_preload.so"
        own = {} if FILES[name] is None else {"LD_PRELOAD": str(preload), "TWINKLE_GRAPHS_STATISTICS": "1"}
        command = [self.options.build / "bench/plain_server", self.file(name), self.options.device]
        return Server(name, command, own | environment, self.folder, self.stack)

    def measure(self, servers: list[Server], tokens: int) -> None:
        row = {"tokens": tokens, "contestants": {}}
        calls = {}
        for one in servers:
            first = [one.ask("wait", tokens) for _ in range(3)]
            one.ask("wait", tokens, 5)
            seconds = one.ask("wait", tokens, 3)
            calls[one.name] = lambda wanted, seconds=seconds: max(1, round(wanted / seconds))
            row["contestants"][one.name] = {"first": first, "time": [], "wait": []}
        start, turn, order = time.monotonic(), 0, random.Random(tokens)
        while turn < LEAST_ROUNDS or time.monotonic() - start < self.options.seconds:
            for one in order.sample(servers, len(servers)):
                one.ask("time", tokens, calls[one.name](SETTLE_SECONDS))
                for kind in KINDS:
                    row["contestants"][one.name][kind].append(one.ask(kind, tokens, calls[one.name](SAMPLE_SECONDS)))
            turn += 1
        self.result["rows"].append(row)
        print(tokens, {one.name: f"{1000 * statistics.median(row['contestants'][one.name]['wait']):.3f} ms" for one in servers},
              file=sys.stderr, flush=True)

    def compare(self, what: str, tokens: int, ours: Server, theirs: Server) -> None:
        differs = difference(ours.result(tokens, self.folder), theirs.result(tokens, self.folder))
        self.result["checks"].append({"what": what, "name": ours.name, "tokens": tokens, "differs": differs})
        if not differs <= ALLOWED:
            self.result["problems"].append(f"{ours.name}, {tokens} tokens, {what}: differs by {differs:.1e}")

    def check(self, name: str, lengths: list[int]) -> None:
        """One model with replays beside the same without."""
        ours, theirs = self.serve(name), self.serve(name, TWINKLE_GRAPHS="off")
        for tokens in lengths:
            for _ in range(3):
                ours.ask("wait", tokens)
            self.compare("replayed", tokens, ours, theirs)
        for what, question, value in (("in training", "train", 1), ("in evaluation again", "train", 0), ("a weight changed", "scale", 50)):
            for server in (ours, theirs):
                server.ask(question, value)
            for turn in range(4):
                if turn in (0, 3):
                    self.compare(f"{what}, call {turn + 1}", lengths[0], ours, theirs)
                else:
                    ours.ask("wait", lengths[0])
        theirs.close()
        self.result["said"][f"{name}, checked"] = ours.close()

    def memory(self, name: str) -> None:
        """Of one server at a time, as the device is asked."""
        used = {}
        for graphs in ("off", "on", "max_graphs=4"):
            server = self.serve(name, TWINKLE_GRAPHS=graphs)
            before = server.ask("free")
            for tokens in LENGTHS:
                for _ in range(3):
                    server.ask("wait", tokens)
            used[graphs] = before - server.ask("free")
            self.result["said"][f"{name}, {len(LENGTHS)} lengths, TWINKLE_GRAPHS={graphs}"] = server.close()[-1:]
        self.result["memory"][name] = used

    def run(self, model: str) -> dict:
        self.make(model)
        servers = [self.serve(name) for name in FILES]
        for tokens in self.options.tokens or TOKENS:
            if self.result["rows"] and time.monotonic() + 2 * self.options.seconds > self.options.end:
                self.result["left_out"].append(f"{tokens} tokens: no time")
                continue
            self.measure(servers, tokens)
        for one in servers:
            said = one.close()
            if one.name in PAIRS:
                self.result["said"][one.name] = said
                if not any(re.search(r"[1-9]\d* replay", line) for line in said):
                    self.result["problems"].append(f"{one.name}: nothing was replayed")
        for step, name in ((self.check, "original --graphs"), (self.check, "kernelized --graphs"), (self.memory, "kernelized --graphs")):
            if time.monotonic() + 15 > self.options.end:
                self.result["left_out"].append(f"{step.__name__} of {name}: no time")
            else:
                step(name, self.options.tokens or TOKENS) if step == self.check else step(name)
        return self.result


def model_report(result: dict) -> list[str]:
    lines = [f"## {result['model']}", "", "Replaced: " + ", ".join(
        f"{count} × {layer}" for layer, count in result["replaced"]["kernelized"].items()) + ".", ""]
    rows = result["rows"]
    for kind, title in KINDS.items():
        lines += [f"Milliseconds a call, {title}: median (quartiles)", ""]
        lines += table(["tokens", *FILES], [[str(row["tokens"]), *(cell(row["contestants"][name][kind]) for name in FILES)]
                                            for row in rows]) + [""]
        lines += [f"Without graphs by with graphs, {title} (above 1: graphs are faster):", ""]
        lines += table(["tokens", *PAIRS], [[str(row["tokens"]), *(
            f"{statistics.median(row['contestants'][other][kind]) / statistics.median(row['contestants'][name][kind]):.2f}"
            for name, other in PAIRS.items())] for row in rows]) + [""]
    lines += ["The first three calls of a size, ms:", ""]
    lines += table(["tokens", *FILES], [[str(row["tokens"]), *(
        ", ".join(f"{1000 * one:.1f}" for one in row["contestants"][name]["first"]) for name in FILES)] for row in rows]) + [""]
    if result["checks"]:
        lines += ["Relative (Euclidean) difference to the same file with TWINKLE_GRAPHS=off:", ""]
        lines += table(["file", "tokens", "call", "differs"], [
            [one["name"], str(one["tokens"]), one["what"], f"{one['differs']:.1e}"] for one in result["checks"]]) + [""]
    for name, used in result["memory"].items():
        lines += [f"Memory of the device that {name} took for 3 calls of each of {len(LENGTHS)} lengths, after loading: " + ", ".join(
            f"{size / 2**20:.0f} MiB ({graphs})" for graphs, size in used.items()) + ".", ""]
    lines += ["What the servers said (TWINKLE_GRAPHS_STATISTICS=1):", ""]
    for name, said in result["said"].items():
        lines += [f"- {name}:", *(f"  - {line}" for line in said)]
    lines += ["", *(f"Left out: {one}" for one in result["left_out"]), *(f"PROBLEM: {one}" for one in result["problems"]), ""]
    return lines


def report(result: dict) -> str:
    lines = ["# A server that only calls torch::jit::load, with `kernelize --graphs`", "",
             f"{result['versions']}; {result['before']} before, {result['after']} after; {result['processor']}, "
             f"{result['load']}. Batch 1, {result['dtype']}, random weights, no cache of keys and values, traced at 8 tokens. "
             f"{result['seconds']:.0f} s in all.", ""]
    for one in result["models"]:
        lines += model_report(one)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=5, help="for each size")
    parser.add_argument("--stop", type=float, default=240, help="seconds after which nothing new is begun")
    parser.add_argument("--model", action="append", help="of models.py (llama-causal, large-causal)")
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", action="append", type=int)
    parser.add_argument("--folder", help="for the models: 1 GB, 16 GB for large ones")
    options = parser.parse_args()
    started = time.monotonic()
    options.build, options.end = options.build.resolve(), started + options.stop
    result = {"dtype": options.dtype, "versions": machine.versions(sys.executable), "processor": machine.processor(),
              "load": machine.load(), "before": machine.gpu(), "models": []}
    for model in options.model or ["llama-causal", "large-causal"]:
        if result["models"] and time.monotonic() + 90 > options.end:
            print(f"{model}: no time", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="gpu-server-", dir=options.folder) as name, contextlib.ExitStack() as stack:
            result["models"].append(Bench(options, model, pathlib.Path(name), stack).run(model))
        # After every model: what a limit cuts off is not lost.
        result["after"], result["seconds"] = machine.gpu(), time.monotonic() - started
        if options.output:
            options.output.write_text(report(result))
    machine.publish(options, report(result), result)
    if any(one["problems"] for one in result["models"]):
        raise SystemExit("results differ, or nothing was replayed: see PROBLEM in the page")


if __name__ == "__main__":
    main()
