#!/usr/bin/env python3
"""Stands in for kernel-builder where pages show it: builds a project for this machine alone.

    kernel_builder.py build-and-copy PROJECT       (TWINKLE_TORCH: the LibTorch to build against)
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

REGISTRATION = """#pragma once
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define REGISTER_EXTENSION(NAME)
"""


def build(project: pathlib.Path, torch: pathlib.Path) -> None:
    settings = tomllib.loads((project / "build.toml").read_text())
    general, name = settings["general"], settings["general"]["name"].replace("-", "_")
    version = re.search(r"__version__ = '(\d+)\.(\d+)", (torch / "version.py").read_text())
    output = project / "build" / f"torch{version[1]}{version[2]}-cxx11-cpu-{os.uname().machine}-linux"
    shutil.copytree(project / "torch-ext" / name, output)
    op_namespace = f"_{name}_cpu_0123abc"
    (output / "_ops.py").write_text(f"import torch\nfrom . import {op_namespace}\nops = torch.ops.{op_namespace}\n")
    (project / "torch-ext/registration.h").write_text(REGISTRATION)
    sources = [file for section in (settings["torch"], *settings["kernel"].values()) for file in section["src"]]
    include = torch / "include"
    subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", f"-DTORCH_EXTENSION_NAME={op_namespace}",
                    f"-I{include}", f"-I{include}/torch/csrc/api/include",
                    *(project / file for file in sources if file.endswith(".cpp")),
                    "-o", output / f"{op_namespace}.abi3.so", f"-L{torch}/lib", "-ltorch_cpu", "-lc10"], check=True)
    files = {path.name: base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
             for path in sorted(output.iterdir())}
    (output / "metadata.json").write_text(json.dumps(
        {"id": op_namespace, "name": general["name"], "version": general["version"], "license": general["license"],
         "python-depends": [], "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": files}}, indent=2))


if __name__ == "__main__":
    assert sys.argv[1] == "build-and-copy"
    build(pathlib.Path(sys.argv[2]), pathlib.Path(os.environ["TWINKLE_TORCH"]))
