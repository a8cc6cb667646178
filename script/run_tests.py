#!/usr/bin/env python3
"""Runs everything that ctest knows and the pytest suites of tests/, and counts: one line for each part, then the names
of what failed, and 'N passed, N failed' at the end. script/test builds first and then calls this."""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIME_LIMIT = 3600  # seconds for one part: tests/cli takes 16 minutes on two cores, twice that on slow ones
LARGEST = "cli"  # the folder of tests that takes longer than all others together


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = 0
        self.failures: list[str] = []  # a line each
        self.lock = threading.Lock()

    def part(self, name: str, passed: int, failed: int, seconds: float, failures: list[str] = ()) -> None:
        with self.lock:
            self.passed += passed
            self.failed += failed
            self.failures += failures or [name] * bool(failed)
            state = "ok" if not failed else "FAILED"
            print(f"{name:<24} {passed:>5} passed {failed:>4} failed {seconds:>7.1f} s  {state}", flush=True)

    def summary(self) -> str:
        return "\n".join([*(f"FAILED {line}" for line in self.failures), f"{self.passed} passed, {self.failed} failed"])


def run(command: list[str], live: bool = False, **options) -> int:
    """The exit status. Unless it is live, what the command prints comes in one piece once it has ended, as another part
    may run beside it."""
    with tempfile.TemporaryFile() as said:
        if not live:
            options.update(stdout=said, stderr=subprocess.STDOUT)
        try:
            code = subprocess.run(command, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL, **options).returncode
        except subprocess.TimeoutExpired:
            code = 124
        said.seek(0)
        late = f"{command[0]}: no end after {TIME_LIMIT} s\n" if code == 124 else ""
        print(said.read().decode(errors="replace") + late, end="", flush=True)
    return code


def ctest_cases(build: pathlib.Path) -> list[tuple[str, list[str], dict]]:
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                             check=True, capture_output=True, text=True).stdout
    cases = []
    for test in json.loads(listing)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        if "command" not in test:  # the program was not built
            cases.append((test["name"], [], properties))
        else:
            cases.append((test["name"], test["command"], properties))
    return cases


def catch_counts(report: pathlib.Path) -> tuple[int, int, list[str]] | None:
    """Test cases passed and failed, and the names of these, from the XML of Catch2 2 or 3; None when it did not get to
    the end."""
    try:
        root = ElementTree.parse(report).getroot()
        cases = root.find("OverallResultsCases")
        if cases is None:
            return None
        names = [case.get("name", "?") for case in root.iter("TestCase")
                 if (result := case.find("OverallResult")) is not None and result.get("success") == "false"]
        return int(cases.get("successes")) + int(cases.get("expectedFailures", 0)), int(cases.get("failures")), names
    except (ElementTree.ParseError, OSError, TypeError):
        return None


def run_ctest(name: str, command: list[str], properties: dict, build: pathlib.Path, tally: Tally) -> None:
    started = time.monotonic()
    environment = {**os.environ, **dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))}
    options = {"env": environment, "cwd": properties.get("WORKING_DIRECTORY", str(build))}
    if not command:
        tally.part(name, 0, 1, 0)
    elif command[0].endswith("_tests"):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.xml")
            code = run([*command, "-r", "xml", "-o", str(report)], **options)
            counts = catch_counts(report)
        if counts is None or code != 0:
            run([*command, "-r", "compact"], **options)  # again, for a person
        passed, failed, names = counts or (0, 1, [])
        tally.part(name, passed, failed or int(code != 0), time.monotonic() - started,
                   [f"{name}: {case}" for case in names])
    elif "pytest" in command:
        passed, failed, failures = pytest_counts(command, **options)
        tally.part(name, passed, failed, time.monotonic() - started, failures)
    else:
        code = run(command, **options)
        tally.part(name, int(code == 0), int(code != 0), time.monotonic() - started)


def failure(case: ElementTree.Element) -> str | None:
    """A line about a case of pytest that failed."""
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            why = (found.get("message") or found.text or "").split("\n", 1)[0][:300]
            return f"{case.get('classname')}::{case.get('name', '')[:200]}: {why}"
    return None


def pytest_counts(command: list[str], live: bool = False, **options) -> tuple[int, int, list[str]]:
    """Runs a pytest command; cases passed and failed (at least one where pytest itself failed), a line about each of these."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch, "report.xml")
        code = run([*command, f"--junitxml={report}"], live, **options)
        try:
            root = ElementTree.parse(report).getroot()
        except (ElementTree.ParseError, OSError):
            root = ElementTree.Element("testsuites")
    suites = list(root.iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(key)) for suite in suites) for key in ("tests", "failures", "errors", "skipped"))
    if skipped:
        print(f"{' '.join(command)}: {skipped} skipped", file=sys.stderr)
    failed = failures + errors
    lines = [line for case in root.iter("testcase") if (line := failure(case))]
    return max(tests - skipped - failed, 0), failed or int(code not in (0, 5)), lines  # 5: nothing was selected


def pytest_folders() -> list[pathlib.Path]:
    return sorted({file.parent for file in (ROOT / "tests").rglob("test_*.py")})


def run_pytest(build: pathlib.Path, tally: Tally, arguments: list[str], folder: pathlib.Path, at_once: int,
               live: bool = False) -> None:
    # Files beside each other; those of a file share what they make.
    beside = ["-n", str(at_once), "--dist", "loadfile"] if at_once > 1 and importlib.util.find_spec("xdist") else []
    name = str(folder.relative_to(ROOT))
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *beside, *arguments, str(folder)]
    passed, failed, failures = pytest_counts(command, live, cwd=ROOT, env={
        **os.environ, "TWINKLE_BUILD_DIR": str(build), "TWINKLE_BIN": str(build / "bin" / "twinkle")})
    tally.part(name, passed, failed, time.monotonic() - started, failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="What follows -- is for pytest.")
    parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--check", action="append", default=[], metavar="SCRIPT",
                        help="a program to run as one more part: it passes or fails")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    arguments, for_pytest = parser.parse_args(words[:end]), words[end + 1 :]

    # Programs run beside each other: threads that spin while they wait take the others' time.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    tally = Tally()
    folders, cores = pytest_folders(), min(os.cpu_count() or 1, 4)
    largest = [folder for folder in folders if folder.name == LARGEST]
    others = [folder for folder in folders if folder.name != LARGEST]
    # Most parts use one core. The long ones come first: tests/hub, and the last that ctest knows.
    with concurrent.futures.ThreadPoolExecutor(max(cores, 2)) as pool:
        parts = [pool.submit(run_pytest, arguments.build, tally, for_pytest, folder, max(cores // 2, 1)) for folder in others]
        parts += [pool.submit(run_ctest, *case, arguments.build, tally) for case in reversed(ctest_cases(arguments.build))]
        for part in parts:
            part.result()
    for folder in largest:
        run_pytest(arguments.build, tally, ["--durations=20", *for_pytest], folder, cores, live=True)
    for check in arguments.check:
        started = time.monotonic()
        code = run(check.split(), live=True)
        tally.part(" ".join(pathlib.Path(word).name for word in check.split()), int(code == 0), int(code != 0),
                   time.monotonic() - started)
    print(tally.summary())
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
