#!/usr/bin/env python3
"""Time and memory of `twinkle inspect` for a library of a gigabyte, made here with the system's compiler.

    bench/inspect_bench.py [--program build/release/bin/twinkle] [--mebibytes 1024] [--repeats 3]"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

SOURCE = """
.section .rodata
.incbin "constants"
.section .nv_fatbin, "a"
.incbin "fatbin"
"""
EXPORTS = 20000


def make(folder, mebibytes):
    import struct
    # Half constants, with schemas among them, half GPU code of 64 KiB each.
    constants = (b"norm(Tensor x) -> Tensor\0" + bytes(4071)) * (32 << 8)
    (folder / "constants").write_bytes(constants)
    code = 65536
    entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, code, 0, 0, 8, 1, 90, 0, 0, 0x100011, 0, 0) + bytes(code)
    count = max(1, (mebibytes - 32) * (1 << 20) // len(entry))
    with open(folder / "fatbin", "wb") as file:
        file.write(struct.pack("<IHHQ", 0xba55ed50, 1, 16, count * len(entry)))
        for _ in range(count):
            file.write(entry)
    (folder / "data.s").write_text(SOURCE)
    (folder / "code.c").write_text("".join(f"int exported_function_with_a_long_name_{i}(void) {{ return {i}; }}\n"
                                           for i in range(EXPORTS)))
    subprocess.run(["cc", "-shared", "-fPIC", "-O0", "code.c", "data.s", "-o", "large.so"], cwd=folder, check=True)
    (folder / "fatbin").unlink()
    return folder / "large.so"


def measure(program, library):
    begin = time.perf_counter()
    process = subprocess.Popen([program, "inspect", library, "--json"], stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    assert status == 0
    assert json.loads(out)["archs"] == ["9.0a"]
    return seconds, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/twinkle")
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    program = pathlib.Path(options.program).absolute()
    with tempfile.TemporaryDirectory() as temporary:
        library = make(pathlib.Path(temporary), options.mebibytes)
        print(f"library: {library.stat().st_size >> 20} MiB")
        for _ in range(options.repeats):
            seconds, mebibytes = measure(program, library)
            print(f"{seconds:.2f} s, {mebibytes:.0f} MiB resident")


main()
