#!/usr/bin/env python3
"""Puts installed trees together as a wheel: the program in bin/, everything else below the environment's prefix in the
places that the program knows, and the Python module twinkle_kernels.

    make_wheel.py --version 0.1.0 --output DIR [--level 9] PREFIX…

The first tree gives everything, the others their runtimes and kernels. The platform in the wheel's name is the oldest
manylinux that has all symbols which the binaries ask for; linux_x86_64 where they need a library that no wheel may
rely on. Prints the wheel's path, and on stderr why it has this platform.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import stat
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The newest symbols of each platform (PEP 600, as auditwheel knows them).
PLATFORMS = [("2_28", {"GLIBC": "2.28", "GLIBCXX": "3.4.24", "CXXABI": "1.3.11", "GCC": "7.0.0"}),
             ("2_31", {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12", "GCC": "7.0.0"}),
             ("2_34", {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0"}),
             ("2_36", {"GLIBC": "2.36", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13", "GCC": "12.0.0"}),
             ("2_39", {"GLIBC": "2.39", "GLIBCXX": "3.4.33", "CXXABI": "1.3.15", "GCC": "14.0.0"})]
ON_EVERY_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
                   "libstdc++.so.6", "ld-linux-x86-64.so.2"}
VERSIONED = r"(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)"
OF_TORCH = re.compile(r"lib(c10|torch)\w*\.so")
LEFT_OUT = re.compile(r"share/doc/|lib/libtwinkle-hub\.")  # pages are on the web; a wheel holds no links
TIME = (1980, 1, 1, 0, 0, 0)


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_elf(file: pathlib.Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def dynamic_symbols(file: pathlib.Path, *options: str) -> list[str]:
    listing = subprocess.run(["nm", "-D", "--format=just-symbols", *options, file], check=True, capture_output=True, text=True)
    return listing.stdout.split()


def oldest_versions() -> dict[str, tuple[str, str]]:
    """Of each symbol of this system's C and C++ libraries: the family and number of the oldest version."""
    oldest: dict[str, tuple[str, str]] = {}
    for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
        library = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for symbol in dynamic_symbols(pathlib.Path(library), "--defined-only"):
            if match := re.fullmatch(rf"([^@]+)@+{VERSIONED}", symbol):
                plain, family, version = match.groups()
                if plain not in oldest or number(version) < number(oldest[plain][1]):
                    oldest[plain] = family, version
    return oldest


def newest_symbols(files: list[pathlib.Path]) -> dict[str, tuple[str, pathlib.Path]]:
    """By family of symbol versions: the newest that is asked for, and who asks. What is asked for without a version (it
    was not in the libraries that were linked) counts as the oldest that has it."""
    oldest = oldest_versions()
    found: dict[str, tuple[str, pathlib.Path]] = {}
    for file in files:
        needs = subprocess.run(["readelf", "--version-info", "-W", file], check=True, capture_output=True, text=True).stdout
        versions = re.findall(rf"Name: {VERSIONED}\b", needs)
        versions += [oldest[symbol] for symbol in dynamic_symbols(file, "--undefined-only") if symbol in oldest]
        for family, version in versions:
            if family not in found or number(version) > number(found[family][0]):
                found[family] = version, file
    return found


def foreign_libraries(files: list[pathlib.Path]) -> dict[str, pathlib.Path]:
    """Libraries that are neither everywhere, nor torch's, nor among the files: who needs them."""
    own = {file.name for file in files}
    needed = {}
    for file in files:
        dynamic = subprocess.run(["readelf", "--dynamic", "-W", file], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
            if name not in ON_EVERY_SYSTEM | own and not OF_TORCH.fullmatch(name):
                needed[name] = file
    return needed


def platform_of(files: list[pathlib.Path]) -> str:
    machine = platform.machine()
    foreign = foreign_libraries(files)
    for name, file in foreign.items():
        print(f"{file.name} needs {name}, which not every system has", file=sys.stderr)
    newest = newest_symbols(files)
    for family, (version, file) in sorted(newest.items()):
        print(f"the newest symbols of {family}: {version}, for {file.name}", file=sys.stderr)
    if not foreign:
        for name, limits in PLATFORMS:
            if all(number(version) <= number(limits[family]) for family, (version, _) in newest.items()):
                return f"manylinux_{name}_{machine}"
    return f"linux_{machine}"


def collect(prefixes: list[pathlib.Path]) -> dict[str, pathlib.Path]:
    """Files of the trees by their path below the prefix; only runtimes and kernels of trees after the first."""
    files: dict[str, pathlib.Path] = {}
    for prefix in prefixes:
        for file in sorted(prefix.rglob("*")):
            path = file.relative_to(prefix).as_posix()
            more = path.startswith(("libexec/", "lib/twinkle/kernels/"))
            if file.is_file() and not LEFT_OUT.match(path) and (prefix == prefixes[0] or (more and path not in files)):
                files[path] = file
    return files


def metadata(version: str) -> str:
    readme = (ROOT / "README.md").read_text()
    return "\n".join(["Metadata-Version: 2.1", "Name: twinkle-kernels", f"Version: {version}",
                      "Summary: Optimized kernels for saved TorchScript models, without Python at run time",
                      "License: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.9",
                      "Classifier: Environment :: Console", "Classifier: Operating System :: POSIX :: Linux",
                      "Classifier: Programming Language :: C++", "Classifier: Topic :: Scientific/Engineering",
                      "Description-Content-Type: text/markdown", "", readme])


class Wheel:
    def __init__(self, file: pathlib.Path, level: int) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level)
        self.record: list[str] = []

    def add(self, path: str, content: bytes, executable: bool = False) -> None:
        info = zipfile.ZipInfo(path, TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{path},sha256={digest},{len(content)}")

    def close(self, record: str) -> None:
        self.add(record, "\n".join([*self.record, f"{record},,", ""]).encode())
        self.zip.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--level", type=int, default=9, help="how hard to compress")
    parser.add_argument("prefixes", type=pathlib.Path, nargs="+", metavar="PREFIX")
    arguments = parser.parse_args()

    files = collect(arguments.prefixes)
    tag = f"py3-none-{platform_of([file for file in files.values() if is_elf(file)])}"
    name = f"twinkle_kernels-{arguments.version}"
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"{name}-{tag}.whl"
    unfinished = path.with_suffix(".new")
    wheel = Wheel(unfinished, arguments.level)
    module = (ROOT / "script" / "wheel" / "__init__.py").read_text().replace("@version@", arguments.version)
    wheel.add("twinkle_kernels/__init__.py", module.encode())
    for place, file in files.items():
        kind = "scripts" if place.startswith("bin/") else "data"
        wheel.add(f"{name}.data/{kind}/{place.removeprefix('bin/')}", file.read_bytes(), bool(file.stat().st_mode & stat.S_IXUSR))
    wheel.add(f"{name}.dist-info/METADATA", metadata(arguments.version).encode())
    wheel.add(f"{name}.dist-info/WHEEL",
              f"Wheel-Version: 1.0\nGenerator: twinkle\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{name}.dist-info/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(f"{name}.dist-info/RECORD")
    unfinished.rename(path)
    print(path)


if __name__ == "__main__":
    main()
