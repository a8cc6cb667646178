"""A contestant of a benchmark: a model that a process of its own has loaded, and what is asked about it."""

import contextlib
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import time

SAMPLE_SECONDS, LEAST_ROUNDS = 0.05, 5
# Idle threads of the process that was just asked spin for a while.
PAUSE_SECONDS = 0.02


class Gone(Exception):
    """The process has ended; the text says why."""


def word(name: str) -> str:
    """What a process calls the contestant."""
    return name.replace(" ", "_")


class Runner:
    """A process that answers questions about its contestants: model_runner or peers.py."""

    def __init__(self, command: list, folder: pathlib.Path, stack: contextlib.ExitStack):
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), **os.environ}
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        self.process = stack.enter_context(subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            stderr=stack.enter_context(self.log.open("w"))))
        stack.callback(self.end)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def ask(self, what: str, name: str, size: int = 0, calls: int = 1) -> float:
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{what} {word(name)} {size} {calls}\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            lines = self.log.read_text(errors="replace").strip().splitlines()
            raise Gone(lines[-1][:300] if lines else f"ended with status {self.process.returncode}")
        return float(answer)


def kernelize(build: pathlib.Path, folder: pathlib.Path, name: str, manifest: str, *options: str) -> dict:
    """Writes NAME.pt; returns the report."""
    project = folder / name
    project.mkdir()
    (project / "twinkle.toml").write_text(manifest)
    done = subprocess.run([build / "bin/twinkle", "kernelize", folder / "plain.pt", "-o", folder / f"{name}.pt",
                           "--json", *options], cwd=project, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def replaced(report: dict) -> dict[str, int]:
    """How many sites of each class or pattern."""
    counts: dict[str, int] = {}
    for site in report["sites"]:
        if site["status"] == "replaced":
            name = site["of"].rsplit(".", 1)[-1]
            counts[name] = counts.get(name, 0) + 1
    return counts


def measure(runners: dict[str, Runner], size: int, seconds: float, gone: dict[str, str]) -> dict:
    """Per contestant its samples, first call and error. One whose process ends is left out: `gone` says why."""
    result, calls = {}, {}
    for name, runner in runners.items():
        if name not in gone:
            try:
                first = runner.ask("time", name, size)
                result[name] = {"samples": [], "first": first, "differs": runner.ask("differ", name, size)}
                runner.ask("time", name, size, 2)
                calls[name] = max(1, math.ceil(SAMPLE_SECONDS / runner.ask("time", name, size)))
            except Gone as why:
                gone[name] = str(why)
                result.pop(name, None)
    names = list(result)
    start, turn = time.monotonic(), 0
    while turn < LEAST_ROUNDS or time.monotonic() - start < seconds:
        before = None
        # Nobody always follows the same one: what a GPU may draw depends on what it drew before.
        for name in random.Random(turn).sample(names, len(names)):
            if runners[name] is not before:
                time.sleep(PAUSE_SECONDS)
                if calls[name] > 1:
                    runners[name].ask("time", name, size)  # wakes its threads
            before = runners[name]
            result[name]["samples"].append(runners[name].ask("time", name, size, calls[name]))
        turn += 1
    return result


def measure_loads(start, sizes: list[int], seconds: float, loads: int, gone: dict[str, str]) -> dict[int, dict]:
    """By size as measure() says, in so many sets of processes, one after the other: start(order, stack) loads all contestants.
    Where in memory a model comes to lie makes it up to 8 % slower or faster than the same loaded again, so "medians" has one
    of each load, and typical() their mean."""
    result: dict[int, dict] = {size: {} for size in sizes}
    for load in range(loads):
        with contextlib.ExitStack() as stack:
            runners = start(random.Random(load), stack)
            for size, row in result.items():
                for name, one in measure(runners, size, seconds / loads, gone).items():
                    known = row.setdefault(name, {"medians": [], "first": one["first"], "differs": one["differs"]})
                    known["medians"].append(statistics.median(one["samples"]))
    return result


def typical(one: dict) -> float:
    return statistics.mean(one["medians"])


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]
