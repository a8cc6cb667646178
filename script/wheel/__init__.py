"""Loads twinkle's runtime for the torch of this process; kernelized models then load with torch.jit.load."""

import json
import pathlib

__version__ = "@version@"
prefix = next(p for p in pathlib.Path(__file__).resolve().parents if (p / "libexec/twinkle").is_dir())
runtime = path = None  # "torch2.13-cpu", and its libtwinkle.so; None where there is no torch

try:
    import torch
except ModuleNotFoundError:
    torch = None

if torch is not None:
    _all = [(json.loads(file.read_text()), file.parent) for file in sorted(prefix.glob("libexec/twinkle/*/runtime.json"))]
    _fitting = [(about["backend"].startswith("cu") == bool(torch.version.cuda), folder) for about, folder in _all
                if about["torch"].split(".")[:2] == torch.__version__.split(".")[:2]
                and about.get("cxx11", True) == torch.compiled_with_cxx11_abi()]
    if not _fitting:
        raise ImportError(f"twinkle_kernels {__version__} has no runtime for torch {torch.__version__}, only for torch "
                          + ", ".join(about["torch"] for about, _ in _all) + f" (in {prefix / 'libexec/twinkle'})")
    runtime, path = max(_fitting)[1].name, max(_fitting)[1] / "libtwinkle.so"
    torch.ops.load_library(path)
