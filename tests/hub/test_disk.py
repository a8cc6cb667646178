"""A disk that becomes full, or read-only, at any moment of a command that writes: exit 1 with a message that names the
file and the reason, every file of the project whole, nothing wrong in the cache, and all well once there is space.

The disk is that of fail_call.c, so that any user can run the tests."""

import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import Machine, all_files
from repository import git_id, kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ("--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1")
NORM, OTHER = "kernels-community/norm", "kernels-community/other"
WHY = {"full": "the disk is full", "read-only": "the file system is read-only"}
NEEDS_NO_SPACE = {("prune", "full"), ("clean", "full")}
POINTS = 10  # moments that are tried, of those at which a command changes a file

COMMANDS = {
    "lock": ("lock",), "fetch": ("fetch", *TARGET), "fetch a kernel": ("fetch", OTHER + "@1", *TARGET),
    "add": ("add", OTHER + "@1"), "remove": ("remove", NORM), "init": ("init", "--project", "new"),
    "resolve": ("resolve", *TARGET, "--output", "map.json"), "bundle": ("resolve", *TARGET, "--bundle", "bundle"),
    "upgrade": ("lock", "--upgrade"), "verify": ("cache", "verify"), "prune": ("cache", "prune"),
    "clean": ("cache", "clean"), "write the lock of kernels": ("lock", "--project", "python")}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    built = tmp_path_factory.mktemp("disk") / "fail_call.so"
    source = pathlib.Path(__file__).with_name("fail_call.c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True)
    return built


@pytest.fixture
def start(hub, machine):
    """What each command begins with: a function that changes the machine, and what the Hub then has."""
    norm, other = hub.add(NORM), hub.add(OTHER)
    norm.commit(kernel("norm", [CPU], files={"a.py": "# a\n" * 50_000}), branch="v1")
    other.commit(kernel("other", [CPU]), branch="v1")
    machine.write("twinkle.toml", f'[kernels]\n"{NORM}" = 1\n')
    (machine.project / "new").mkdir()
    machine.write("python/pyproject.toml", f'[tool.kernels.dependencies]\n"{NORM}" = 1\n')
    machine.write("python/kernels.lock", "[]")

    def ready(command):
        if command != "lock":
            assert (done := machine.twinkle("lock")).code == 0, done
        if command not in ("lock", "fetch"):
            assert (done := machine.twinkle("fetch", *TARGET)).code == 0, done
        if command in ("upgrade", "prune"):
            norm.commit(kernel("norm", [CPU], files={"b.py": "# b\n"}), branch="v1")
        if command == "prune":
            assert (done := machine.twinkle("lock", "--upgrade")).code == 0, done
        blobs = machine.store(NORM) / "blobs"
        if command == "clean":
            for name in ("1" * 40, "2" * 64 + ".0123abcd.incomplete", "3" * 40):
                (blobs / name).write_text("left over")
        if command == "verify":
            for blob in list(blobs.iterdir())[:2]:
                blob.write_bytes(b"x" * blob.stat().st_size)
    return ready


def copy_of(machine, folder, hub) -> Machine:
    copy = Machine(folder, hub.endpoint)
    for name in ("project", "hf", "xdg"):
        if (machine.project.parent / name).exists():
            shutil.copytree(machine.project.parent / name, folder / name, symlinks=True, dirs_exist_ok=True)
    return copy


def run(machine, library, command, mode, first):
    folder = machine.project.parent
    count = folder.with_name(folder.name + ".count")
    env = {"LD_PRELOAD": library, "FAIL_FROM": first, "FAIL_MODE": mode, "FAIL_BELOW": f"{folder}/", "FAIL_COUNT": count}
    if "ASAN_OPTIONS" in os.environ:
        env["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
    done = machine.twinkle("--json", *COMMANDS[command], env=env)
    return done, int(count.read_text())


def project_files(machine, mode="") -> dict[str, bytes]:
    """But for the place of the machine, which a mapping names; and for temporary files where nothing can be removed."""
    place = str(machine.project.parent).encode()
    return {name: content.replace(place, b"") for name, content in all_files(machine.project).items()
            if mode != "read-only" or not (name.endswith(".tmp") or name.startswith(".bundle."))}


def wrong_blobs(machine) -> list[str]:
    wrong = []
    for path in machine.cache.glob("*/blobs/*"):
        content = path.read_bytes()
        right = hashlib.sha256(content).hexdigest() if len(path.name) == 64 else git_id("blob", content)
        if "." not in path.name and path.name != right:
            wrong.append(path.name)
    return wrong


@pytest.mark.parametrize("mode", WHY)
@pytest.mark.parametrize("command", COMMANDS)
def test_disk(hub, machine, start, library, tmp_path, command, mode):
    start(command)
    damaged = set(wrong_blobs(machine))
    before = project_files(machine)
    well = copy_of(machine, tmp_path / "well", hub)
    done, changes = run(well, library, command, mode, 0)
    assert done.code == 0, done
    if changes == 0:
        assert (command, mode) in NEEDS_NO_SPACE
        return
    after = project_files(well)
    failed = 0
    for first in sorted({1 + i * (changes - 1) // (POINTS - 1) for i in range(POINTS)}):
        one = copy_of(machine, tmp_path / str(first), hub)
        done, _ = run(one, library, command, mode, first)
        assert done.code in (0, 1) or (done.code, command) == (4, "verify"), (first, done)
        if done.code:
            failed += 1
            error = done.error
            assert WHY[mode] in error["why"] and error["where"] and error["hint"], (first, done)
            assert "made a mistake" not in done.err and "file operation" not in done.err, (first, done)
        found = project_files(one, mode)
        for name in before.keys() | after.keys() | found.keys():
            whole = name.startswith("bundle/") or found.get(name) in (before.get(name), after.get(name))
            assert whole, (first, name, found.get(name), done)
        assert set(wrong_blobs(one)) <= damaged, (first, done)
        # Where nothing can be taken back, the manifest may be ahead of its lock.
        ahead = mode == "read-only" and command in ("add", "remove") and found["twinkle.toml"] == after["twinkle.toml"]
        assert not (done.code and ahead) or "twinkle lock" in done.error["hint"], (first, done)
        again = one.twinkle(*(("lock",) if ahead else COMMANDS[command]))
        assert again.code == 0, (first, done, again)
        assert project_files(one, mode) == after, (first, done, again)
        shutil.rmtree(tmp_path / str(first))
    assert failed
