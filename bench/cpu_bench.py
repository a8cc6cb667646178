#!/usr/bin/env python3
"""Measures every operator of the bundled pack on this CPU and writes the figures as Markdown.

    cpu_bench.py BUILD_FOLDER [-o bench/results/cpu.md] [--json FILE] [--seconds 0.25] [--community SOURCES]
    cpu_bench.py BUILD_FOLDER --backward yes …                       the gradients instead
    cpu_bench.py --from FILE [-o …]                                  the tables of an earlier run

Runs pack_bench of BUILD_FOLDER (configured with -DTWINKLE_BENCH=ON). SOURCES is a checkout of kernels-community, which
community_build.py builds first where build/community does not have it. What follows is for pack_bench (--op, --dtype,
--tokens). Of an existing -o FILE the introduction stays, and the section of the others.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import machine
from community_build import build as build_community

OPPONENTS = ["torchscript", "frozen", "community"]


# What pack_bench says of each contestant: its shortest time, quartiles and median.
LEAST, LOW, MEDIAN, HIGH = range(4)


class Case:
    def __init__(self, row: dict, shown: int):
        self.row, self.shown = row, shown

    def time(self, name: str) -> float | None:
        return self.row["seconds"][name][self.shown] if name in self.row["seconds"] else None

    def ratio(self, opponent: str, memory: str = "") -> float | None:
        """How many times as fast the pack is."""
        other, pack = self.time(memory + opponent), self.time(memory + "pack")
        return other / pack if other and pack else None

    def clearly_slower(self, opponent: str, memory: str) -> bool:
        """Not even the quartiles overlap."""
        return self.row["seconds"][memory + opponent][HIGH] < self.row["seconds"][memory + "pack"][LOW]

    def title(self) -> str:
        return f"{self.row['dtype']} {self.row['tokens']} × {self.row['width']}"


def number(value: float | None, form: str = ".2f", unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def least_and_median(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.2f}, {statistics.median(known):.2f}" if known else ""


def summary(cases: list[Case]) -> list[str]:
    rows = []
    for op in dict.fromkeys(case.row["op"] for case in cases):
        own = [case for case in cases if case.row["op"] == op]
        large = [case for case in own if case.row["tokens"] == 4096]
        rows.append([op, *(least_and_median([case.ratio(name) for case in own]) for name in OPPONENTS),
                     *(least_and_median([case.ratio(name, "warm ") for case in own]) for name in OPPONENTS),
                     least_and_median([case.ratio("copy") for case in large]),
                     least_and_median([case.ratio("copy", "warm ") for case in large])])
    return table(["operator", *(f"{name} / pack" for name in OPPONENTS), *(f"warm {name} / pack" for name in OPPONENTS),
                  "bandwidth / copy's, 4096 tokens", "warm"], rows)


def slower(cases: list[Case]) -> list[str]:
    rows = []
    for case in cases:
        for memory in ("", "warm "):
            for name in OPPONENTS:
                ratio = case.ratio(name, memory)
                if ratio and ratio < 1:
                    rows.append([case.row["op"], case.title(), memory + name, f"{ratio:.3f}",
                                 "yes" if case.clearly_slower(name, memory) else "no"])
    if not rows:
        return ["None."]
    return table(["operator", "case", "faster than the pack", "its time / pack's", "beyond the quartiles"], rows)


def everything(cases: list[Case]) -> list[str]:
    rows = []
    for case in cases:
        times = [number(seconds and seconds * 1e6, ".1f") for seconds in
                 map(case.time, ["pack", *OPPONENTS, "copy"])]
        rows.append([case.row["op"], case.row["dtype"], str(case.row["tokens"]), str(case.row["width"]), *times,
                     number(case.row["bytes"] / case.time("pack") / 1e9, ".1f"),
                     *(number(case.ratio(name)) for name in OPPONENTS), number(case.ratio("copy")),
                     *(number(case.ratio(name, "warm ")) for name in [*OPPONENTS, "copy"])])
    return table(["op", "dtype", "tokens", "width", "pack", *OPPONENTS, "copy", "GB/s",
                  *(f"{name} / pack" for name in [*OPPONENTS, "copy"]),
                  *(f"warm {name}" for name in [*OPPONENTS, "copy"])], rows)


SECTIONS = ["## Operators", "## Gradients"]


def heading(result: dict) -> str:
    return SECTIONS[any("_backward" in row["op"] for row in result["cases"])]


def with_section(text: str, name: str, section: str) -> str:
    """The text's introduction and the other section, if it has that, and this one."""
    introduction, *parts = re.split(r"(?m)^(?=## )", text)
    sections = {part.split("\n")[0]: part for part in parts} | {name: section}
    known = [sections[one].strip() for one in SECTIONS if one in sections]
    return "\n\n".join([introduction.strip(), *known]) + "\n"


def figures(result: dict) -> str:
    cases = [Case(row, result["shown"]) for row in result["cases"]]
    community = f" kernels-community at {result['community']}." if result.get("community") else ""
    lines = [heading(result), "", f"{result['processor']}, {result['threads']} threads, {result['load']}; LibTorch "
             f"{result['libtorch']}, GCC {result['compiler']}.{community} {len(cases)} cases; "
             f"{'medians' if result['shown'] == MEDIAN else 'shortest times'}.", "",
             "Smallest and median ratio of an operator's cases, above 1 where the pack is faster:", "",
             *summary(cases), "", "### Where the pack is slower", "", *slower(cases), "", "### Every case, µs", "",
             *everything(cases)]
    return "\n".join(lines) + "\n"


def measure(options: argparse.Namespace, more: list[str]) -> dict:
    command = [str(options.build / "bench/pack_bench"), "--seconds", str(options.seconds), *more]
    commit = None
    if options.community:
        library = pathlib.Path("build/community/community.so")
        if not library.exists():
            library.with_suffix(".commit").write_text(
                build_community(options.community, library, pathlib.Path("build/venv/bin/python")) + "\n")
        commit = library.with_suffix(".commit").read_text().strip()
        command += ["--community", str(library)]
    facts = {"processor": machine.processor(), "load": machine.load(), "community": commit}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([*command, "--json", file.name], check=True, stdout=sys.stderr)
        return {**facts, **json.loads(pathlib.Path(file.name).read_text())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default="build/release")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--community", type=pathlib.Path)
    parser.add_argument("--least", action="store_true", help="shortest times: where the machine does other work too")
    options, more = parser.parse_known_args()
    result = json.loads(options.earlier.read_text()) if options.earlier else measure(options, more)
    result["shown"] = LEAST if options.least else MEDIAN
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    text = figures(result)
    if options.output:
        old = options.output.read_text() if options.output.exists() else "# The bundled pack on a CPU\n\n"
        options.output.write_text(with_section(old, heading(result), text))
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
