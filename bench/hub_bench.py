#!/usr/bin/env python3
"""twinkle's Hub commands against `kernels` and `huggingface_hub`, with curl, openssl and cp as limits, in one run.

    build/venv/bin/python bench/hub_bench.py [--program build/release/bin/twinkle] [--repeats 5] [-o bench/results/hub.md]
    … --only many --only large          some of the tasks

The Hub is that of tests/hub, in a process of its own on the same machine: its work is part of every time with
requests. Contestants take turns, and each goes first as often as the others. Caches are empty before every fetch, and
written to disk before the next starts. Memory is that of the largest process of a contestant (ru_maxrss); requests are those that the Hub saw.

In FILE, what is above the line "## Measured" stays.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import pathlib
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/hub"))

import peak  # noqa: E402
from repository import File, kernel, metadata  # noqa: E402
from server import Hub  # noqa: E402

MARKER = "## Measured"
LARGE = 1 << 30
MANY = 2000
LINUX = [f"torch{torch}-cxx11-{backend}-x86_64-linux" for torch in ("210", "211", "212", "213")
         for backend in ("cpu", "cu126", "cu130")]
VARIANTS = [*LINUX, "torch-universal"]
TARGET = "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"


# --- the Hub -----------------------------------------------------------------------------------------

def publish(hub: Hub, large: pathlib.Path, sha256: str) -> None:
    def release(name: str, depends=(), versions=(1,)) -> None:
        repository = hub.add(f"acme/{name}")
        for version in versions:
            repository.commit(kernel(name, VARIANTS, version=version, depends=depends), branch=f"v{version}")

    release("activation", versions=(1, 2, 3, 4, 5))
    release("quantization")
    release("norm", [("acme/quantization", 1)])
    release("attention", [("acme/norm", 1), ("acme/activation", 2)])
    release("rotary")
    source = random.Random(1)
    files = {f"part_{i // 100:02}/module_{i:04}.py": source.randbytes(20_000) for i in range(MANY)}
    hub.add("acme/many").commit(kernel("many", files=files, outside=False), branch="v1")
    package = {"__init__.py": b"NAME = 'large'\n"}
    hub.add("acme/large").commit({
        "build/torch-universal/__init__.py": package["__init__.py"],
        "build/torch-universal/metadata.json": metadata("large", package, backend="cpu", digest=False),
        "build/torch-universal/weights.bin": File(large, lfs=True, known_sha256=sha256)}, branch="v1")


def serve(pipe, large: pathlib.Path, sha256: str) -> None:
    """The process of the Hub: answers "forget" and "count"."""
    hub = Hub()
    publish(hub, large, sha256)
    for repository in hub.repositories.values():  # everything that is computed once is computed now
        for commit in repository.commits.values():
            commit.children  # noqa: B018
    pipe.send(hub.endpoint)
    try:
        while (command := pipe.recv()) != "end":
            pipe.send(len(hub.log))
            if command == "forget":
                hub.forget()
    except EOFError:  # the other side gave up
        pass


class Server:
    def __init__(self, large: pathlib.Path, sha256: str) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, large, sha256),
                                                                   daemon=True)
        self.process.start()
        theirs.close()  # its end is then noticed
        self.endpoint = self.pipe.recv()

    def ask(self, command: str) -> int:
        self.pipe.send(command)
        return self.pipe.recv()

    def close(self) -> None:
        self.pipe.send("end")
        self.process.join(5)


# --- contestants -------------------------------------------------------------------------------------

@dataclasses.dataclass
class Run:
    peak: int  # bytes
    processor: float  # seconds of all cores
    seconds: float
    requests: int


@dataclasses.dataclass
class Contestant:
    name: str
    command: list[str]
    fresh: bool = False  # begins with an empty cache
    prepare: Callable[[], None] | None = None
    runs: list[Run] = dataclasses.field(default_factory=list)

    def median(self, what: str) -> float:
        return statistics.median(getattr(run, what) for run in self.runs)


@dataclasses.dataclass
class Task:
    name: str
    title: str
    contestants: list[Contestant]
    note: str = ""


class Bench:
    def __init__(self, folder: pathlib.Path, program: pathlib.Path) -> None:
        self.folder, self.program = folder, program
        self.launcher = peak.build(folder)
        self.large = folder / "weights.bin"
        make_large(self.large)
        digest = subprocess.run(["openssl", "dgst", "-sha256", "-r", self.large], check=True, capture_output=True,
                                text=True)
        self.server = Server(self.large, digest.stdout.split()[0])
        self.project = folder / "project"
        self.warm = folder / "warm"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_ENDPOINT": self.server.endpoint,
                    "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    def twinkle(self, name: str, *arguments: str, **options) -> Contestant:
        return Contestant(name, [str(self.program), *arguments], **options)

    def python(self, name: str, program: str, **options) -> Contestant:
        return Contestant(name, [sys.executable, "-c", program], **options)

    def shell(self, name: str, script: str, **options) -> Contestant:
        return Contestant(name, ["bash", "-euo", "pipefail", "-c", script], **options)

    def kernels(self, name: str, *arguments: str, **options) -> Contestant:
        return self.python(name, f"import sys; sys.argv[1:] = {list(arguments)!r}; "
                                 "from kernels.cli import main; main()", **options)

    def measure(self, contestant: Contestant, keep: bool = True) -> None:
        cache = self.folder / "fresh" if contestant.fresh else self.warm
        if contestant.fresh:
            shutil.rmtree(cache, ignore_errors=True)
        if contestant.prepare:
            contestant.prepare()
        os.sync()
        self.server.ask("forget")
        usage = self.folder / "usage"
        done = subprocess.run([self.launcher, usage, *contestant.command], cwd=self.project, stdin=subprocess.DEVNULL,
                              env={**self.env, "HF_HOME": str(cache)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"{contestant.name}: exit {done.returncode}\n{done.stdout.decode(errors='replace')}")
        if keep:
            contestant.runs.append(Run(**vars(peak.read(usage)), requests=self.server.ask("count")))

    def run(self, task: Task, repeats: int) -> None:
        for contestant in task.contestants:
            self.measure(contestant, keep=False)  # files into the page cache
        for turn in range(repeats):
            count = len(task.contestants)
            for i in range(count):
                self.measure(task.contestants[(turn + i) % count])

    # --- what is measured -----------------------------------------------------------------------------

    def manifest(self, **kernels: int) -> None:
        self.project.mkdir(exist_ok=True)
        for lock in self.project.glob("*.lock"):
            lock.unlink()
        lines = "".join(f'"acme/{name}" = {version}\n' for name, version in kernels.items())
        (self.project / "pyproject.toml").write_text(
            f'[project]\nname = "bench"\nversion = "1"\n\n[tool.kernels.dependencies]\n{lines}')

    def locked(self, **kernels: int) -> None:
        self.manifest(**kernels)
        self.measure(self.twinkle("lock", "lock"), keep=False)

    def warmed(self, *options: str, **kernels: int) -> None:
        self.locked(**kernels)
        self.measure(self.twinkle("fetch", "fetch", "--locked", "--target", TARGET, *options), keep=False)

    def start(self) -> Task:
        self.manifest(activation=1)
        return Task("start", "Start: `--help`", [
            self.twinkle("twinkle", "--help"), self.kernels("kernels", "--help")])

    def versions(self) -> Task:
        self.manifest(activation=1)
        return Task("versions", f"`versions` of a repository with 5 versions of {len(VARIANTS)} variants", [
            self.twinkle("twinkle versions", "versions", "acme/activation", "--target", TARGET),
            self.kernels("kernels versions", "versions", "acme/activation")])

    def resolve(self) -> Task:
        self.warmed(activation=2, attention=1, rotary=1)
        return Task("resolve", "Warm: everything is in the cache", [
            self.twinkle("twinkle resolve", "resolve", "--target", TARGET, "-o", str(self.folder / "map.json")),
            self.twinkle("twinkle fetch --locked", "fetch", "--locked", "--target", TARGET),
            self.python("kernels get_kernel", "from kernels import get_kernel; get_kernel('acme/rotary', version=1)"),
            self.python("kernels load_kernel", "from pathlib import Path; from kernels import load_kernel; "
                                               "load_kernel('acme/rotary', lockfile=Path('kernels.lock'))", prepare=self.without_trees),
            self.kernels("kernels download", "download", ".")],
            "`get_kernel` and `load_kernel` answer for one kernel, the others for all of the project.")

    def without_trees(self) -> None:
        """What `kernels download` remembers of a commit makes its own `load_kernel` fail: it misses other variants."""
        for tree in self.warm.glob("hub/*/trees/*.json"):
            tree.unlink()

    def lock(self) -> Task:
        self.manifest(activation=2, attention=1, rotary=1)
        return Task("lock", f"`lock`: 3 kernels with dependencies, 5 repositories of {len(VARIANTS)} variants", [
            self.twinkle("twinkle lock", "lock", fresh=True, prepare=self.without_locks),
            self.kernels("kernels lock", "lock", ".", fresh=True, prepare=self.without_locks)],
            "twinkle's lock has the hash of every file of every variant, that of kernels the commits.")

    def without_locks(self) -> None:
        for lock in self.project.glob("*.lock"):
            lock.unlink()

    def many(self) -> Task:
        self.locked(many=1)
        target = self.folder / "curl"
        config = self.folder / "curl.config"
        folder = f"{self.server.endpoint}/kernels/acme/many/resolve/v1/build/torch-universal"
        config.write_text("".join(
            f'url = "{folder}/part_{i // 100:02}/module_{i:04}.py"\noutput = "{target}/{i}.py"\n' for i in range(MANY)))

        def empty() -> None:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
        source = self.folder / "source"
        source.mkdir(exist_ok=True)
        for i in range(MANY):
            (source / f"{i}.py").write_bytes(os.urandom(20_000))
        return Task("many", f"Fetch of {MANY:,} files of 20 kB", [
            self.twinkle("twinkle fetch", "fetch", "--locked", "--target", TARGET, fresh=True),
            self.kernels("kernels download", "download", ".", fresh=True),
            self.python("snapshot_download", "from huggingface_hub import snapshot_download; snapshot_download("
                        "'acme/many', repo_type='kernel', revision='v1')", fresh=True),
            self.shell("curl --parallel", f"curl -s --parallel --parallel-max 16 -K {config}", prepare=empty),
            self.shell("cp -r", f"cp -r {source} {target}", prepare=empty)])

    def one(self) -> Task:
        self.locked(large=1)
        url = f"{self.server.endpoint}/kernels/acme/large/resolve/v1/build/torch-universal/weights.bin"
        output = self.folder / "curl.bin"

        def empty() -> None:
            output.unlink(missing_ok=True)
        return Task("one", "Fetch of one file of 1 GiB", [
            self.twinkle("twinkle fetch", "fetch", "--locked", "--target", TARGET, fresh=True),
            self.kernels("kernels download", "download", ".", fresh=True),
            self.shell("curl", f"curl -sSfL -o {output} {url}", prepare=empty),
            self.shell("curl, then openssl dgst", f"curl -sSfL -o {output} {url} && openssl dgst -sha256 {output}",
                       prepare=empty),
            self.shell("curl into tee and openssl dgst", f"curl -sSfL {url} | tee {output} | openssl dgst -sha256",
                       prepare=empty),
            self.shell("curl into openssl dgst, nothing kept", f"curl -sSfL {url} | openssl dgst -sha256")],
            "kernels and plain curl do not look at the hash; twinkle does.")

    def verify(self) -> Task:
        self.warmed(large=1)
        return Task("verify", "Verify of 1 GiB", [
            self.twinkle("twinkle verify", "--offline", "verify"),
            self.twinkle("twinkle cache verify", "cache", "verify"),
            self.python("verify_repo_checksums", "from huggingface_hub import HfApi; HfApi().verify_repo_checksums("
                        "'acme/large', repo_type='kernel', revision='v1')"),
            self.shell("openssl dgst", f"openssl dgst -sha256 {self.large}")])

    def close(self) -> None:
        self.server.close()


def make_large(path: pathlib.Path) -> None:
    source = random.Random(2)
    with open(path, "wb") as file:
        for _ in range(LARGE >> 20):
            file.write(source.randbytes(1 << 20))


# --- the report --------------------------------------------------------------------------------------

def table(task: Task) -> str:
    first = task.contestants[0].median("seconds")
    lines = [f"### {task.title}", "", "| | time | spread | processor time | peak memory | requests | of the first |",
             "|---|---|---|---|---|---|---|"]
    for contestant in task.contestants:
        times = [run.seconds for run in contestant.runs]
        lines.append(f"| {contestant.name} | {seconds(statistics.median(times))} | {seconds(min(times))} to "
                     f"{seconds(max(times))} | {seconds(contestant.median('processor'))} | "
                     f"{contestant.median('peak') / (1 << 20):.0f} MiB | {contestant.median('requests'):.0f} | "
                     f"{statistics.median(times) / first:.2f} |")
    return "\n".join(lines) + "\n" + (f"\n{task.note}\n" if task.note else "")


def seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def facts(program: pathlib.Path) -> str:
    def first_line(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]
    import importlib.metadata as packages
    model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return (f"{os.cpu_count()} cores ({model}), Linux {platform.release()}, load {os.getloadavg()[0]:.1f} at the start; "
            f"{first_line(str(program), '--version')}; Python {platform.python_version()}, kernels "
            f"{packages.version('kernels')}, huggingface_hub {packages.version('huggingface_hub')}; "
            f"{' '.join(first_line('curl', '--version').split()[:2])}, {first_line('openssl', 'version')}.")


TASKS = {"start": 1, "versions": 1, "resolve": 1, "lock": 1, "many": 1, "one": 0.6, "verify": 0.6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/twinkle")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=TASKS, default=[])
    parser.add_argument("--folder", type=pathlib.Path, help="on which disk: default the one of temporary files")
    parser.add_argument("--json", type=pathlib.Path, help="all runs, for other programs")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="twinkle-bench-", dir=arguments.folder))
    parts, runs = [facts(arguments.program), ""], {}
    try:
        bench = Bench(folder, arguments.program.resolve())
        for name, share in TASKS.items():
            if arguments.only and name not in arguments.only:
                continue
            task = getattr(bench, name)()
            bench.run(task, max(1, round(arguments.repeats * share)))
            parts.append(table(task))
            runs[name] = {c.name: [dataclasses.asdict(run) for run in c.runs] for c in task.contestants}
            print(parts[-1], flush=True)
        bench.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(runs, indent=1))
    if arguments.output:
        above = arguments.output.read_text().partition(MARKER)[0] if arguments.output.exists() else "# The Hub\n\n"
        arguments.output.write_text(f"{above}{MARKER}\n" + "\n".join(parts))


if __name__ == "__main__":
    main()
