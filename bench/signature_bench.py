#!/usr/bin/env python3
"""Signatures, verified by twinkle and by sigstore-python (what `kernels verify-signature` uses): the same verdicts?
how long?

    bench/signature_bench.py BUILD_FOLDER REFERENCE_PYTHON [--conformance FOLDER] [--rounds N] [-o FILE]

BUILD_FOLDER has bin/twinkle and the tests; REFERENCE_PYTHON is a Python with sigstore and kernels. Times of both are
taken in turns, in the same run. Writes Markdown."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "bench/signature_reference.py"
IDENTITY = ("https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
            "extremely-dangerous-oidc-beacon.yml@refs/heads/main")
ISSUER = "https://token.actions.githubusercontent.com"


def command(twinkle, case):
    def said(name, otherwise):
        return (case / name).read_text().strip() if (case / name).exists() else otherwise

    artifact = case / "artifact" if (case / "artifact").exists() else case.parent / "a.txt"
    line = [twinkle, "verify-blob", artifact, "--bundle", case / "bundle.sigstore.json"]
    if (case / "trusted_root.json").exists():
        line += ["--trusted-root", case / "trusted_root.json"]
    if (case / "key.pub").exists():
        return [*line, "--key", case / "key.pub"]
    return [*line, "--certificate-identity", said("identity", IDENTITY), "--certificate-oidc-issuer",
            said("issuer", ISSUER)]


def timed(line):
    started = time.perf_counter()
    code = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    return code, time.perf_counter() - started


def reference(python, kind, folders):
    done = subprocess.run([python, REFERENCE, kind, *folders], check=True, capture_output=True, text=True)
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


class Comparison:
    """Verdicts of both on some cases, and where they differ."""

    def __init__(self, title):
        self.title, self.cases, self.same, self.explained, self.unexplained = title, 0, 0, [], []

    def add(self, name, ours, theirs, reason):
        self.cases += 1
        if ours == theirs["accepted"]:
            self.same += 1
        else:
            line = f"`{name}`: twinkle {'accepts' if ours else 'refuses'}, the reference does not: "
            (self.explained if reason else self.unexplained).append(line + (reason or str(theirs["why"])))


def compare_blobs(title, folder, twinkle, python):
    comparison = Comparison(title)
    cases = sorted(path for path in folder.iterdir() if path.is_dir())
    theirs = reference(python, "blobs", cases)
    wrong = []
    for case in cases:
        ours = subprocess.run(command(twinkle, case), capture_output=True).returncode == 0
        if ours == case.name.endswith("_fail"):
            wrong.append(case.name)
        reason = (case / "reference_differs").read_text() if (case / "reference_differs").exists() else None
        if (case / "key.pub").exists():
            reason = reason or "it takes no keys"
        comparison.add(case.name, ours, theirs[case.name], reason)
    assert not wrong, f"twinkle is wrong about {wrong}"
    return comparison, theirs


def compare_builds(folder, build, python):
    comparison = Comparison("signed builds of kernels (`kernels.verify.verify_variant`)")
    printed = subprocess.run([build / "tests/signed_builds", folder], check=True, capture_output=True, text=True).stdout
    states = dict(line.split() for line in printed.splitlines())
    theirs = reference(python, "builds", [folder / name for name in states])
    for name, state in states.items():
        comparison.add(name, state == "verified", theirs[name], None)
    return comparison


def times_of(case, twinkle, python, rounds):
    ours, theirs = [], []
    for _ in range(rounds):
        code, seconds = timed(command(twinkle, case))
        assert code == 0
        ours.append(seconds)
        code, seconds = timed([python, REFERENCE, "one", case])
        assert code == 0
        theirs.append(seconds)
    return statistics.median(ours), statistics.median(theirs)


def report(comparisons, rows, rounds, python):
    versions = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('sigstore'), "
                               "m.version('kernels'))"], check=True, capture_output=True, text=True).stdout.split()
    yield "# Signatures against sigstore-python\n"
    yield (f"`bench/signature_bench.py`, against sigstore {versions[0]} as kernels {versions[1]} uses it, "
           "with the same trusted root given to both.\n")
    yield "## Verdicts\n"
    yield "| cases | compared | same | differ, for a known reason | differ |"
    yield "| --- | --- | --- | --- | --- |"
    for one in comparisons:
        yield f"| {one.title} | {one.cases} | {one.same} | {len(one.explained)} | {len(one.unexplained)} |"
    yield ""
    for one in comparisons:
        for line in one.explained + one.unexplained:
            yield f"- {line}"
    yield "\n## Time\n"
    yield (f"One process for one signature, medians of {rounds} rounds in turns; and one verification inside of a "
           f"running Python. {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}.\n")
    yield "| case | twinkle verify-blob | Python process | ratio | inside of Python |"
    yield "| --- | --- | --- | --- | --- |"
    for name, ours, theirs, inside in rows:
        yield f"| {name} | {ours * 1e3:.1f} ms | {theirs * 1e3:.0f} ms | {theirs / ours:.0f}× | {inside * 1e3:.1f} ms |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("python")
    parser.add_argument("--conformance", type=pathlib.Path, default=ROOT.parent / "shared/conformance/sigstore")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    twinkle = build / "bin/twinkle"
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        subprocess.run([build / "tests/sigstore_cases", work / "cases"], check=True)
        generated, inside = compare_blobs("generated signatures", work / "cases", twinkle, options.python)
        comparisons = [generated, compare_builds(work / "builds", build, options.python)]
        timed_cases = [work / "cases/message-v1", work / "cases/message-v2", work / "cases/dsse-v1"]
        if options.conformance.is_dir():
            public, more = compare_blobs("public conformance suite", options.conformance, twinkle, options.python)
            comparisons.insert(0, public)
            timed_cases.append(options.conformance / "happy-path-v0.3-new-mediaType")
            inside |= more
        # The first verification of a process also imports: take each again, in a process that has seen another.
        warm = reference(options.python, "blobs", [*timed_cases, *timed_cases])
        rows = [(case.name, *times_of(case, twinkle, options.python, options.rounds), warm[case.name]["seconds"])
                for case in timed_cases]
    text = "\n".join(report(comparisons, rows, options.rounds, options.python)) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if any(one.unexplained for one in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
