#!/usr/bin/env python3
"""Kernelizes a small model for the GPUs of this machine with the bundled pack, for kernelized_models_test.cpp.

    make_kernelized.py BUILD FOLDER

BUILD: a build folder with the pack's CUDA build. FOLDER gets the kernels as a bundle, original.pt (only its devices are free)
kernelized.pt, and marked.pt (the same with --graphs).
"""

import pathlib
import subprocess
import sys

import small_llama


def main() -> None:
    build, folder = (pathlib.Path(one).resolve() for one in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "twinkle.toml").write_text('presets = ["transformers", "patterns"]\n')
    small_llama.save(folder / "traced.pt")

    def twinkle(*arguments: str) -> None:
        subprocess.run([build / "bin/twinkle", *arguments], cwd=folder, check=True)

    twinkle("resolve", "--bundle", "kernels")
    kernelize = ["kernelize", "traced.pt", "--map", "kernels/twinkle.map.json", "--device", "cuda"]
    twinkle(*kernelize, "-o", "kernelized.pt")
    twinkle(*kernelize, "--graphs", "-o", "marked.pt")
    twinkle(*kernelize, "--only", "nothing", "-o", "original.pt")


main()
