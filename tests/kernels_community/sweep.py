#!/usr/bin/env python3
"""Compiles every layer of a collection of kernels and counts the outcomes by reason.

The collection is a checkout of kernels-community (or a bare git repository of it) that the user
gives; nothing of it is kept. Operators are faked from the schemas in the binding sources, hosts have
the attributes that a layer reads, their types guessed from annotations and names.

    tests/kernels_community/sweep.py COLLECTION [--build build/main] [--verbose]
"""

import argparse
import ast
import collections
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = re.compile(r'\.def\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
PYTHON_KERNELS = re.compile(r"^\s*(?:import|from)\s+(triton|cutlass|tilelang|cuda\.bindings|quack)", re.M)
INTEGERS = re.compile(r"(dim|size|features|num_|heads|top_k|groups|idx|step|stride|length|hidden$|vocab|chunk|^n$|^k$)")
FLOATS = re.compile(r"(eps|epsilon|scal(e|ing)$|dropout|^alpha|theta|softcap|threshold)")
CATEGORIES = [
    ("launches a Triton kernel", r"Triton|triton"),
    ("needs another Python package", r"(einops|transformers|cutlass|tilelang|quack|numpy|packaging|cuda\.bindings|os|sys|inspect|warnings|functools|contextlib|itertools|logging)\.?\w* ?.*has no meaning"),
    ("autograd.Function", r"Function\b.*apply|apply of the Python class|autograd"),
    ("builds or uses a Python class", r"Python class|makes an object"),
    ("*args or **kwargs", r"\*\*|\*args|starred"),
    ("syntax without a counterpart", r"has no counterpart|comprehension|walrus|decorator"),
    ("an operator that is not there", r"operator .* is not there|Unknown builtin op"),
    ("no torch function of that name", r"has no meaning in TorchScript"),
    ("a function as a value", r"cannot be used as a value"),
    ("state is changed", r"layers keep no state"),
    ("a module variable that is not fixed", r"depends on what is run|that changes"),
    ("an attribute the host lacks", r"has no attribute|cannot be told"),
]


def category(reason):
    for name, pattern in CATEGORIES:
        if re.search(pattern, reason):
            return name
    return "types"


def extracted(collection, folder):
    """The Python and binding sources of a checkout or a bare repository."""
    if (collection / "HEAD").is_file():
        archive = folder / "collection.tar"
        with open(archive, "wb") as out:
            subprocess.run(["git", "-C", collection, "archive", "HEAD"], stdout=out, check=True)
        with tarfile.open(archive) as tar:
            wanted = [m for m in tar.getmembers() if m.isfile() and m.name.endswith((".py", ".cpp"))]
            tar.extractall(folder / "tree", wanted, filter="data")
        return folder / "tree"
    return collection


def packages(tree):
    for torch_ext in sorted(tree.glob("*/torch-ext")):
        for package in sorted(p for p in torch_ext.iterdir() if (p / "__init__.py").is_file()):
            yield torch_ext, package


def sources_of(package, namespace):
    sources = {}
    for file in package.rglob("*.py"):
        sources[file.relative_to(package).as_posix()] = file.read_text(errors="replace")
    sources.setdefault("_ops.py", f"import torch\nops = torch.ops.{namespace}\n"
                       "def add_op_namespace_prefix(op_name):\n"
                       f"    return f\"{namespace}::{{op_name}}\"\n")
    return sources


def schemas_of(torch_ext):
    found = []
    for file in sorted(torch_ext.rglob("*.cpp")):
        for match in SCHEMA.finditer(file.read_text(errors="replace")):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1)))
            if "->" in text and text not in found:
                found.append(text)
    return found


def guess(name, annotation):
    text = annotation or ""
    if "Tensor" in text or "Parameter" in text:
        return "tensors" if text.lower().startswith("tuple") else "tensor"
    for kind in ("float", "int", "bool", "str"):
        if re.search(rf"\b{kind}\b", text):
            return kind
    if "Linear" in text or "Module" in text:
        return "module 1"
    if FLOATS.search(name):
        return "float"
    if re.search(r"^(is_|use_|has_|norm_topk|training)", name):
        return "bool"
    if name in ("activation", "flow", "hidden_act"):
        return "str"
    return "int" if INTEGERS.search(name) else "tensor"


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return parts if isinstance(node, ast.Name) and node.id == "self" and parts else None


def attributes_of(cls, forward):
    annotated = {s.target.id: ast.unparse(s.annotation) for s in cls.body
                 if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    tensor_methods = {"shape", "dtype", "device", "view", "reshape", "transpose", "to", "float",
                      "t", "size", "dim", "unsqueeze", "data", "contiguous", "append"}
    found = {}
    for node in ast.walk(forward):
        if isinstance(node, ast.Call) and (path := dotted(node.func)) and path[-1] not in tensor_methods:
            found[".".join(path)] = f"module {len(node.args) + len(node.keywords)}"
        elif isinstance(node, ast.Attribute) and (path := dotted(node)):
            if path[-1] in tensor_methods and len(path) > 1:
                path = path[:-1]
            found.setdefault(".".join(path), guess(path[-1], annotated.get(path[0]) if len(path) == 1 else None))
    for path in list(found):
        parts = path.split(".")
        for i in range(1, len(parts)):
            above = ".".join(parts[:i])
            if not found.get(above, "").startswith("module"):
                found[above] = "module 1"
    return found


def parameters_of(forward):
    """Those without a default: the site passes no more."""
    args = forward.args.posonlyargs + forward.args.args
    required = args[1:len(args) - len(forward.args.defaults)]
    return [guess(a.arg, ast.unparse(a.annotation) if a.annotation else None) for a in required]


def is_layer(cls):
    return any(ast.unparse(base).split(".")[-1] in ("Module",) for base in cls.bases)


def layers_of(package):
    for path in ("layers.py", "layers/__init__.py"):
        if (package / path).is_file():
            tree = ast.parse((package / path).read_text())
            layers = set()
            for cls in tree.body:
                methods = [s for s in cls.body if isinstance(s, ast.FunctionDef)
                           and s.name == "forward"] if isinstance(cls, ast.ClassDef) else []
                if isinstance(cls, ast.ClassDef) and methods and (
                        is_layer(cls) or any(ast.unparse(b) in layers for b in cls.bases)):
                    layers.add(cls.name)
                    yield {"name": cls.name, "attributes": attributes_of(cls, methods[-1]),
                           "parameters": parameters_of(methods[-1])}
                elif isinstance(cls, ast.ClassDef) and not methods and any(
                        "Module" in ast.unparse(b) or "Mixin" in ast.unparse(b) for b in cls.bases):
                    yield {"name": cls.name, "attributes": {}, "parameters": ["tensor"]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("collection", type=pathlib.Path)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/main")
    arguments.add_argument("--verbose", action="store_true", help="print every layer and its reason")
    options = arguments.parse_args()
    total, plain, operators = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for torch_ext, package in packages(extracted(options.collection, folder)):
            layers = list(layers_of(package))
            if not layers:
                continue
            namespace = f"_{package.name}_sweep"
            job = {"sources": sources_of(package, namespace), "layers": layers,
                   "schemas": {namespace: schemas_of(torch_ext)}}
            (folder / "job.json").write_text(json.dumps(job))
            ran = subprocess.run([options.build / "tests/layer_sweep", folder / "job.json"],
                                 capture_output=True, text=True, timeout=120)
            if ran.returncode != 0:
                sys.exit(f"{package.name}: layer_sweep ended with {ran.returncode}\n{ran.stderr}")
            answer = json.loads(ran.stdout)
            operators += answer["operators"]
            python_kernels = any(PYTHON_KERNELS.search(text) for text in job["sources"].values())
            for name, reason in answer["layers"].items():
                outcome = category(reason) if reason else "compiled"
                total[outcome] += 1
                if not python_kernels:
                    plain[outcome] += 1
                if options.verbose:
                    print(f"{package.name}.{name}{' [Python kernels]' if python_kernels else ''}: "
                          f"{reason or 'compiled'}")
    print(f"| outcome | all layers | in packages without Triton, CuTe, TileLang |\n| --- | --- | --- |")
    for outcome, number in sorted(total.items(), key=lambda item: (item[0] != "compiled", -item[1], item[0])):
        print(f"| {outcome} | {number} | {plain[outcome]} |")
    print(f"| **all** | {sum(total.values())} | {sum(plain.values())} |\n\noperators faked: {operators}")


if __name__ == "__main__":
    main()
