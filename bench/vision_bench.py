#!/usr/bin/env python3
"""Vision models on this CPU: kernelized against plain, frozen and optimized TorchScript, and OpenVINO, in one run.

    vision_bench.py BUILD_FOLDER [-o bench/results/vision.md] [--json FILE] [--seconds 8]
                    [--model NAME]… [--images N]… [--openvino PYTHON] [--threads N]

Random weights, traced, float32. All but OpenVINO run in C++ (model_runner). The contestants take turns, sample by
sample; the processes wait for each other. Errors are relative to the model in double precision. BUILD_FOLDER is
configured with -DTWINKLE_BENCH=ON.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import machine
from model_bench import HERE, PYTHON, Runner, kernelize, measure, replaced, table

MODELS = {"resnet50": "ResNet-50", "mobilenetv2": "MobileNetV2", "convnext": "ConvNeXt-tiny",
          "yolo": "a detector like YOLOv8s, 448 x 448 pixels", "vit": "ViT-base"}
IMAGES = [1, 8]
MANIFEST = 'presets = ["transformers", "linear", "convolutions", "patterns"]\n'
EXACT, OPENVINO = "exact", "openvino"


def size(model: str) -> int:
    return 448 if model == "yolo" else 224


def measure_model(options: argparse.Namespace, model: str) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="vision-bench-", dir=options.folder) as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        subprocess.run([PYTHON, HERE / "vision_models.py", "make", model, folder / f"{model}.pt"], check=True)
        (folder / "plain.pt").symlink_to(folder / f"{model}.pt")
        report = kernelize(options.build, folder, "kernelized", MANIFEST, "--no-measure", "--verify=given", "--inputs",
                           f"float32[1,3,{size(model)},{size(model)}]")
        contestants = {EXACT: "double:{}/plain.pt", "plain": "{}/plain.pt", "frozen": "frozen:{}/plain.pt",
                       "optimized": "optimized:{}/plain.pt", "kernelized": "{}/kernelized.pt",
                       "kernelized+frozen": "frozen:{}/kernelized.pt"}
        here = Runner([options.build / "bench/model_runner", "--images", size(model),
                       *(f"{one}={file.format(folder)}" for one, file in contestants.items())], folder, stack)
        runners = {one: here for one in contestants if one != EXACT}
        if options.openvino:
            runners[OPENVINO] = Runner([options.openvino, HERE / "vision_models.py", "openvino", folder / f"{model}.pt",
                                        "f32"], folder, stack)
        results = []
        for images in options.images or IMAGES:
            row = {"model": model, "images": images, "replaced": replaced(report),
                   "contestants": measure(runners, images, options.seconds)}
            print(model, images, {one: f"{1000 * statistics.median(it['samples']):.2f} ms"
                                  for one, it in row["contestants"].items()}, file=sys.stderr)
            results.append(row)
        for runner in set(runners.values()):
            runner.process.stdin.close()
        return results


def report(result: dict) -> str:
    lines = ["# Vision models on a CPU", "", f"{result['processor']}, {result['threads']} threads, {result['load']}; "
             f"{result['versions']}. Medians, ms a call, and the error against the model in double precision. Random "
             "weights, float32, traced.", ""]
    rows = []
    for row in result["rows"]:
        medians = {one: 1000 * statistics.median(it["samples"]) for one, it in row["contestants"].items()}
        ours = min(median for one, median in medians.items() if one.startswith("kernelized"))
        others = [f"{medians[one] / ours:.2f}" for one in medians if not one.startswith("kernelized")]
        rows.append([row["model"], str(row["images"]),
                     *(f"{median:.2f} ({row['contestants'][one]['differs']:.0e})" for one, median in medians.items()),
                     " / ".join(others)])
    names = list(result["rows"][0]["contestants"])
    lines += table(["model", "images", *names, "others / ours: " + ", ".join(one for one in names if "kernel" not in one)],
                   rows)
    seen = {row["model"]: row["replaced"] for row in result["rows"]}
    lines += ["", *(f"- {MODELS[model]}: " + ", ".join(f"{count} × {name}" for name, count in counts.items()) + "."
                    for model, counts in seen.items())]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=8, help="for each number of images of each model")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--images", action="append", type=int)
    parser.add_argument("--openvino", metavar="PYTHON", help="of an environment with torch, transformers and openvino")
    parser.add_argument("--threads", help="of all contestants; else as many as there are")
    parser.add_argument("--folder", help="for the models")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = options.threads
    result = {"processor": machine.processor(), "load": machine.load(), "versions": machine.versions(PYTHON),
              "threads": options.threads or os.cpu_count(), "rows": []}
    for model in options.model or MODELS:
        result["rows"] += measure_model(options, model)
    machine.publish(options, report(result), result)


if __name__ == "__main__":
    main()
