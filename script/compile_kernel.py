#!/usr/bin/env python3
"""Compiles a Python function with AOTInductor into a kernel that needs no Python: Triton in it becomes machine code.

    script/compile_kernel.py FILE.py:FUNCTION --input "x: float32[rows, 64]" --input "weight: float32[64]" \\
        --constant eps=1e-6 --attribute weight --range rows=1:65536 -o norm.pt2

It runs where torch is (and Triton and a GPU, with --device cuda), for the machine that it runs on. FUNCTION takes
the inputs and constants by name, and returns new tensors. A size that is a name may vary within its range; the
others, the dtypes and the constants are those that the code is compiled for, and calls with others are refused.
Inputs are contiguous: twinkle sees to it. --dtype compiles it once for each of them, where an input has no dtype.

-o FILE.pt2: one package, for func_impl = "package:FILE.pt2". -o FOLDER: a build in the Hub's layout, for
repo_path = "FOLDER", which gets a package for each dtype. Running it again adds to that build: other sizes,
constants, functions, GPUs. Parameters named by --attribute are found in the layer that is replaced.
"""

import argparse
import base64
import hashlib
import importlib.util
import json
import pathlib
import platform
import re
import sys
import tempfile
import zipfile

import torch
import torch._inductor

PRIMES = (11, 13, 17, 19, 23, 29, 31, 37)  # sizes to trace with: no two are equal by chance


def load(place):
    path, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def parse_input(text):
    """("x", "float32" or None, ["rows", 64]) of "x: float32[rows, 64]"."""
    found = re.fullmatch(r"\s*(\w+)\s*:\s*(\w*)\s*\[(.*)\]\s*", text)
    if not found:
        raise SystemExit(f'--input is "NAME: DTYPE[SIZES]", not "{text}"')
    name, dtype, sizes = found.groups()
    sizes = [size.strip() for size in sizes.split(",") if size.strip()]
    return name, dtype or None, [int(size) if size.isdigit() else size for size in sizes]


def parse_constant(text):
    name, _, value = text.partition("=")
    return name, {"true": True, "false": False}.get(value) if value in ("true", "false") else json.loads(value)


def parse_range(text):
    name, _, ends = text.partition("=")
    least, _, most = ends.partition(":")
    return name, [int(least), int(most)]


class Call(torch.nn.Module):
    def __init__(self, function, names, constants):
        super().__init__()
        self.function, self.names, self.constants = function, names, constants

    def forward(self, *tensors):
        return self.function(**dict(zip(self.names, tensors)), **self.constants)


def export(function, inputs, constants, ranges, device):
    names = [name for name, dtype, sizes in inputs]
    symbols = sorted({size for name, dtype, sizes in inputs for size in sizes if isinstance(size, str)})
    missing = [symbol for symbol in symbols if symbol not in ranges]
    if missing:
        raise SystemExit(f"no --range for {', '.join(missing)}")
    example = {symbol: min(max(PRIMES[i % len(PRIMES)], ranges[symbol][0]), ranges[symbol][1])
               for i, symbol in enumerate(symbols)}
    dims = {symbol: torch.export.Dim(symbol, min=ranges[symbol][0], max=ranges[symbol][1]) for symbol in symbols}
    tensors, shapes = [], []
    for name, dtype, sizes in inputs:
        tensor = torch.ones([example.get(size, size) for size in sizes], device=device)
        tensors.append(tensor.to(getattr(torch, dtype)))
        shapes.append({i: dims[size] for i, size in enumerate(sizes) if size in dims} or None)
    with torch.no_grad():
        program = torch.export.export(Call(function, names, constants).eval(), tuple(tensors),
                                      dynamic_shapes={"tensors": tuple(shapes)}, strict=False)
    changed = list(program.run_decompositions().graph_signature.user_inputs_to_mutate.values())
    if changed:
        raise SystemExit(f"the function changes its input {', '.join(changed)}: let it return a new tensor")
    return program, len(program.graph_signature.user_outputs)


def compile_package(function, inputs, constants=None, attributes=(), ranges=None, device="cpu", name=None, to=None):
    """Writes one package; `inputs` as of parse_input(), with dtypes. Returns the schema of its operator."""
    constants, ranges = constants or {}, ranges or {}
    program, results = export(function, inputs, constants, ranges, device)
    kinds = {bool: "bool", int: "int", float: "float"}
    parameters = [f"Tensor {one}" for one, dtype, sizes in inputs]
    parameters += [f"{kinds[type(value)]} {one}" for one, value in constants.items()]
    schema = f"{name or function.__name__}({', '.join(parameters)}) -> " + (
        "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})")
    said = {"operator": schema, "attributes": list(attributes), "constants": constants,
            "inputs": [{"dtype": dtype, "sizes": sizes} for one, dtype, sizes in inputs],
            "sizes": {size: ranges[size] for one, dtype, sizes in inputs for size in sizes if isinstance(size, str)},
            "torch": torch.__version__}
    configs = {"aot_inductor.metadata": {"twinkle": json.dumps(said)}}
    if device != "cpu":
        configs["aot_inductor.embed_kernel_binary"] = True  # beside the library, it would have to be unpacked
    torch._inductor.aoti_compile_and_package(program, package_path=str(to), inductor_configs=configs)
    return schema


def variant(device):
    version = "".join(torch.__version__.split(".")[:2])
    backend = "cpu" if device == "cpu" else "cu" + torch.version.cuda.replace(".", "")
    machine = "aarch64" if platform.machine() == "aarch64" else "x86_64"
    return f"torch{version}-cxx11-{backend}-{machine}-linux"


def said_of(package):
    """What a package says of its operator, of which it has two equal copies."""
    with zipfile.ZipFile(package) as archive:
        record = next(one for one in archive.namelist() if one.endswith("_metadata.json"))
        metadata = json.loads(archive.read(record))
    return json.loads(metadata["twinkle"]), metadata.get("AOTI_COMPUTE_CAPABILITY", "")


def layer_text(said):
    """As twinkle writes it for a package that is bound by itself."""
    name, parameters = re.fullmatch(r"(\w+)\((.*?)\) -> .*", said["operator"]).groups()
    fields, arguments, passed = "", "", []
    for parameter in parameters.split(", "):
        kind, one = parameter.split(" ")
        kind = "torch.Tensor" if kind == "Tensor" else kind
        if one in said["attributes"]:
            fields += f"    {one}: {kind}\n"
        else:
            arguments += f", {one}: {kind}"
        passed.append("self." * (one in said["attributes"]) + one)
    results = said["operator"].partition(" -> ")[2].strip("()").replace("Tensor", "torch.Tensor")
    return (f"class {name}(nn.Module):\n    has_backward: bool = False\n    can_torch_compile: bool = True\n{fields}\n"
            f"    def forward(self{arguments}) -> {f'tuple[{results}]' if ',' in results else results}:\n"
            f"        return ops.{name}({', '.join(passed)})\n")


def write_build(folder, name, device):
    """Python and metadata around the packages that are there."""
    packages = sorted(folder.glob("*.pt2"))
    hashes = hashlib.sha256(b"".join(package.read_bytes() for package in packages)).hexdigest()
    space = f"_{name}_{hashes[:12]}"
    said = [said_of(package) for package in packages]
    (folder / "_ops.py").write_text(f"import torch\n\nops = torch.ops.{space}\n")
    (folder / "__init__.py").write_text("from . import layers\n")
    layers = dict.fromkeys(layer_text(one) for one, capability in said)
    (folder / "layers.py").write_text("import torch\nfrom torch import nn\n\nfrom ._ops import ops\n\n\n" +
                                      "\n\n".join(layers))
    backend = {"type": "cpu"}
    if device != "cpu":
        digits = sorted({capability for one, capability in said if capability})
        backend = {"type": "cuda", "archs": [f"{one[:-1]}.{one[-1]}" for one in digits]}
    files = {file.name: base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
             for file in sorted(folder.iterdir()) if file.suffix in (".py", ".pt2")}
    (folder / "metadata.json").write_text(json.dumps(
        {"id": space, "name": name.replace("_", "-"), "version": 1, "license": "unknown", "python-depends": [],
         "backend": backend, "digest": {"algorithm": "sha256", "files": files}}, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="FILE.py:FUNCTION")
    parser.add_argument("--input", action="append", required=True, type=parse_input, metavar='"NAME: DTYPE[SIZES]"')
    parser.add_argument("--constant", action="append", default=[], type=parse_constant, metavar="NAME=VALUE")
    parser.add_argument("--attribute", action="append", default=[], metavar="NAME")
    parser.add_argument("--range", action="append", default=[], type=parse_range, metavar="NAME=LEAST:MOST")
    parser.add_argument("--dtype", nargs="+", default=[None])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--name", help="of the operator and layer; else that of the function")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    function = load(options.function)
    single = options.output.suffix == ".pt2"
    if single and len(options.dtype) > 1:
        raise SystemExit("one package is for one dtype; -o FOLDER takes several")
    folder = options.output / "build" / variant(options.device)
    for dtype in options.dtype:
        inputs = [(name, own or dtype, sizes) for name, own, sizes in options.input]
        if any(own is None for name, own, sizes in inputs):
            raise SystemExit("an input has no dtype, and there is no --dtype")
        with tempfile.TemporaryDirectory(dir=options.output.parent) as temporary:
            made = pathlib.Path(temporary) / "package.pt2"
            print(compile_package(function, inputs, dict(options.constant), options.attribute, dict(options.range),
                                  options.device, options.name, made))
            if single:
                made.rename(options.output)
                continue
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{options.name or function.__name__}-{hashlib.sha256(made.read_bytes()).hexdigest()[:12]}.pt2"
            made.rename(folder / name)
    if not single:
        write_build(folder, options.output.name.replace("-", "_"), options.device)


if __name__ == "__main__":
    main()
