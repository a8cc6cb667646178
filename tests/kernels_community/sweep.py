#!/usr/bin/env python3
"""Inspects every kernel of a collection and counts what its layers and functions come to.

The collection is a checkout of kernels-community that the user gives; nothing of it is kept. `twinkle inspect` compiles
what nothing in the source stands against, for types that the source gives, against the schemas in the C++ sources of
the bindings. "source alone" is what it says without LibTorch: no reason was found.

    tests/kernels_community/sweep.py COLLECTION [--build build/release] [--verbose]
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATEGORIES = [
    ("not compiled: schema of an operator not known", r"schema of the operator"),
    ("launches a Triton kernel", r"Triton|triton"),
    ("needs another Python package", r"of another Python package|(einops|transformers|cutlass|tilelang|quack|numpy|"
     r"packaging|cuda\.bindings|os|sys|inspect|warnings|functools|contextlib|itertools|logging)\.?\w* ?.*has no meaning"),
    ("autograd.Function", r"Function\b.*apply|apply of the Python class|autograd"),
    ("builds or uses a Python class", r"Python class|makes an object|does more than ask"),
    ("*args or **kwargs", r"\*\*|\*args|starred"),
    ("syntax without a counterpart", r"has no counterpart|comprehension|walrus|decorator"),
    ("an operator that is not there", r"operator .* is not there|Unknown builtin op"),
    ("no torch function of that name", r"has no meaning in TorchScript"),
    ("a function as a value", r"cannot be used as a value"),
    ("state is changed", r"layers keep no state"),
    ("a module variable that is not fixed", r"depends on what is run|that changes"),
    ("breaks the rules of layers", r"a layer has no members|must be a method|subclass|defines no forward"),
    ("an attribute the host lacks", r"has no attribute|cannot be told"),
]


def category(entry):
    if entry["usable"]:
        return "usable"
    for name, pattern in CATEGORIES:
        if re.search(pattern, entry["because"]):
            return name
    return "types"


def kernels(collection):
    return sorted(folder.parent for folder in collection.glob("*/build.toml"))


def inspected(program, kernel):
    ran = subprocess.run([program, "inspect", kernel, "--json"], capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        return None, ran.stderr.strip()
    return json.loads(ran.stdout), ""


def found_by_compiling(entry):
    """Whether nothing but the compiler has spoken against it."""
    reasons = [reason for reason in entry["reasons"] if reason["certain"]]
    return all(reason["kind"] == "compiling" for reason in reasons)


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("collection", type=pathlib.Path)
    arguments.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    arguments.add_argument("--verbose", action="store_true", help="print every layer and function with its reason")
    options = arguments.parse_args()
    program = options.build / "bin/twinkle"
    counted = {kind: collections.Counter() for kind in ("layers", "functions")}
    alone, operators, looked_at, failed = collections.Counter(), 0, 0, []
    for kernel in kernels(options.collection):
        facts, why = inspected(program, kernel)
        if facts is None:
            failed.append(f"{kernel.name}: {why}")
            continue
        looked_at += 1
        operators += len(facts["operators"])
        for kind, counter in counted.items():
            for entry in facts[kind]:
                counter[category(entry)] += 1
                alone[kind] += found_by_compiling(entry)
                if options.verbose:
                    outcome = f"usable {entry['compiled_for']}" if entry["usable"] else entry["because"]
                    print(f"{kernel.name}: {kind[:-1]} {entry['name']}: {outcome}")
    for line in failed:
        print(line, file=sys.stderr)
    layers, functions = counted["layers"], counted["functions"]
    print("| outcome | layers | functions |\n| --- | --- | --- |")
    for outcome in sorted(layers | functions, key=lambda one: (one != "usable", -layers[one] - functions[one], one)):
        print(f"| {outcome} | {layers[outcome]} | {functions[outcome]} |")
    print(f"| **all** | {layers.total()} | {functions.total()} |")
    print(f"| source alone says usable | {alone['layers']} | {alone['functions']} |")
    print(f"\nkernels: {looked_at}, operators with a schema: {operators}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
