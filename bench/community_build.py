#!/usr/bin/env python3
"""Builds the CPU kernels of kernels-community as one library of PyTorch operators, to measure against.

    community_build.py SOURCES [-o build/community/community.so] [--python build/venv/bin/python] [--cuda 90]

SOURCES is a checkout of https://github.com/huggingface/kernels-community, or a bare repository. Sources and flags are
those that each kernel's build.toml names for the CPU, optimized as a release; the operators' namespaces are
community_activation, community_relu, …. Nothing of it becomes part of twinkle. --cuda: its activation for GPUs
of that architecture instead, by nvcc.
"""

import argparse
import io
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib

KERNELS = ["activation", "relu", "rmsnorm", "rotary"]
# What their builder generates, without the entry point for Python.
REGISTRATION = """#pragma once
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define REGISTER_EXTENSION(NAME)
"""
STABLE_REGISTRATION = """#pragma once
#define STABLE_TORCH_LIBRARY_EXPAND(NAME, MODULE) STABLE_TORCH_LIBRARY(NAME, MODULE)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, KEY, MODULE) STABLE_TORCH_LIBRARY_IMPL(NAME, KEY, MODULE)
#define REGISTER_EXTENSION(NAME)
"""
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fno-gnu-unique", "-w", "-DCPU_KERNEL"]


def unpack(sources: pathlib.Path, folder: pathlib.Path, kernels: list[str]) -> str:
    """A copy of the kernels' folders; returns the commit."""
    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", "-C", sources, *arguments], check=True, capture_output=True).stdout

    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD", *kernels))) as archive:
        archive.extractall(folder, filter="data")
    return git("rev-parse", "--short=12", "HEAD").decode().strip()


def torch_folder(python: pathlib.Path) -> pathlib.Path:
    where = subprocess.run([python, "-c", "import torch; print(torch.__path__[0])"], check=True, capture_output=True,
                           text=True).stdout
    return pathlib.Path(where.strip())


def commands(folder: pathlib.Path, torch: pathlib.Path) -> list[tuple[pathlib.Path, list[str]]]:
    """The objects, and how each is compiled."""
    include = [f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include", f"-I{folder}"]
    result = []
    for name in KERNELS:
        description = tomllib.loads((folder / name / "build.toml").read_text())
        parts = [{"src": description["torch"]["src"], "include": ["torch-ext"]}]
        parts += [part for part in description["kernel"].values() if part["backend"] == "cpu"]
        for part in parts:
            own = [f"-DTORCH_EXTENSION_NAME=community_{name}", *part.get("cxx-flags", []),
                   *(f"-I{folder / name / one}" for one in part.get("include", []))]
            for source in part["src"]:
                if source.endswith(".cpp"):
                    result.append((folder / name / (source + ".o"), [*FLAGS, *include, *own, "-c",
                                                                     str(folder / name / source)]))
    return result


def prepare(sources: pathlib.Path, output: pathlib.Path, registration: str) -> tuple[pathlib.Path, str]:
    """Where the sources are beside the output, and their commit."""
    folder = output.resolve().parent / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    commit = unpack(sources, folder, KERNELS)
    # TorchScript's alias analysis fails on "Tensor!": which tensor is written must have a name.
    for binding in folder.glob("*/torch-ext/torch_binding.cpp"):
        binding.write_text(re.sub(r"Tensor! (\w+)", r"Tensor(\1!) \1", binding.read_text()))
    (folder / "registration.h").write_text(registration)
    return folder, commit


def build(sources: pathlib.Path, output: pathlib.Path, python: pathlib.Path) -> str:
    compiler = shlex.split("ccache g++" if shutil.which("ccache") else "g++")
    torch = torch_folder(python)
    folder, commit = prepare(sources, output, REGISTRATION)
    objects = []
    for target, command in commands(folder, torch):
        print(target.relative_to(folder), file=sys.stderr)
        subprocess.run([*compiler, *command, "-o", target], check=True)
        objects.append(target)
    # LibTorch and its OpenMP are in the process that loads it.
    subprocess.run(["g++", "-shared", "-o", output, *objects], check=True)
    return commit


def build_for_cuda(sources: pathlib.Path, output: pathlib.Path, python: pathlib.Path, arch: str) -> str:
    torch = torch_folder(python)
    folder, commit = prepare(sources, output, STABLE_REGISTRATION)
    kernel = folder / "activation"
    subprocess.run(["nvcc", "-std=c++20", "-O3", "-DNDEBUG", f"-arch=sm_{arch}", "--shared", "-Xcompiler=-fPIC", "-w",
                    "-DCUDA_KERNEL", "-DUSE_CUDA", "-DTORCH_TARGET_VERSION=0x020a000000000000",
                    "-DTORCH_EXTENSION_NAME=community_activation", f"-I{torch}/include",
                    f"-I{torch}/include/torch/csrc/api/include", f"-I{folder}", f"-I{kernel / 'torch-ext'}",
                    f"-I{kernel}", kernel / "activation/activation_kernels.cu", kernel / "torch-ext/torch_binding.cpp",
                    f"-L{torch}/lib", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-o", output], check=True)
    return commit


def manifest(folder: pathlib.Path) -> str:
    """What binds builds of tests/gpu/build_hub_kernels.py to a model like Llama of transformers."""
    return f"""presets = []

[layers.LlamaRMSNorm]
repo_path = "{folder}/layer-norm"
classes = ["*.LlamaRMSNorm"]

[layers.Silu]
repo_path = "{folder}/activation"
classes = ["*.SiLU", "*.SiLUActivation"]

[functions.apply_rotary_pos_emb]
target_module = "transformers.models.llama.modeling_llama"
repo_path = "{folder}/rotary"
func_name = "apply_rotary_transformers"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, default="build/community/community.so")
    parser.add_argument("--python", type=pathlib.Path, default="build/venv/bin/python", help="one that has torch")
    parser.add_argument("--cuda", metavar="ARCH", help="for GPUs of this architecture (90), with nvcc")
    options = parser.parse_args()
    if options.cuda:
        commit = build_for_cuda(options.sources, options.output, options.python, options.cuda)
    else:
        commit = build(options.sources, options.output, options.python)
    options.output.with_suffix(".commit").write_text(commit + "\n")
    print(options.output)


if __name__ == "__main__":
    main()
