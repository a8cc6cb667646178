"""A Hub of our own, the built program (TWINKLE_BIN; default build/release/bin/twinkle) and the Python clients, all of
them with the same cache and an environment that says nothing else."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from server import Hub  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("TWINKLE_BIN") or os.environ.get("TWINKLE") or
                       ROOT / "build/release/bin/twinkle").absolute()
TOKEN = "hf_" + "sEcReT" * 6  # opens nothing but repositories of these tests

KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS")


def environment(**changes) -> dict[str, str]:
    result = {key: os.environ[key] for key in KEPT if key in os.environ}
    result.update({key: str(value) for key, value in changes.items() if value is not None})
    return result


class Finished:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self) -> dict:
        """The JSON object that --json puts on stderr, after warnings."""
        return json.loads(self.err[("\n" + self.err).rindex("\n{") :])["error"]


def all_files(folder: pathlib.Path) -> dict[str, bytes]:
    """Path → content of everything under a folder, links followed."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Machine:
    """One user on one machine: a project folder, a cache, and the programs that use them."""

    def __init__(self, folder: pathlib.Path, endpoint: str):
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.home = folder / "hf"
        self.env = {"HF_ENDPOINT": endpoint, "HF_HOME": self.home, "XDG_CACHE_HOME": folder / "xdg",
                    "HOME": folder, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    @property
    def cache(self) -> pathlib.Path:
        return pathlib.Path(self.env.get("KERNELS_CACHE") or self.env.get("HF_HUB_CACHE") or self.home / "hub")

    def store(self, repository: str) -> pathlib.Path:
        return self.cache / f"kernels--{repository.replace('/', '--')}"

    def snapshot(self, repository: str, commit: str) -> pathlib.Path:
        return self.store(repository) / "snapshots" / commit

    def run(self, command: list, env: dict | None = None, timeout: float = 60, **options) -> Finished:
        options.setdefault("cwd", self.project)
        done = subprocess.run([str(word) for word in command], capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env=environment(**{**self.env, **(env or {})}), **options)
        return Finished(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def twinkle(self, *arguments, **options) -> Finished:
        return self.run([PROGRAM, *arguments], **options)

    def start(self, *arguments, env: dict | None = None, **options) -> subprocess.Popen:
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        # A background job of a shell, as CI may be, ignores interrupts, and hands that on.
        options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        return subprocess.Popen([str(PROGRAM), *map(str, arguments)], cwd=self.project, stdin=subprocess.DEVNULL,
                                env=environment(**{**self.env, **(env or {})}), **options)

    def kernels(self, *arguments, then: str = "", **options) -> Finished:
        """The reference's program; several commands, separated by "+", and more Python run in one process, since it
        takes long to start."""
        program = ("import sys\nfrom kernels.cli import main\nwords = sys.argv[1:] + ['+']\nwhile words:\n"
                   "    end = words.index('+')\n    sys.argv[1:], words = words[:end], words[end + 1:]\n    main()\n")
        return self.run([sys.executable, "-c", program + then, *arguments], **options)

    def python(self, program: str, **options) -> Finished:
        return self.run([sys.executable, "-c", program], **options)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.close()


@pytest.fixture
def machine(tmp_path, hub):
    return Machine(tmp_path / "machine", hub.endpoint)


@pytest.fixture
def other_machine(tmp_path, hub):
    """With a cache of its own."""
    return Machine(tmp_path / "other", hub.endpoint)
