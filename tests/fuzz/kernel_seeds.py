#!/usr/bin/env python3
"""Writes what the fuzzers of the kernel readers start from: kernel_seeds.py FOLDER.

Small libraries are compiled on the spot, GPU code too where there is an nvcc."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

LIBRARY = """
#include <stdio.h>
extern void* PyModule_Create2(void*, int);
const char* const schemas[] = {"norm(Tensor x, float eps=1e-06) -> Tensor", "twinkle::add(Tensor(a!) x) -> ()"};
__attribute__((constructor)) static void begin(void) { puts(schemas[0]); }
void* PyInit_library(void) { return PyModule_Create2((void*)schemas, 1013); }
"""
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] *= 2; } void run(float* x) { k<<<1, 32>>>(x); }"
METADATA = {"id": "_norm_1f", "name": "norm", "version": 1, "license": "MIT", "python-depends": ["einops"],
            "backend": {"type": "cuda", "archs": ["8.0", "9.0a"]}, "kernels-minver": "0.17.0",
            "kernel-depends": [{"repo-id": "a/b", "version": 1}, {"repo-id": "a/c", "revision": "main"}],
            "digest": {"algorithm": "sha256", "files": {"__init__.py": "xLMbARTcTl8L/m1kJLc/h/QL4Kzt772F872a46pfRGI="}},
            "provenance": {"kernel-builder": {"version": "0.1", "commit": "0" * 40, "dirty": True}}}

PACKAGE = {"operator": "norm(Tensor x, Tensor weight, float eps) -> Tensor", "attributes": ["weight", "eps"],
           "constants": {"eps": 1e-06}, "sizes": {"rows": [1, 100]},
           "inputs": [{"dtype": "float32", "sizes": ["rows", 64]}, {"dtype": "float32", "sizes": [64]}]}


def fatbin(*entries):
    body = b"".join(struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, 24, 0, 0, 8, 1, arch, 0, 0, flags, 0, 0) + bytes(24)
                    for kind, arch, flags in entries)
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(body)) + body


def bundle(*targets):
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(targets))
    for target in targets:
        head += struct.pack("<QQQ", 512, 8, len(target)) + target
    return head.ljust(4096, b"\0")


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def libraries(folder):
    with tempfile.TemporaryDirectory() as temporary:
        source = pathlib.Path(temporary, "library.c")
        source.write_text(LIBRARY)
        for name, flags in {"plain": [], "old": ["-Wl,--hash-style=sysv"], "now": ["-Wl,-z,now", "-Wl,-rpath,/opt"],
                            "bare": ["-s", "-nostdlib"]}.items():
            out = pathlib.Path(temporary, name + ".so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", out, *flags], check=True)
            write(folder / "elf", name, out.read_bytes())
        if nvcc := shutil.which("nvcc"):
            kernel = pathlib.Path(temporary, "kernel.cu")
            kernel.write_text(KERNEL)
            out = pathlib.Path(temporary, "kernel.o")
            subprocess.run([nvcc, "-c", "-gencode", "arch=compute_80,code=[sm_80,compute_80]", kernel, "-o", out],
                           check=True)
            write(folder / "elf", "cuda", out.read_bytes())


def main():
    folder = pathlib.Path(sys.argv[1])
    libraries(folder)
    write(folder / "fatbin", "cuda", b"\0" + fatbin((2, 80, 0x11), (2, 90, 0x100011), (1, 120, 0x8011)))
    write(folder / "fatbin", "two", b"\0" + fatbin((2, 75, 0x11)) + bytes(8) + fatbin((8, 100, 0x208011)))
    write(folder / "fatbin", "hip", b"\1" + bundle(b"host-x86_64--", b"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"))
    write(folder / "package", "whole", json.dumps(PACKAGE).encode())
    write(folder / "metadata", "whole", json.dumps(METADATA).encode())
    write(folder / "metadata", "schema", b"ns::norm.out(Tensor(a! -> b) x, *, int[2]? n=[1, 2]) -> (Tensor(b), Tensor)")
    for path in [*ROOT.glob("kernels/*/python/*.py"), *ROOT.glob("tests/models/*.py")]:
        write(folder / "python", path.name, path.read_bytes())
    for number, path in enumerate(sorted([*ROOT.glob("examples/**/*.toml"), *ROOT.glob("kernels/**/*.toml")])):
        write(folder / "toml", f"{number}-{path.name}", path.read_bytes())


main()
