#!/usr/bin/env python3
"""Whole models that were tuned, beside all that tuning could have chosen, in one run.

    tuned_models.py BUILD_FOLDER [--device cuda] [--model qwen2]… [--sizes 1,16,128] [--dtype bfloat16] [--search]
                    [--hub FOLDER] [--budget 60] [--stop 500] [-o OUT.md] [--json RAW.json]

Each model (models.py) is traced, kernelized with every kernel that fits, and tuned (twinkle kernelize --tune); on a
GPU all three are replayed as CUDA graphs, too, and one is written whose runs are replayed where tuning has found that
to be faster. --search: every combination of what tuning chooses by is measured, where all sites of one class or
formula get their first kernel, or their original; the time of the search is that of writing and measuring all of them,
one after the other, beside the tuned model. The fastest of many short measurements is mostly one that was lucky, so the
three fastest at each size are measured again with the others, and the best of those counts. --hub: kernels of the Hub
(tests/gpu/build_hub_kernels.py, or folders of the same names) and the bundled ones are each bound alone, and together as
candidates that tuning chooses from.
The tuned file is loaded twice, which tells how far two of the same are apart. Models take turns, sample by sample, all in
C++ (model_runner), in --loads processes one after the other, of whose medians the mean counts. BUILD_FOLDER is
configured with -DTWINKLE_BENCH=ON.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import machine
from contestant import Runner, kernelize, measure_loads, table, typical

HERE = pathlib.Path(__file__).resolve().parent
AGAIN = "again"
FINALISTS, WITHOUT = 3, "without"  # of a search, at each size; their names are those of what they lack
EVERYTHING = 'presets = ["transformers", "patterns"{}]\n'


# Formulas that take layers into them; the others make a model that can be captured as a graph.
NO_FORMULAS = [f"--exclude=*twinkle_patterns.{name}*" for name in ("add_rms_norm", "rms_norm", "silu")]


def candidates(hub: pathlib.Path, which: str) -> str:
    """Layers that both have: of the bundled pack, of the Hub's kernels, or of both as candidates."""
    text = 'presets = ["patterns"]\n'
    for layer, folder, classes in [("LlamaRMSNorm", "layer-norm", ["*RMSNorm"]),
                                   ("Silu", "activation", ["*.SiLU", "*.SiLUActivation"])]:
        bound = f"[[layers.{layer}]]\nclasses = {json.dumps(classes)}\n"
        if which in ("bundled", "both"):
            text += bound
        if which in ("hub", "both"):
            text += bound + f'repo_path = "{hub}/{folder}"\n'
    return text


class Model:
    """One model and what is written of it."""

    def __init__(self, options, folder: pathlib.Path, name: str):
        self.options, self.folder, self.name = options, folder, name
        self.seconds: dict[str, float] = {}
        self.how: dict[str, str] = {"original": "plain.pt"}
        subprocess.run([sys.executable, HERE / "models.py", "make", name, options.dtype, folder / "plain.pt", options.device],
                       check=True)

    def add(self, name: str, manifest: str, *more: str) -> dict:
        begin = time.monotonic()
        report = kernelize(self.options.build, self.folder, name, manifest, "--device", self.options.device, "--no-measure", *more)
        self.seconds[name] = time.monotonic() - begin
        self.how[name] = f"{name}.pt"
        return report

    def tuned(self, name: str, manifest: str, *more: str) -> dict:
        sizes = self.options.sizes
        return self.add(name, manifest, "--inputs", f"int64[1,{max(sizes)}]:1..999", "--tune", "--tune-sizes",
                        ",".join(map(str, sizes)), "--budget", str(self.options.budget), *more)

    def runner(self, how: dict[str, str], stack: contextlib.ExitStack) -> Runner:
        specified = []
        for name, file in how.items():
            prefix, _, path = file.rpartition(":")
            specified.append(f"{name}={prefix}{':' if prefix else ''}{self.folder / path}")
        return Runner([self.options.build / "bench/model_runner", "--device", self.options.device, *specified], self.folder, stack)

    def times(self, how: dict[str, str], longer: int = 1, loads: int = 1) -> dict[int, dict]:
        def start(order: random.Random, stack: contextlib.ExitStack) -> dict[str, Runner]:
            names = order.sample(list(how), len(how))
            return dict.fromkeys(names, self.runner({name: how[name] for name in names}, stack))

        gone: dict[str, str] = {}
        result = measure_loads(start, self.options.sizes, longer * self.options.seconds, loads, gone)
        if gone:
            raise SystemExit(f"{self.name}: {gone}")
        return result


def groups(report: dict) -> dict[str, list[str]]:
    """Replaced sites by class or formula."""
    found: dict[str, list[str]] = {}
    for site in report["sites"]:
        if site["status"] == "replaced":
            found.setdefault(site["of"].rsplit(".", 1)[-1], []).append(site["site"])
    return found


def search(model: Model, manifest: str, report: dict) -> dict:
    """Each combination beside the tuned model: the ratio of their times at each size, and what it took."""
    parts, begin, ratios = groups(report), time.monotonic(), {}

    def write(name: str, left_out: list[str]) -> None:
        model.add(name, manifest, "--no-verify", *(f"--exclude={site}" for one in left_out for site in parts[one]))

    for kept in itertools.product((True, False), repeat=len(parts)):
        if time.monotonic() > model.options.end:
            print(f"{model.name}: --stop came after {len(ratios)} of {2 ** len(parts)} combinations", file=sys.stderr)
            break
        left_out = [name for name, stays in zip(parts, kept, strict=True) if not stays]
        name = f"without_{len(ratios)}"
        write(name, left_out)
        times = model.times({"tuned": model.how["tuned"], name: model.how.pop(name)})
        ratios[", ".join(left_out) or "nothing"] = {size: median(row, name) / median(row, "tuned") for size, row in times.items()}
        (model.folder / f"{name}.pt").unlink()
    if not ratios:
        raise SystemExit(f"{model.name}: --stop left no time for a search")
    seconds = time.monotonic() - begin
    finalists = {one for size in model.options.sizes for one in sorted(ratios, key=lambda name: ratios[name][size])[:FINALISTS]}
    for one in sorted(finalists):
        left_out = [] if one == "nothing" else one.split(", ")
        write("+".join([WITHOUT, *left_out]), left_out)
    return {"ratios": ratios, "seconds": seconds, "combinations": 2 ** len(parts)}


def run_one(options, name: str) -> dict:
    on_gpu = options.device != "cpu"
    manifest = EVERYTHING.format("" if on_gpu else ', "linear"')
    with tempfile.TemporaryDirectory(prefix="tuned-", dir=options.folder) as folder:
        model = Model(options, pathlib.Path(folder), name)
        if options.hub:
            os.environ["TWINKLE_KERNELS"] = str(options.hub)  # where model_runner finds them
            for which in ("bundled", "hub"):
                model.add(which, candidates(options.hub, which), *NO_FORMULAS)
            report = model.tuned("tuned", candidates(options.hub, "both"), *NO_FORMULAS)
        else:
            kernels = model.add("kernels", manifest)
            report = model.tuned("tuned", manifest)
            if on_gpu:
                model.tuned("decided", manifest, "--graphs")
        result = {"model": name, "seconds": model.seconds, "chosen": chosen(report)}
        if options.search:
            result["search"] = search(model, manifest, kernels)
        how = model.how | {AGAIN: model.how["tuned"]}  # how far two of the same file are apart
        if on_gpu:
            how |= {f"{one},graphs": f"graphs:{file}" for one, file in how.items() if one != "decided"}
        # Each contestant for as long as the two of a search's turn; times of one file vary by half.
        result["rows"] = model.times(how, len(how) if options.search else 1, options.loads)
        return result


def chosen(report: dict) -> dict[str, int]:
    """What serves how many sites: a kernel, or one by size."""
    counts: dict[str, int] = {}
    for site in report["sites"]:
        by = site.get("by_size") or []
        who = ", ".join((one["kernel"] or "original") + (f" to {one['up_to']} rows" if one["up_to"] else "")
                        for one in by) or site["kernel"] or "original"
        key = f"{site['of'].rsplit('.', 1)[-1]}: {who}"
        counts[key] = counts.get(key, 0) + 1
    return counts


def median(row: dict, name: str) -> float:
    return typical(row[name])


def beside_best(row: dict, name: str, others: list[str]) -> list[str]:
    best = min(others, key=lambda other: median(row, other))
    return [best, f"{median(row, name) / median(row, best):.3f}"]


def verdicts(result: dict) -> list[list[str]]:
    """At each size the tuned model beside the best of what was not tuned, plain and as graphs apart, and what decides beside both."""
    rows = []
    for size, everything in result["rows"].items():
        again = [everything[name] for name in (AGAIN, AGAIN + ",graphs") if name in everything]
        row = {name: one for name, one in everything.items() if one not in again}
        found = [name for name in row if name.split("+")[0] == WITHOUT and "graphs" not in name]
        plain = [name for name in row if "graphs" not in name and name not in ("tuned", "decided", *found)]
        cells = [result["model"], str(size), f"{median(row, 'original') / median(row, 'tuned'):.2f}"]
        cells += [f"{median(everything, AGAIN) / median(row, 'tuned'):.3f}", *beside_best(row, "tuned", plain)]
        if "tuned,graphs" in row:
            cells += [f"{median(everything, AGAIN + ',graphs') / median(row, 'tuned,graphs'):.3f}"]
            cells += beside_best(row, "tuned,graphs", [name for name in row if name.endswith(",graphs") and name != "tuned,graphs"])
        if "decided" in row:
            cells += beside_best(row, "decided", [name for name in row if name != "decided"])
        if "search" in result:
            best, ratio = beside_best(row, "tuned", found)
            cells += [", ".join(best.split("+")[1:]) or "nothing", ratio, f"{result['seconds']['tuned'] / result['search']['seconds']:.3f}"]
        rows.append(cells)
    return rows


def report(everything: dict) -> str:
    results = everything["models"]
    head = ["model", "tokens", "original / tuned", "tuned again / tuned", "best of the untuned", "tuned / it"]
    if any("tuned,graphs" in row for one in results for row in one["rows"].values()):
        head += ["tuned again / tuned, as graphs", "best of the untuned as graphs", "tuned as graphs / it"]
    if any("decided" in one["seconds"] for one in results):
        head += ["best of all", "replayed where tuning says so / it"]
    if any("search" in one for one in results):
        head += ["best of the search, without", "tuned / it", "tuning / search, in time"]
    lines = [f"{everything['versions']}; {everything['processor']}, {everything['gpu']}{everything['load']}; {everything['dtype']}.", ""]
    lines += table(head, [row for one in results for row in verdicts(one)]) + ["", "Chosen:", ""]
    for one in results:
        lines += [f"- {one['model']}: " + "; ".join(f"{count} × {what}" for what, count in one["chosen"].items())]
    lines += ["", "Seconds of writing them: " + "; ".join(
        f"{one['model']}: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in one["seconds"].items() if "without" not in name)
        + (f"; the search {one['search']['seconds']:.0f}, {len(one['search']['ratios'])} of {one['search']['combinations']} combinations" if "search" in one else "")
        for one in results) + "."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", action="append")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--sizes", type=lambda text: [int(one) for one in text.split(",")], default=[1, 16, 128])
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--hub", type=lambda text: pathlib.Path(text).resolve(), help="kernels of the Hub")
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=2, help="for each size")
    parser.add_argument("--loads", type=int, default=4, help="processes that load each model anew")
    parser.add_argument("--stop", type=float, default=3600, help="seconds after which no model is begun, and a search is given up")
    parser.add_argument("--folder", help="for the models")
    options = parser.parse_args()
    options.build, options.end = options.build.resolve(), time.monotonic() + options.stop
    if options.hub and options.search:
        parser.error("--search is of the bundled kernels")
    everything = {"versions": machine.versions(sys.executable), "processor": machine.processor(), "dtype": options.dtype,
                  "gpu": machine.gpu() + ", " if options.device != "cpu" else "", "load": machine.load(), "models": []}
    for name in options.model or ["llama"]:
        if time.monotonic() > options.end:
            print(f"{name}: no time", file=sys.stderr)
            continue
        everything["models"].append(run_one(options, name))
        machine.keep(options, everything)  # what a limit cuts off is not lost
        print(f"{name}: done", file=sys.stderr, flush=True)
    machine.publish(options, report(everything), everything)


if __name__ == "__main__":
    main()
