#!/usr/bin/env python3
"""How far two tunings of one model agree, each with a store of its own, on a quiet machine.

    tuning_agreement.py BUILD_FOLDER [--device cuda] [--model bert]… [--sizes 1,16] [--dtype bfloat16] [--budget 15]
                         [--graphs] [-o OUT.md]

Each model (models.py) is traced and tuned twice (twinkle kernelize --tune). What serves each site's calls of each size that
was measured is compared; what differs is listed with its times in both.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import machine
from contestant import kernelize, table

HERE = pathlib.Path(__file__).resolve().parent
MANIFEST = 'presets = ["transformers", "patterns"{}]\n'


def choices(report: dict) -> dict[tuple[str, int], str | None]:
    """By site and rows: the kernel; None for the original."""
    found = {}
    for site in report["sites"]:
        for rows in {one["rows"] for one in site.get("measured") or []}:
            parts = [part["kernel"] for part in site["by_size"] or [] if part["from"] <= rows <= (part["up_to"] or rows)]
            found[site["site"], rows] = parts[0] if parts else site["kernel"]
    return found


def microseconds(report: dict, site: str, rows: int, kernel: str | None) -> str:
    for one in report["sites"]:
        for time in one.get("measured") or []:
            if (one["site"], time["rows"], time["kernel"]) == (site, rows, kernel):
                return f"{time['us']:.1f}"
    return ""


def tune(options, name: str, folder: pathlib.Path) -> list[dict]:
    subprocess.run([sys.executable, HERE / "models.py", "make", name, options.dtype, folder / "plain.pt", options.device], check=True)
    sizes, manifest = options.sizes, MANIFEST.format("" if options.device != "cpu" else ', "linear"')
    reports = []
    for run in ("first", "second"):
        os.environ["XDG_CACHE_HOME"] = str(folder / f"store-{run}")
        os.sync()  # the model was just written
        reports.append(kernelize(options.build, folder, run, manifest, "--device", options.device, "--no-measure", "--inputs",
                                 f"int64[1,{max(sizes)}]:1..999", "--tune", "--tune-sizes", ",".join(map(str, sizes)),
                                 "--budget", str(options.budget), *(["--graphs"] if options.graphs else [])))
    return reports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", action="append")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--sizes", type=lambda text: [int(one) for one in text.split(",")], default=[1, 16])
    parser.add_argument("--budget", type=float, default=15)
    parser.add_argument("--graphs", action="store_true", help="as CUDA graphs")
    parser.add_argument("--folder", help="for the models")
    options = parser.parse_args()
    rows, others = [], []
    for name in options.model or ["bert"]:
        with tempfile.TemporaryDirectory(prefix="agreement-", dir=options.folder) as folder:
            first, second = tune(options, name, pathlib.Path(folder))
        one, other = choices(first), choices(second)
        shared = one.keys() & other.keys()
        same = sum(one[place] == other[place] for place in shared)
        rows.append([name, str(len(shared)), str(same), f"{same / max(len(shared), 1):.1%}", str(len(one.keys() ^ other.keys()))])
        for place in sorted(shared):
            if one[place] != other[place]:
                cells = [f"{kernel or 'original'}: {microseconds(first, *place, kernel)}, {microseconds(second, *place, kernel)}"
                         for kernel in (one[place], other[place])]
                others.append([name, place[0], str(place[1]), *cells])
        print(f"{name}: {same} of {len(shared)}", file=sys.stderr, flush=True)
    lines = [f"{machine.versions(sys.executable)}; {machine.processor()}, {machine.load()}; {options.dtype}.", ""]
    lines += table(["model", "site and size", "the same choice", "share", "in one run alone"], rows)
    if others:
        lines += ["", *table(["model", "site", "rows", "first run's: us in both", "second run's"], others)]
    text = "\n".join(lines) + "\n"
    options.output.write_text(text) if options.output else print(text)


if __name__ == "__main__":
    main()
