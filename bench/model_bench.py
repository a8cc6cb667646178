#!/usr/bin/env python3
"""Whole models on this CPU: kernelized against plain and frozen TorchScript, torch.compile and OpenVINO, in one run.

    model_bench.py BUILD_FOLDER [-o bench/results/models.md] [--json FILE] [--seconds 8]
                   [--model NAME]… [--dtype NAME]… [--tokens N]… [--no-compile] [--openvino PYTHON] [--threads N]
                   [--processor-time]

A model like Llama (hidden 1024, 8 layers) and one like BERT-base, from transformers' configurations with random
weights, traced: each with the attention operator and with attention written out. Kernelized by layers alone, and with
patterns, and with linear layers as well. All but torch.compile and OpenVINO run in C++ (model_runner). The contestants
take turns, sample by sample; the processes wait for each other. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON. What torch.compile has compiled
is forgotten afterwards, unless TORCHINDUCTOR_CACHE_DIR names a folder for it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import machine

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent / "build/venv/bin/python"
MODELS = {"llama": "Llama-like: hidden 1024, 8 layers, intermediate 2816, 16 heads",
          "bert": "BERT-base-like: hidden 768, 12 layers, 12 heads",
          "llama-causal": "The same Llama, its attention told that it is causal instead of given a mask",
          "llama-eager": "The same Llama with its attention written out",
          "bert-eager": "The same BERT with its attention written out"}
TOKENS = [1, 16, 512]
# How a contestant is kernelized: a manifest. Each is measured as it is and frozen.
MANIFESTS = {"kernelized": 'presets = ["transformers"]\n',
             "patterns": 'presets = ["transformers", "patterns"]\n',
             "linear": 'presets = ["transformers", "linear", "convolutions", "patterns"]\n'}
MANIFESTS["int8"] = MANIFESTS["linear"]
# What else a contestant is kernelized with. Random weights: the error of a trained model is another.
OPTIONS = {"int8": ["--inputs", "int64[1,128]:0..1000", "--precision", "int8", "--max-error", "0.2", "--no-measure"]}
PLAIN, COMPILED = ["plain", "frozen"], "torch.compile"
# OpenVINO reads the plain file; as it comes it computes in bfloat16 where the CPU can.
OPENVINO = {"openvino-f32": "f32", "openvino-bf16": "bf16"}
SAMPLE_SECONDS, LEAST_ROUNDS = 0.05, 5
# Idle threads of the process that was just asked spin for a while.
PAUSE_SECONDS = 0.02


class Runner:
    """A process that answers questions about its contestants."""

    def __init__(self, command: list, folder: pathlib.Path, stack: contextlib.ExitStack):
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), **os.environ}
        self.process = stack.enter_context(subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment))

    def ask(self, what: str, name: str, tokens: int, calls: int = 1) -> float:
        self.process.stdin.write(f"{what} {name} {tokens} {calls}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"no answer about {name}")
        return float(answer)


def kernelize(build: pathlib.Path, folder: pathlib.Path, name: str, manifest: str, *options: str) -> dict:
    """Writes NAME.pt; returns the report."""
    project = folder / name
    project.mkdir()
    (project / "twinkle.toml").write_text(manifest)
    done = subprocess.run([build / "bin/twinkle", "kernelize", folder / "plain.pt", "-o", folder / f"{name}.pt",
                           "--json", *options], cwd=project, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def pattern_search(build: pathlib.Path, folder: pathlib.Path) -> dict:
    """What looking for the patterns costs."""
    project = folder / "patterns"
    subprocess.run([build / "bin/twinkle", "resolve", "-o", "twinkle.map.json"], cwd=project, check=True,
                   stdout=subprocess.DEVNULL)
    command = [build / "bench/pattern_search", project / "twinkle.map.json", folder / "plain.pt"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def replaced(report: dict) -> dict[str, int]:
    """How many sites of each class or pattern."""
    counts: dict[str, int] = {}
    for site in report["sites"]:
        if site["status"] == "replaced":
            name = site["of"].rsplit(".", 1)[-1]
            counts[name] = counts.get(name, 0) + 1
    return counts


def measure(runners: dict[str, Runner], tokens: int, seconds: float) -> dict:
    """Per contestant its samples, first call and distance to the plain model's result."""
    result = {name: {"samples": []} for name in runners}
    calls = {}
    for name, runner in runners.items():
        result[name]["first"] = runner.ask("time", name, tokens)
        result[name]["differs"] = runner.ask("differ", name, tokens)
        runner.ask("time", name, tokens, 2)
        calls[name] = max(1, round(SAMPLE_SECONDS / runner.ask("time", name, tokens)))
    names = list(runners)
    start = time.monotonic()
    turn = 0
    while turn < LEAST_ROUNDS or time.monotonic() - start < seconds:
        before = None
        for k in range(len(names)):
            name = names[(k + turn) % len(names)]
            if runners[name] is not before:
                time.sleep(PAUSE_SECONDS)
                if calls[name] > 1:
                    runners[name].ask("time", name, tokens)  # wakes its threads
            before = runners[name]
            result[name]["samples"].append(runners[name].ask("time", name, tokens, calls[name]))
        turn += 1
    return result


def measure_model(options: argparse.Namespace, model: str, dtype: str) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="model-bench-", dir=options.folder) as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        subprocess.run([PYTHON, HERE / "models.py", "make", model, dtype, folder / "plain.pt"], check=True)
        reports = {name: kernelize(options.build, folder, name, manifest, *OPTIONS.get(name, []))
                   for name, manifest in MANIFESTS.items()}
        contestants = [f"{name}={folder}/plain.pt" if name == "plain" else f"{name}=frozen:{folder}/plain.pt"
                       for name in PLAIN]
        for name in MANIFESTS:
            contestants += [f"{name}={folder}/{name}.pt", f"{name},frozen=frozen:{folder}/{name}.pt"]
        here = Runner([options.build / "bench/model_runner", *contestants], folder, stack)
        runners = {one.split("=")[0]: here for one in contestants}
        if options.compile:
            runners[COMPILED] = Runner([PYTHON, HERE / "models.py", "run", model, dtype],
                                       folder, stack)
        if options.openvino:
            for name, precision in OPENVINO.items():
                runners[name] = Runner([options.openvino, HERE / "models.py", "openvino", folder / "plain.pt", precision],
                                       folder, stack)
        search = pattern_search(options.build, folder)
        results = []
        for tokens in options.tokens or TOKENS:
            row = {"model": model, "dtype": dtype, "tokens": tokens, "search": search,
                   "replaced": {name: replaced(report) for name, report in reports.items()},
                   "contestants": measure(runners, tokens, options.seconds)}
            print(model, dtype, tokens, {name: f"{1000 * statistics.median(one['samples']):.2f} ms"
                                         for name, one in row["contestants"].items()}, file=sys.stderr)
            results.append(row)
        for runner in set(runners.values()):
            runner.process.stdin.close()
        return results


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def compared_pairs(names: list[str]) -> list[tuple[str, str]]:
    """What is divided by what: others by the kernelized, and the kernelized without patterns by those with."""
    others = [name for name in names if name not in variants()]
    pairs = [(other, name) for name in variants() for other in others]
    return pairs + [("patterns" + how, "linear" + how) for how in ("", ",frozen")]


def variants() -> list[str]:
    return [name + how for name in MANIFESTS for how in ("", ",frozen")]


def report_model(rows: list[dict]) -> list[str]:
    names = list(rows[0]["contestants"])
    pairs = compared_pairs(names)
    compared = [name for name in (*MANIFESTS, COMPILED, *OPENVINO) if name in names]
    times, ratios = [], []
    for row in rows:
        medians = {name: statistics.median(one["samples"]) for name, one in row["contestants"].items()}
        title = [row["dtype"], str(row["tokens"])]
        times.append([*title, *(f"{1000 * median:.2f}" for median in medians.values()),
                      *(f"{row['contestants'][name]['differs']:.1e}" for name in compared)])
        ratios.append([*title, *(f"{medians[other] / medians[name]:.2f}" for other, name in pairs)])
    return ["Median, ms, and the relative difference to the plain model's result:", "",
            *table(["dtype", "tokens", *names, *(f"{name} differs" for name in compared)], times), "",
            "How many times as fast as the others a kernelized model is:", "",
            *table(["dtype", "tokens", *(f"{other} / {name}" for other, name in pairs)], ratios), ""]


def report(result: dict) -> str:
    rows = result["rows"]
    lines = ["# Whole models on a CPU", "", f"{result['processor']}, {os.cpu_count()} cores, {result['load']}; "
             f"{result['clock'] + '; ' if result['clock'] else ''}{result['versions']}. Batch 1, random weights, no cache of keys and values, traced models.", ""]
    for model, title in MODELS.items():
        own = [row for row in rows if row["model"] == model]
        if own:
            counts = own[0]["replaced"]
            lines += [f"## {title}", "",
                      *(f"Replaced in {name}: " + (", ".join(f"{count} × {layer}" for layer, count in sites.items())
                                                   or "nothing") + "." for name, sites in counts.items()), "",
                      *report_model(own)]
    searches = [row["search"] for row in rows]
    if searches:
        sizes = [one["operations"] for one in searches]
        each = [1000 * one["search"]["processor"][1] / (one["operations"] / 1000) for one in searches]
        lines += [f"Looking for all patterns in these models of {min(sizes)} to {max(sizes)} operations takes "
                  f"{min(each):.2f} to {max(each):.2f} ms per 1,000 operations, and to compile the formulas "
                  f"{1000 * min(one['compile']['processor'][0] for one in searches):.1f} ms.", ""]
    first = [row["contestants"][COMPILED]["first"] for row in rows if COMPILED in row["contestants"]]
    if first:
        lines.append(f"The first call of each size took torch.compile (static shapes) {min(first):.1f} to "
                     f"{max(first):.1f} s.")
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=8, help="for each size of each model")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16"])
    parser.add_argument("--tokens", action="append", type=int)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--openvino", metavar="PYTHON", help="of an environment with torch, transformers and openvino")
    parser.add_argument("--threads", help="of all contestants; else as many as there are")
    parser.add_argument("--processor-time", action="store_true",
                        help="instead of time on the wall: on one thread, where other programs share its core")
    parser.add_argument("--folder", help="for the models")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = options.threads
    if options.processor_time:
        if options.threads != "1":
            parser.error("--processor-time needs --threads 1")
        os.environ["TWINKLE_BENCH_CLOCK"] = "processor"
    result = {"processor": machine.processor(), "clock": "processor time, 1 thread" if options.processor_time else "",
              "load": machine.load(), "versions": machine.versions(PYTHON), "rows": []}
    for model in options.model or MODELS:
        for dtype in options.dtype or ["float32", "bfloat16"]:
            result["rows"] += measure_model(options, model, dtype)
    machine.publish(options, report(result), result)


if __name__ == "__main__":
    main()
