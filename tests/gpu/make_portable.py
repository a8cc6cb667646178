#!/usr/bin/env python3
"""Kernelizes the traced models of the tests for a machine with a GPU, on one that has none.

    tests/gpu/make_portable.py BUILD OTHER FOLDER [--target "torch=2.11,backend=cu130,arch=9.0"]

BUILD: a build folder with the pack's CUDA build (-DTWINKLE_CUDA=ON) and the models of the tests; OTHER: one whose pack has
code for newer GPUs alone (-DTWINKLE_CUDA_ARCHS=120). FOLDER gets what the other machine needs: the kernels as a bundle, for
each model and dtype the kernelized model and, beside it, its inputs, what double precision gives and how far off the
unkernelized model is here; in FOLDER/other one model with OTHER's kernels. `script/test-gpu --portable FOLDER` runs them.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import torch

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
MODELS = ["qwen2", "qwen3", "llama", "mistral", "gemma", "phi3", "gpt2", "bert", "vit", "t5", "whisper"]
MANIFEST = 'presets = ["transformers", "patterns"]\n'


def errors(results, expected):
    return [(torch.linalg.vector_norm(result.double().cpu() - want) / torch.linalg.vector_norm(want)).item()
            for result, want in zip(results, expected, strict=True)]


def in_dtype(inputs, dtype):
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


class Maker:
    def __init__(self, build, models, folder, target):
        self.build, self.models, self.folder, self.target = build, models, folder, target
        folder.mkdir(parents=True)
        (folder / "twinkle.toml").write_text(MANIFEST)
        self.twinkle("resolve", "--target", target, "--bundle", "kernels")

    def twinkle(self, *arguments):
        done = subprocess.run([self.build / "bin/twinkle", *map(str, arguments)], cwd=self.folder, capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"twinkle {' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr}")
        return done.stdout

    @torch.no_grad()
    def make(self, name, dtype):
        data = torch.load(self.models / f"{name}.io.pt", weights_only=True)
        common = [self.models / f"{name}.pt", "--target", self.target, "--map", "kernels/twinkle.map.json", "--json",
                  *([] if dtype == "float32" else ["--dtype", dtype])]
        report = json.loads(self.twinkle("kernelize", *common, "-o", f"{name}.{dtype}.pt"))
        self.twinkle("kernelize", *common, "--only", "nothing", "-o", f"{name}.{dtype}.unchanged.pt")
        inputs = [in_dtype(one, DTYPES[dtype]) for one in data["inputs"]]
        unchanged = self.folder / f"{name}.{dtype}.unchanged.pt"
        model = torch.jit.load(unchanged)
        unchanged.unlink()
        torch.save({"inputs": inputs, "expected": data["expected"], "replaced": report["replaced"],
                    "errors": errors([model(*one) for one in inputs], data["expected"])},
                   self.folder / f"{name}.{dtype}.io.pt")
        print(f"{name} {dtype}: {report['replaced']} replaced, {report['device_constants']['rewritten']} device constants")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("other", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--target", default="torch=2.11,backend=cu130,arch=9.0")
    options = parser.parse_args()
    build, folder = options.build.resolve(), options.folder.resolve()
    models = build / "tests/models/traced"
    maker = Maker(build, models, folder, options.target)
    for name in MODELS:
        for dtype in DTYPES:
            maker.make(name, dtype)
    newer = options.target.replace("arch=9.0", "arch=12.0")
    Maker(options.other.resolve(), models, folder / "other", newer).make("llama", "bfloat16")


main()
