#!/usr/bin/env python3
"""Builds kernels of kernels-community for the CPU from their unchanged sources, and holds what twinkle makes of them
against what Python computes with them.

The collection is a checkout that the user gives; nothing of it is kept but in WORK. The builds are laid out as
kernel-builder does it, entry point for Python included, against the LibTorch of the Python that runs this. Of each
kernel: what resolve knows of its operators, what inspect --load finds usable, a model kernelized with verification, and
its results beside those of the kernel's own Python.

    tests/kernels_community/from_source.py COLLECTION [KERNEL …] [--work WORK] [--build BUILD] [--optimize=-O3]
"""

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tomllib

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH = pathlib.Path(torch.__path__[0])
MAJOR, MINOR = torch.__version__.split(".")[:2]
VARIANT = f"torch{MAJOR}{MINOR}-cxx11-cpu-{os.uname().machine}-linux"

REGISTRATION = """#pragma once
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#define TEXT_OF(NAME) #NAME
#define TEXT(NAME) TEXT_OF(NAME)
#define ENTRY_OF(NAME) PyInit_##NAME
#define ENTRY(NAME) ENTRY_OF(NAME)
#define TORCH_LIBRARY_EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, DEVICE, MODULE) TORCH_LIBRARY_IMPL(NAME, DEVICE, MODULE)
#define REGISTER_EXTENSION(NAME) \\
    PyMODINIT_FUNC ENTRY(NAME)() { \\
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(NAME), nullptr, 0, nullptr}; \\
        return PyModule_Create(&module); \\
    }
"""
OPERATORS = """import torch
from . import {0}
ops = torch.ops.{0}


def add_op_namespace_prefix(op_name: str):
    return f"{0}::{{op_name}}"
"""


def build(project: pathlib.Path, work: pathlib.Path, optimize: str) -> pathlib.Path:
    settings = tomllib.loads((project / "build.toml").read_text())
    general = settings["general"]
    package = general["name"].replace("-", "_")
    op_namespace = f"_{package}_cpu_0123abc"
    output = work / general["name"] / "build" / VARIANT
    if (output / "metadata.json").exists():
        return output
    shutil.rmtree(work / general["name"], ignore_errors=True)
    shutil.copytree(project / "torch-ext" / package, output)
    (output / "_ops.py").write_text(OPERATORS.format(op_namespace))
    objects = work / general["name"] / "objects"
    objects.mkdir()
    (objects / "registration.h").write_text(REGISTRATION)
    common = ["g++", "-std=c++20", optimize, "-DNDEBUG", "-w", "-fPIC", "-DCPU_KERNEL",
              f"-DTORCH_EXTENSION_NAME={op_namespace}", f"-I{objects}", f"-I{project}", f"-I{project}/torch-ext",
              f"-I{TORCH}/include", f"-I{TORCH}/include/torch/csrc/api/include",
              f"-I{sysconfig.get_paths()['include']}"]
    compiled = []
    for part in [settings["torch"], *(one for one in settings["kernel"].values() if one["backend"] == "cpu")]:
        flags = [*part.get("cxx-flags", []), *(f"-I{project / one}" for one in part.get("include", []))]
        for source in part["src"]:
            if source.endswith(".cpp"):
                compiled.append(objects / (source.replace("/", "_") + ".o"))
                subprocess.run([*common, *flags, "-c", project / source, "-o", compiled[-1]], check=True)
    subprocess.run(["g++", "-shared", "-fopenmp", "-s", *compiled, "-o", output / f"{op_namespace}.abi3.so",
                    f"-L{TORCH}/lib", "-ltorch", "-ltorch_cpu", "-lc10"], check=True)
    shutil.rmtree(objects)
    files = {str(path.relative_to(output)): base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
             for path in sorted(output.rglob("*")) if path.is_file()}
    (output / "metadata.json").write_text(json.dumps(
        {"id": op_namespace, "name": general["name"], "version": general["version"], "license": general["license"],
         "python-depends": [], "backend": {"type": "cpu"}, "digest": {"algorithm": "sha256", "files": files}}, indent=2))
    return output


def imported(folder: pathlib.Path, name: str):
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py",
                                                  submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Rectified(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


class GatedActivation(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up


class Swish(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.swish = GatedActivation(), Swish()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.swish(self.gate(x))


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, size))
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        wide = hidden_states.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(hidden_states.dtype)


class Normed(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.norm = Norm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def rotated(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor,
            sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    half = q.shape[-1] // 2
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return (q * cos + torch.cat((-q[..., half:], q[..., :half]), -1) * sin,
            k * cos + torch.cat((-k[..., half:], k[..., :half]), -1) * sin)


class Rotary(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor,
                sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rotated(q, k, cos, sin)


def varlen_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
                     cu_seqlens_k: torch.Tensor, max_seqlen_q: int, max_seqlen_k: int, dropout_p: float = 0.0,
                     softmax_scale: float | None = None, causal: bool = False) -> torch.Tensor:
    parts: list[torch.Tensor] = []
    for i in range(cu_seqlens_q.size(0) - 1):
        of_q = slice_of(q, cu_seqlens_q, i)
        of_k, of_v = slice_of(k, cu_seqlens_k, i), slice_of(v, cu_seqlens_k, i)
        heads = of_q.size(1) // of_k.size(1)
        of_k, of_v = of_k.repeat_interleave(heads, 1), of_v.repeat_interleave(heads, 1)
        out = nn.functional.scaled_dot_product_attention(of_q.transpose(0, 1), of_k.transpose(0, 1),
                                                         of_v.transpose(0, 1), is_causal=causal, scale=softmax_scale)
        parts.append(out.transpose(0, 1))
    return torch.cat(parts)


def slice_of(x: torch.Tensor, bounds: torch.Tensor, i: int) -> torch.Tensor:
    return x[int(bounds[i]):int(bounds[i + 1])]


class Attention(nn.Module):
    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: torch.Tensor,
                longest: int) -> torch.Tensor:
        return varlen_attention(q, k, v, bounds, bounds, longest, longest, causal=self.causal)


for named in (Rectified, GatedActivation, Swish, Gates, Norm, Normed, Rotary, Attention, rotated, varlen_attention,
              slice_of):
    named.__module__ = "from_source.model"

LAYER = '[layers.{0}]\nrepo_path = "{{folder}}"\nclasses = ["{1}"]\n'
FUNCTION = ('[functions.{0}]\ntarget_module = "from_source.model"\nrepo_path = "{{folder}}"\nfunc_name = "{1}"\n')


def rotary_inputs(batch: int, dtype: torch.dtype):
    angles = torch.outer(torch.arange(40.0), torch.logspace(0, -4, 32)).repeat(1, 2)[None].expand(batch, -1, -1)
    return [torch.randn(batch, 8, 40, 64, dtype=dtype), torch.randn(batch, 2, 40, 64, dtype=dtype),
            angles.cos().to(dtype).contiguous(), angles.sin().to(dtype).contiguous()]


def attention_inputs(dtype: torch.dtype, head: int):
    bounds = torch.tensor([0, 5, 133, 134, 200], dtype=torch.int32)
    return [*(torch.randn(200, 4, head, dtype=dtype) for _ in range(3)), bounds, 128]


def attention_in_python(causal: bool):
    return lambda package, q, k, v, bounds, longest: package.flash_attn_varlen_func(
        q, k, v, bounds, bounds, longest, longest, causal=causal)


torch.manual_seed(0)
# Kernel, what of it, model, manifest, inputs, what the kernel's Python computes, sites replaced and kept.
CASES = [
    ("relu", "ReLU", Rectified(), LAYER.format("ReLU", "torch.nn.modules.activation.ReLU"), [torch.randn(3, 1000)],
     lambda package, x: package.relu(x), 1, 0),
    ("activation", "SiluAndMul, bfloat16; Silu has no kernel for the CPU", Gates(),
     LAYER.format("SiluAndMul", "from_source.model.GatedActivation") + LAYER.format("Silu", "from_source.model.Swish"),
     [torch.randn(3, 7, 512).bfloat16()],
     lambda package, x: Swish()(package.silu_and_mul(x.new_empty(3, 7, 256), x)), 1, 1),
    ("rmsnorm", "RMSNorm, float32", Normed(256), LAYER.format("RMSNorm", "from_source.model.Norm"),
     [torch.randn(2, 9, 256)], lambda package, x: package.apply_rms_norm(x, Norm(256).weight, 1e-6), 1, 0),
    ("rmsnorm", "RMSNorm, bfloat16", Normed(256).bfloat16(), LAYER.format("RMSNorm", "from_source.model.Norm"),
     [torch.randn(2, 9, 256).bfloat16()],
     lambda package, x: package.apply_rms_norm(x, Norm(256).bfloat16().weight, 1e-6), 1, 0),
    ("rotary", "apply_rotary_transformers, float32", Rotary(), FUNCTION.format("rotated", "apply_rotary_transformers"),
     rotary_inputs(1, torch.float32), lambda package, *inputs: package.apply_rotary_transformers(*inputs), 1, 0),
    ("flash-attn2", "flash_attn_varlen_func, bfloat16", Attention(False),
     FUNCTION.format("varlen_attention", "flash_attn_varlen_func"), attention_inputs(torch.bfloat16, 64),
     attention_in_python(False), 1, 0),
    # Where there is no AMX it rounds its scores, which PyTorch's attention does not.
    ("flash-attn2", "flash_attn_varlen_func, causal, float16, heads of 36, --tolerance 2", Attention(True),
     FUNCTION.format("varlen_attention", "flash_attn_varlen_func"), attention_inputs(torch.float16, 36),
     attention_in_python(True), 1, 0),
]


class Trial:
    """One kernel in a folder with a project that binds it."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, build: pathlib.Path):
        self.program, self.folder, self.build = program, folder, build
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def twinkle(self, *arguments):
        ran = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"twinkle {arguments[0]}: exit {ran.returncode}\n{ran.stderr}")
        return ran.stdout

    def known(self) -> str:
        """What is known of the kernel before it is used."""
        mapping = json.loads((self.folder / "twinkle.map.json").read_text())
        facts = json.loads(self.twinkle("inspect", self.build, "--json"))
        loaded = json.loads(self.twinkle("inspect", self.build, "--load", "--json"))
        usable = ["/".join(str(sum(bool(one["usable"]) for one in view[kind])) for view in (facts, loaded))
                  + f" of {len(facts[kind])}" for kind in ("layers", "functions")]
        return (f"operators shown {len(facts['operators'])}, mapped {len(mapping['kernels'][0]['operators'])}; usable "
                f"(shown/loaded): layers {usable[0]}, functions {usable[1]}")

    def kernelized(self, model: nn.Module, inputs: list, tolerance: str):
        torch.jit.script(model.eval()).save(self.folder / "model.pt")
        torch.save(inputs, self.folder / "inputs.pt")
        report = json.loads(self.twinkle("kernelize", "model.pt", "--map", "twinkle.map.json", "--device", "cpu",
                                         "--inputs", "inputs.pt", "--tolerance", tolerance, "-o", "fast.pt", "--json"))
        self.twinkle("run", "fast.pt", "--inputs", "inputs.pt", "--kernels", self.build.parents[2],
                     "-o", "outputs.pt")
        return report, torch.load(self.folder / "outputs.pt", weights_only=True)


def equal(found, expected) -> bool:
    if isinstance(expected, torch.Tensor):
        found = found[0] if isinstance(found, (tuple, list)) else found
        return torch.equal(found, expected)
    return len(found) == len(expected) and all(map(equal, found, expected))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("collection", type=pathlib.Path)
    arguments.add_argument("kernel", nargs="*")
    arguments.add_argument("--work", type=pathlib.Path, default=ROOT / "build/from_source")
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments.add_argument("--optimize", default="-O3")
    options = arguments.parse_args()
    work, failed, packages = options.work.resolve(), 0, {}
    for number, (kernel, what, model, manifest, inputs, in_python, replaced, kept) in enumerate(CASES):
        if options.kernel and kernel not in options.kernel:
            continue
        built = build(options.collection / kernel, work, options.optimize)
        trial = Trial(options.build.resolve() / "bin/twinkle", work / "trials" / str(number), built)
        (trial.folder / "twinkle.toml").write_text("presets = []\n" + manifest.format(folder=work / kernel))
        try:
            trial.twinkle("resolve")
            if kernel not in packages:
                print(f"{kernel}: {trial.known()}", flush=True)
                packages[kernel] = imported(built, kernel.replace("-", "_"))
            report, found = trial.kernelized(model, inputs, what.partition("--tolerance ")[2] or "1")
            with torch.no_grad():
                expected = in_python(packages[kernel], *inputs)
            same = equal(found, expected)
            counts = (report["replaced"], report["kept"])
            right = same and counts == (replaced, kept) and report["verified"]
            print(f"  {'ok' if right else 'WRONG'}: {what}: {counts[0]} replaced, {counts[1]} kept, "
                  f"{'equal to' if same else 'NOT'} what Python computes", flush=True)
            for site in report["sites"]:
                if site["because"]:
                    print(f"      {site['site']}: {site['because']}")
        except (RuntimeError, subprocess.SubprocessError) as error:
            right = False
            print(f"  WRONG: {what}: {error}", flush=True)
        failed += not right
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
