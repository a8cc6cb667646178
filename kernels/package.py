#!/usr/bin/env python3
"""Puts a kernel build together in the Hub's layout: sources, library, metadata.json with digest.

    package.py --python DIR [--for-torch FILE] --library FILE --id NAMESPACE [--backend cuda --archs 9.0 12.0+PTX]
               --output build/VARIANT
"""

import argparse
import base64
import hashlib
import json
import pathlib
import shutil
from collections.abc import Sequence

OPS = '''import pathlib

import torch

torch.ops.load_library(pathlib.Path(__file__).parent / "{library}")
ops = torch.ops.{id}


def add_op_namespace_prefix(op_name: str) -> str:
    """The full name of an operator of this build."""
    return f"{id}::{{op_name}}"
'''


def digest_of(folder: pathlib.Path) -> dict:
    files = {}
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        path = file.relative_to(folder).as_posix()
        if path == "metadata.json" or path.endswith(".pyc"):
            continue
        files[path] = base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
    return {"algorithm": "sha256", "files": files}


def with_own_functions(source: pathlib.Path) -> str:
    """A file that is written for PyTorch's functions, with the package's own instead."""
    text = source.read_text()
    found = text.count("\nfrom torch.nn.functional import ")
    if found != 1:
        raise SystemExit(f"{source} imports {found} times from torch.nn.functional, not once")
    return text.replace("\nfrom torch.nn.functional import ", "\nfrom .attention import ")


def put_together(output: pathlib.Path, python: pathlib.Path, library: pathlib.Path, metadata: dict,
                 for_torch: Sequence[pathlib.Path] = ()) -> None:
    """A build in the Hub's layout: the Python files of a folder, the library, and the digest beside the metadata."""
    # Made aside and moved into place: a build is never seen half-written, nothing stale stays.
    scratch = output.with_name(output.name + ".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for source in sorted([*python.glob("*.py"), *python.glob("tuning.toml")]):
        shutil.copyfile(source, scratch / source.name)
    for source in for_torch:
        (scratch / source.name).write_text(with_own_functions(source))
    shutil.copyfile(library, scratch / library.name)
    (scratch / "_ops.py").write_text(OPS.format(library=library.name, id=metadata["id"]))
    (scratch / "metadata.json").write_text(json.dumps(metadata | {"digest": digest_of(scratch)}, indent=2) + "\n")
    shutil.rmtree(output, ignore_errors=True)
    scratch.rename(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, required=True, help="the package's Python files")
    parser.add_argument("--for-torch", type=pathlib.Path, action="append", default=[],
                        help="a further one that imports functions from torch.nn.functional: here attention.py has them")
    parser.add_argument("--library", type=pathlib.Path, required=True, help="the library of operators")
    parser.add_argument("--id", required=True, help="the namespace of its operators")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--archs", nargs="*", default=[], help="the GPUs that the library has code for")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    put_together(arguments.output, arguments.python, arguments.library, {
        "id": arguments.id,
        "name": "twinkle-pack",
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": arguments.backend} | ({"archs": arguments.archs} if arguments.archs else {}),
    }, arguments.for_torch)


if __name__ == "__main__":
    main()
