#!/usr/bin/env python3
"""How many layers and functions of many kernels are usable without Python, and why the others are not.

    bench/kernel_figures.py FOLDER [--program build/release/bin/twinkle] [--list]

FOLDER holds source projects, packages or builds, one folder each, such as a checkout of
https://github.com/huggingface/kernels-community. Nothing of them is run or built."""

import argparse
import collections
import json
import pathlib
import subprocess


def kernels(folder):
    for path in sorted(folder.iterdir()):
        if any((path / name).exists() for name in ("build.toml", "build", "metadata.json", "__init__.py")):
            yield path


def inspect(program, path):
    done = subprocess.run([program, "inspect", path, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, json.loads(done.stderr)["error"]
    return json.loads(done.stdout), None


class Count:
    def __init__(self):
        self.verdicts, self.reasons = collections.Counter(), collections.Counter()

    def add(self, entry):
        self.verdicts[entry["verdict"]] += 1
        if not entry["usable"]:
            # A layer may break a rule and still compile: what keeps it from compiling is said first.
            kinds = [reason["kind"] for reason in entry["reasons"] if reason["certain"]]
            self.reasons[next((kind for kind in kinds if kind != "rule"), "rule")] += 1

    def text(self):
        total = sum(self.verdicts.values())
        usable = total - self.verdicts["needs-python"]
        reasons = ", ".join(f"{kind} {count}" for kind, count in self.reasons.most_common())
        return f"{total}, usable {usable}; the others: {reasons or 'none'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/bin/twinkle")
    parser.add_argument("--list", action="store_true", help="every layer and function with its verdict")
    options = parser.parse_args()
    layers, functions, read, failed = Count(), Count(), 0, []
    for path in kernels(options.folder):
        facts, error = inspect(options.program, path)
        if facts is None:
            failed.append(f"{path.name}: {error['what']}: {error['why']}")
            continue
        read += 1
        for kind, count in (("layers", layers), ("functions", functions)):
            for entry in facts[kind]:
                count.add(entry)
                if options.list:
                    print(f"{path.name}\t{kind[:-1]}\t{entry['name']}\t{entry['because']}")
    print(f"kernels: {read} read, {len(failed)} not")
    print(f"layers: {layers.text()}")
    print(f"functions: {functions.text()}")
    for line in failed:
        print(f"not read: {line}")


main()
