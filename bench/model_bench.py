#!/usr/bin/env python3
"""Whole models on this CPU: twinkle beside TorchScript, torch.compile, OpenVINO, ONNX Runtime and others, in one run.

    model_bench.py BUILD_FOLDER [-o bench/results/models_cpu.md] [--json FILE] [--seconds 8] [--model NAME]… [--dtype NAME]…
                   [--size N]… [--peers PYTHON] [--only CONTESTANT]… [--threads N] [--processor-time] [--loads 3]

From transformers' configurations with random weights, traced. Each contestant is a process; they take turns, sample by
sample, and all are loaded --loads times, of whose medians the mean counts. TorchScript and twinkle run in C++
(model_runner), the others in Python (peers.py), with PYTHON, an environment with what they need; without it, torch.compile
alone is there. One that fails is left out, and the page says why. Errors are relative to the model in double
precision. BUILD_FOLDER is configured with -DTWINKLE_BENCH=ON.
"""

import argparse
import contextlib
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import machine
from contestant import Gone, Runner, kernelize, measure_loads, replaced, table, typical, word

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parent / "build/venv/bin/python"
MODELS = {"llama-causal": "Llama-like: hidden 1024, 8 layers, 16 heads",
          "wide-causal": "Llama-like: hidden 2048, 4 layers, 32 heads",
          "bert": "BERT-base-like: hidden 768, 12 layers, 12 heads",
          "vit": "ViT-base", "whisper": "Whisper-base's encoder, 30 seconds of speech", "resnet50": "ResNet-50",
          "mobilenetv2": "MobileNetV2", "convnext": "ConvNeXt-tiny", "yolo": "a detector like YOLOv8s, 448 x 448 pixels"}
# What models of tokens have as their sizes, and others.
TOKENS, BATCHES = [1, 16, 128, 512], [1, 8]
SHAPES = {"whisper": "80,3000", "yolo": "3,448,448"}
MANIFEST = 'presets = ["transformers", "linear", "convolutions", "patterns"]\n'
INT8 = ["--precision", "int8", "--max-error", "0.2"]  # random weights: a trained model has another error
# Contestants in C++: how model_runner loads what, and with what that was kernelized.
PLAIN = {"TorchScript": "", "frozen": "frozen:", "optimize_for_inference": "optimized:"}
TWINKLE = {"twinkle": [], "twinkle, int8": INT8, "twinkle, bfloat16": ["--dtype", "bfloat16"]}
OURS = "twinkle"
# … in Python: what peers.py calls them.
PEERS = {"torch.compile": "torch.compile", "dynamic quantization": "dynamic-quantization", "torchao int8": "torchao-int8",
         "OpenVINO float32": "openvino-f32", "OpenVINO bfloat16": "openvino-bf16", "OpenVINO int8 weights": "openvino-int8",
         "ONNX Runtime": "onnxruntime", "ONNX Runtime dynamic int8": "onnxruntime-int8"}
# That read a model in float32 alone, or for which another dtype is the same as one that is there.
OF_FLOAT32 = {"twinkle, bfloat16", "dynamic quantization", "torchao int8", "OpenVINO float32", "OpenVINO bfloat16",
              "OpenVINO int8 weights", "ONNX Runtime", "ONNX Runtime dynamic int8"}


def largest(errors: list[float]) -> float:
    """What is no number is worse than any."""
    return max(errors, key=lambda error: (math.isnan(error), error))


def shape_of(model: str) -> str:
    """Behind the batch; empty for tokens."""
    return SHAPES.get(model, "" if "-" in model or model == "bert" else "3,224,224")


class Bench:
    """One model in one dtype."""

    def __init__(self, options: argparse.Namespace, model: str, dtype: str, folder: pathlib.Path):
        self.options, self.model, self.dtype, self.folder = options, model, dtype, folder
        self.sizes = options.size or (BATCHES if shape_of(model) else TOKENS)
        self.left_out: dict[str, str] = {}
        self.replaced: dict[str, dict[str, int]] = {}
        self.files: dict[str, float] = {}

    def is_wanted(self, name: str) -> bool:
        return (not self.options.only or name in self.options.only) and (self.dtype == "float32" or name not in OF_FLOAT32)

    def weigh(self, name: str, file: str) -> None:
        self.files[name] = (self.folder / file).stat().st_size / 2**20

    def in_cpp(self, name: str, specification: str) -> list:
        # Images come in the dtype of the model that is run.
        asked = TWINKLE.get(name, [])
        dtype = asked[1] if asked[:1] == ["--dtype"] else self.dtype
        shape = ["--shape", shape_of(self.model), "--dtype", dtype] if shape_of(self.model) else []
        return [self.options.build / "bench/model_runner", *shape, f"exact={self.folder}/exact.pt", f"{word(name)}={specification}"]

    def inputs(self) -> str:
        shape = shape_of(self.model)
        return f"{self.dtype}[1,{shape}]" if shape else "int64[1,128]:0..1000"

    def commands(self) -> dict[str, list]:
        made = [PYTHON, HERE / "models.py"]
        subprocess.run([*made, "make", self.model, self.dtype, self.folder / "plain.pt"], check=True)
        subprocess.run([*made, "exact", self.model, self.dtype, self.folder / "exact.pt", *map(str, self.sizes)], check=True)
        all_of_them = {}
        for name, how in PLAIN.items():
            if self.is_wanted(name):
                self.weigh(name, "plain.pt")
                all_of_them[name] = self.in_cpp(name, f"{how}{self.folder}/plain.pt")
        for name, arguments in TWINKLE.items():
            if self.is_wanted(name):
                file = name.replace(", ", "-")
                try:
                    report = kernelize(self.options.build, self.folder, file, MANIFEST, "--inputs", self.inputs(),
                                       "--no-measure", *([] if arguments == INT8 else ["--verify=given"]), *arguments)
                except subprocess.CalledProcessError as error:
                    self.left_out[name] = f"kernelize refused it, with status {error.returncode} (its words are above)"
                    continue
                self.replaced[name] = replaced(report)
                self.weigh(name, f"{file}.pt")
                all_of_them[name] = self.in_cpp(name, f"{self.folder}/{file}.pt")
        for name, peer in PEERS.items():
            python = self.options.peers or (PYTHON if peer == "torch.compile" else None)
            if python and self.is_wanted(name):
                all_of_them[name] = [python, HERE / "peers.py", peer, self.model, self.dtype, self.folder]
        return all_of_them

    def rows(self) -> list[dict]:
        commands, about, rows = self.commands(), {}, []

        def start(_, stack: contextlib.ExitStack) -> dict[str, Runner]:
            runners = {name: Runner(command, self.folder, stack) for name, command in commands.items() if name not in self.left_out}
            stack.callback(lambda: about.update(self.about(runners)))
            return runners

        for size, found in measure_loads(start, self.sizes, self.options.seconds, self.options.loads, self.left_out).items():
            rows.append({"model": self.model, "dtype": self.dtype, "tokens": size, "contestants": found})
            print(self.model, self.dtype, size, {name: f"{1000 * typical(one):.2f} ms" for name, one in found.items()},
                  file=sys.stderr, flush=True)
        return [row | {"about": about, "replaced": self.replaced, "left_out": self.left_out} for row in rows]

    def about(self, runners: dict[str, Runner]) -> dict[str, dict]:
        found = {}
        for name, runner in runners.items():
            with contextlib.suppress(Gone):
                found[name] = {"resident": runner.ask("resident", name), "file": self.files.get(name) or runner.ask("file", name)}
        return found


def measure_model(options: argparse.Namespace, model: str, dtype: str) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="model-bench-", dir=options.folder) as name:
        return Bench(options, model, dtype, pathlib.Path(name)).rows()


def cell(row: dict, name: str) -> str:
    """Milliseconds, and how many times as long as ours."""
    contestants = row["contestants"]
    if name not in contestants:
        return "–"
    median = typical(contestants[name])
    times = f" ({median / typical(contestants[OURS]):.2f})" if OURS in contestants and name != OURS else ""
    return f"{1000 * median:.1f}{times}"


def report_model(rows: list[dict]) -> list[str]:
    about, lines = rows[0]["about"], []
    names = [name for name in (*PLAIN, *TWINKLE, *PEERS) if any(name in row["contestants"] for row in rows)]
    body = []
    for name in names:
        errors = [row["contestants"][name]["differs"] for row in rows if name in row["contestants"]]
        known = about.get(name, {"resident": 0, "file": 0})
        body.append([f"**{name}**" if name in TWINKLE else name, *(cell(row, name) for row in rows), f"{largest(errors):.1e}",
                     f"{known['resident']:.0f}", f"{known['file']:.0f}" if known["file"] else "–"])
    lines += table([rows[0]["dtype"], *(str(row["tokens"]) for row in rows), "largest error", "process, MiB", "file, MiB"],
                   body)
    lines += ["", *(f"Replaced in {name}: " + ", ".join(f"{count} × {site}" for site, count in sites.items()) + "."
                    for name, sites in rows[0]["replaced"].items())]
    lines += [f"{name} is left out: {why}" for name, why in rows[0]["left_out"].items()]
    return [*lines, ""]


def report(result: dict) -> str:
    lines = ["# Whole models on a CPU", "",
             f"{result['processor']}, {result['threads']} threads, {result['load']}; "
             f"{result['clock'] + '; ' if result['clock'] else ''}{result['versions']}. Random weights, traced, no cache of keys "
             f"and values. Milliseconds a call, the mean of the medians of {result['loads']} loads, for each number of tokens (or "
             "images, or recordings); in brackets, how many times as long as twinkle's exact model takes.", ""]
    for model, title in MODELS.items():
        of_model = [row for row in result["rows"] if row["model"] == model]
        if of_model:
            lines += [f"## {title}", ""]
        for dtype in dict.fromkeys(row["dtype"] for row in of_model):
            lines += report_model([row for row in of_model if row["dtype"] == dtype])
    return "\n".join(lines).rstrip() + "\n"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="the raw figures, also after each model")
    parser.add_argument("--seconds", type=float, default=8, help="for each size of each model")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16"])
    parser.add_argument("--size", action="append", type=int)
    parser.add_argument("--only", action="append", choices=[*PLAIN, *TWINKLE, *PEERS])
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment with torch, transformers, openvino, nncf, "
                        "onnx, onnxruntime and torchao")
    parser.add_argument("--threads", help="of all contestants; else as many as there are")
    parser.add_argument("--processor-time", action="store_true",
                        help="instead of time on the wall: on one thread, where other programs share its core")
    parser.add_argument("--loads", type=int, default=3, help="processes of each contestant, one after the other")
    parser.add_argument("--folder", help="for the models")
    options = parser.parse_args()
    if options.processor_time and options.threads != "1":
        parser.error("--processor-time needs --threads 1")
    options.build = options.build.resolve()
    return options


def main() -> None:
    options = parsed()
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = options.threads
    if options.processor_time:
        os.environ["TWINKLE_BENCH_CLOCK"] = "processor"
    result = {"processor": machine.processor(), "clock": "processor time" if options.processor_time else "",
              "loads": options.loads, "load": machine.load(), "versions": machine.versions(PYTHON), "threads": options.threads or os.cpu_count(),
              "rows": []}
    for model in options.model or MODELS:
        for dtype in options.dtype or ["float32", "bfloat16"]:
            result["rows"] += measure_model(options, model, dtype)
            machine.keep(options, result)
    machine.publish(options, report(result), result)


if __name__ == "__main__":
    main()
