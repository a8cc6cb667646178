#!/usr/bin/env python3
"""Builds kernels of kernels-community for this machine's GPU, as the Hub would hold them, from their sources.

    build_hub_kernels.py SOURCES FOLDER [--arch 9.0] [--torch DIR] [--cuda 13.0] [--widths 1024 4096] [--jobs 16]

SOURCES is a checkout of https://github.com/huggingface/kernels-community, or a bare repository. FOLDER gets NAME/build/VARIANT
for activation, layer-norm and rotary: what is compiled, and how, is what each kernel's build.toml says for CUDA, nothing is
changed. --widths leaves out layer-norm's other hidden sizes, which take minutes. Nothing of it becomes part of twinkle.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "kernels")]

from community_build import REGISTRATION, STABLE_REGISTRATION, torch_folder, unpack  # noqa: E402
from package import put_together  # noqa: E402

NAMES = ["activation", "layer-norm", "rotary"]
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "-Xcompiler=-fPIC", "-w", "-DCUDA_KERNEL", "-DUSE_CUDA", "--expt-relaxed-constexpr",
         "--expt-extended-lambda"]


class Kernel:
    def __init__(self, folder: pathlib.Path, name: str, commit: str, options: argparse.Namespace):
        self.folder, self.name, self.options = folder / name, name, options
        self.description = tomllib.loads((self.folder / "build.toml").read_text())
        self.id = f"{name.replace('-', '_')}_cuda_{commit}"
        self.stable = "cuda" in self.description["torch"].get("stable-abi", {})
        self.objects = folder / "objects" / name
        self.objects.mkdir(parents=True)
        (self.objects / "registration.h").write_text(STABLE_REGISTRATION if self.stable else REGISTRATION)

    def commands(self) -> list[list[str]]:
        torch = self.options.torch
        common = ["nvcc", *FLAGS, self.arch(), f"-DTORCH_EXTENSION_NAME={self.id}",
                  f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include", f"-I{self.objects}",
                  f"-I{self.folder}", f"-I{self.folder / 'torch-ext'}",
                  # CUDA's libraries, where they came with PyTorch and not with the toolkit.
                  *(f"-isystem={one}" for one in sorted(torch.parent.glob("nvidia/*/include"))),
                  *(["-DTORCH_TARGET_VERSION=0x020a000000000000"] if self.stable else [])]
        parts = [{"src": self.description["torch"]["src"]}]
        parts += [part for part in self.description["kernel"].values() if part["backend"] == "cuda"]
        commands = []
        for part in parts:
            own = [*part.get("cuda-flags", []), *part.get("cxx-flags", []),
                   *(f"-I{self.folder / one}" for one in part.get("include", []))]
            for source in part["src"]:
                if source.endswith((".cu", ".cpp")) and self.wanted(source):
                    commands.append([*common, *own, "-c", str(self.folder / source), "-o",
                                     str(self.objects / (pathlib.Path(source).name + ".o"))])
        return commands

    def arch(self) -> str:
        return f"-arch=sm_{self.options.arch.replace('.', '')}"

    def wanted(self, source: str) -> bool:
        width = re.search(r"_(\d+)\.cu$", source)
        return not (self.options.widths and width) or int(width[1]) in self.options.widths

    def link(self) -> None:
        library = self.objects / f"_{self.id}.abi3.so"
        torch = self.options.torch
        subprocess.run(["nvcc", self.arch(), "--shared", "-o", library, *sorted(self.objects.glob("*.o")), f"-L{torch}/lib", "-ltorch_cpu",
                        "-ltorch_cuda", "-lc10", "-lc10_cuda"], check=True)
        general = self.description["general"]
        put_together(self.options.folder / self.name / "build" / self.variant(),
                     self.folder / "torch-ext" / self.name.replace("-", "_"), library,
                     {"id": self.id, "name": general["name"], "version": general["version"], "license": general["license"],
                      "python-depends": [], "backend": {"type": "cuda", "archs": [self.options.arch]}})

    def variant(self) -> str:
        torch = (self.options.torch / "version.py").read_text()
        torch = "".join(re.search(r"__version__ = '(\d+)\.(\d+)", torch).groups())
        return f"torch{'-stable-abi210' if self.stable else f'{torch}-cxx11'}-cu{self.options.cuda.replace('.', '')}-x86_64-linux"


def output_of(command: list[str], pattern: str) -> str:
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(pattern, text)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", help="compute capability (that of the first GPU)")
    parser.add_argument("--torch", type=pathlib.Path, help="LibTorch's folder (that of python3)")
    parser.add_argument("--cuda", help="version (nvcc's)")
    parser.add_argument("--widths", type=int, nargs="*")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.arch = options.arch or output_of(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], r"([\d.]+)")
    options.cuda = options.cuda or output_of(["nvcc", "--version"], r"release (\d+\.\d+)")
    options.torch = options.torch or torch_folder(pathlib.Path("python3"))
    with tempfile.TemporaryDirectory(prefix="hub-kernels-") as scratch:
        commit = unpack(options.sources, pathlib.Path(scratch), NAMES)
        kernels = [Kernel(pathlib.Path(scratch), name, commit, options) for name in NAMES]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(subprocess.run, command, check=True) for one in kernels for command in one.commands()]:
                done.result()
        for kernel in kernels:
            kernel.link()
            print(options.folder / kernel.name)


if __name__ == "__main__":
    main()
