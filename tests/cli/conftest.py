"""Drives the built program: TWINKLE_BIN names it, or TWINKLE, as script/test sets it (default:
build/release/bin/twinkle)."""

import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("TWINKLE_BIN") or os.environ.get("TWINKLE") or
                       ROOT / "build/release/bin/twinkle").absolute()
COMMANDS = ["init", "add", "remove", "lock", "fetch", "verify", "verify-blob", "resolve", "kernelize", "convert", "run", "bench", "inspect", "check",
            "versions", "info", "tree", "outdated", "cache", "tune", "env", "completions"]

# What a user's environment may say is not part of a test; nor is a test's name, which may be longer than a variable may be.
PRIVATE = ("NO_COLOR", "COLUMNS", "TERM", "TWINKLE_KERNELS", "TWINKLE_LIBEXEC", "TWINKLE_RUNTIME", "HF_HOME", "PYTEST_CURRENT_TEST")


def environment(**changes):
    result = {key: value for key, value in os.environ.items() if key not in PRIVATE}
    result.update({key: str(value) for key, value in changes.items()})
    return result


class Finished:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        """The one JSON object that --json puts on stderr."""
        return json.loads(self.err)["error"]


class Twinkle:
    """Runs the program in a folder of its own."""

    # Whether kernelize measures how much faster a model is, as it does for users: a second or two each time.
    measures = False

    def __init__(self, folder):
        self.folder = folder
        self.env = {}

    def __call__(self, *arguments, env=None, **options):
        if arguments[:1] == ("kernelize",) and "--inputs" in arguments and not self.measures:
            arguments = ("kernelize", "--no-measure", *arguments[1:])
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=60,
                              env=environment(**{**self.env, **(env or {})}), **options)
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments, **options):
        # A background job of a shell, as CI may be, or what nohup runs ignores signals, and hands that on.
        options.setdefault("preexec_fn", lambda: [signal.signal(number, signal.SIG_DFL)
                                                  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
        return subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment(**self.env), **options)

    def on_terminal(self, *arguments, env=None, columns=100):
        """Both outputs on one pseudo-terminal; what it shows, and the exit status."""
        leader, follower = pty.openpty()
        try:
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=follower,
                                       stdout=follower, stderr=follower,
                                       env=environment(**{"TERM": "xterm", **self.env, **(env or {})}))
            os.close(follower)
            shown, deadline = b"", time.monotonic() + 60
            while time.monotonic() < deadline:
                if not select.select([leader], [], [], 1)[0]:
                    continue
                try:
                    block = os.read(leader, 65536)
                except OSError:  # the other side is closed
                    break
                if not block:
                    break
                shown += block
            return Finished(process.wait(timeout=10), shown.decode(), "")
        finally:
            os.close(leader)


@pytest.fixture
def twinkle(tmp_path):
    return Twinkle(tmp_path)


@pytest.fixture
def fake_worker(twinkle, tmp_path):
    """Puts a Python program in the place of the worker. It finds the request in `request`, and says
    things with `event(object)` and `raw(bytes)`."""
    libexec = tmp_path / "libexec"
    folder = libexec / "torch2.13-cpu"
    folder.mkdir(parents=True)
    (folder / "runtime.json").write_text(json.dumps({
        "schema": "twinkle.runtime/1", "torch": "2.13.0", "backend": "cpu", "cxx11": True,
        "torch_lib": str(folder), "worker": "twinkle-worker", "library": "libtwinkle.so"}))
    for library in ("libtwinkle.so", "libtorch.so"):
        (folder / library).write_bytes(b"")
    (tmp_path / "model.pt").write_bytes(b"a model")
    (tmp_path / "inputs.pt").write_bytes(b"inputs")
    (tmp_path / "empty.map.json").write_text(json.dumps({
        "schema": "twinkle.map/1", "target": {}, "kernels": [], "layers": [], "functions": [], "patterns": [],
        "decisions": []}))
    twinkle.env["TWINKLE_LIBEXEC"] = libexec

    def install(program):
        worker = folder / "twinkle-worker"
        worker.write_text("#!/usr/bin/env python3\n"
                          "import hashlib, json, os, signal, sys, time\n"
                          "def identity(file):\n"  # as base/file_identity.cpp says it
                          "    at = os.stat(file)\n"
                          "    times = (f'{ns // 10**9}.{ns % 10**9}' for ns in (at.st_mtime_ns, at.st_ctime_ns))\n"
                          "    return ':'.join([str(at.st_dev), str(at.st_ino), str(at.st_size), *times])\n"
                          "def raw(data):\n"
                          "    while data:\n"
                          "        data = data[os.write(3, data):]\n"
                          "def event(value):\n"
                          "    result = value.get('result')\n"
                          "    if isinstance(result, dict) and request.get('output') and not request.get('dry_run'):\n"
                          "        open(request['output'], 'wb').write(b'PK a model')\n"
                          "        result['written'] = identity(request['output'])\n"
                          "    raw(json.dumps(value).encode() + b'\\n')\n"
                          "request = json.load(sys.stdin)\n" + program)
        worker.chmod(0o755)
        return twinkle

    return install
