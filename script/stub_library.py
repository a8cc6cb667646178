#!/usr/bin/env python3
"""Writes a library to link with instead of another: it has the same name and fewer symbols, and no code. What is linked
with it takes what is left out from a static library.

    stub_library.py LIBRARY OUTPUT [--newest GLIBCXX=3.4.24]…  symbols up to these versions: an older libstdc++
    stub_library.py LIBRARY OUTPUT --without-std               LibTorch exports those of the libstdc++ that it was built with
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

ROW = re.compile(r"^\s*\d+: \w+ +(?P<size>\w+) (?P<type>FUNC|OBJECT|TLS|IFUNC|NOTYPE) +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +"
                 r"(?!UND)\w+ (?P<name>[^@\s]+)(?:@@(?P<version>\S+))?$")
OF_STD = re.compile(r"_Z(T[VIST]|GV|Z)?N?[KVRO]*S[tabsiod]")


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_old(version: str | None, newest: dict[str, str]) -> bool:
    family, _, rest = (version or "").partition("_")
    return family in newest and re.fullmatch(r"[\d.]+", rest) is not None and number(rest) <= number(newest[family])


def symbols(library: pathlib.Path, newest: dict[str, str], without_std: bool) -> list[dict[str, str]]:
    listing = subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    rows = [match.groupdict() for line in listing.splitlines() if (match := ROW.match(line))]
    return [row for row in rows if row["name"] != row["version"]
            and (is_old(row["version"], newest) if newest else not (without_std and OF_STD.match(row["name"])))]


def assembly(rows: list[dict[str, str]]) -> str:
    sections = {"OBJECT": ".data", "TLS": '.section .tbss,"awT",@nobits'}
    types = {"OBJECT": "object", "TLS": "tls_object"}
    lines = []
    for row in rows:
        size = max(int(row["size"], 0), 1) if row["type"] in sections else 1
        lines += [sections.get(row["type"], ".text"), f".globl {row['name']}",
                  f".type {row['name']}, @{types.get(row['type'], 'function')}", f".size {row['name']}, {size}",
                  f"{row['name']}: .zero {size}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def version_script(rows: list[dict[str, str]]) -> str:
    versions: dict[str, list[str]] = {}
    for row in rows:
        if row["version"]:
            versions.setdefault(row["version"], []).append(row["name"])
    return "".join(f"{version} {{ global: {' '.join(name + ';' for name in names)} }};\n"
                   for version, names in sorted(versions.items()))


def soname(library: pathlib.Path) -> str:
    listing = subprocess.run(["readelf", "--dynamic", "-W", library], check=True, capture_output=True, text=True).stdout
    named = re.search(r"\(SONAME\).*\[(.+)\]", listing)
    return named[1] if named else library.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--newest", action="append", default=[], metavar="FAMILY=VERSION")
    parser.add_argument("--without-std", action="store_true")
    arguments = parser.parse_args()
    rows = symbols(arguments.library, dict(word.split("=") for word in arguments.newest), arguments.without_std)
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder, "stub.s"), pathlib.Path(folder, "versions")
        source.write_text(assembly(rows))
        versions.write_text(version_script(rows))
        options = [f"-Wl,--version-script={versions}"] if versions.read_text() else []
        subprocess.run(["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{soname(arguments.library)}", *options, source, "-o",
                        arguments.output], check=True)


if __name__ == "__main__":
    main()
