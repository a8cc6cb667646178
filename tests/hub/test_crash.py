"""Ends that nobody wished for: kill -9 at any moment, many processes at once, a full disk, a cache that cannot be written
to, file systems without links or locks. Afterwards everything is complete, correct, and came once.

TWINKLE_CRASHES says how many moments are tried (100 for the record; fewer in the daily run)."""

import contextlib
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import faults
import pytest
from conftest import PROGRAM, Machine, all_files, environment
from repository import Commit, kernel
from server import Hub

CRASHES = int(os.environ.get("TWINKLE_CRASHES", "8"))
PROCESSES = 32
FETCH = ("fetch", "--locked", "--all-variants")


@pytest.fixture(scope="module")
def contents():
    source = random.Random(5)
    files = {f"file_{i:03}.py": source.randbytes(20_000) for i in range(60)}
    files.update({f"library_{i}.so": source.randbytes(size) for i, size in enumerate((300_000, 5 << 20, 40 << 20))})
    files["copy_of_library_0.so"] = files["library_0.so"]  # two files, one blob
    return kernel("norm", ["torch-universal"], files=files)


@pytest.fixture
def commit(hub, contents, machine) -> Commit:
    """Published, and locked on the machine: nothing is left to ask but for the files."""
    made = hub.add("acme/norm").commit(contents, branch="v1")
    lock(machine)
    hub.forget()
    return made


def lock(machine: Machine) -> None:
    machine.write("twinkle.toml", '[kernels]\n"acme/norm" = 1\n')
    done = machine.twinkle("lock")
    assert done.code == 0, done


def blob_sizes(commit: Commit) -> dict[str, int]:
    return {file.etag: file.size for path, file in commit.files.items() if path.startswith("build/")}


def complete(machine: Machine, commit: Commit) -> None:
    """The snapshot is right, the ref is there, and nothing else was left."""
    expected = {path: file.content for path, file in commit.files.items() if path.startswith("build/")}
    found = all_files(machine.snapshot("acme/norm", commit.id))
    assert {path: found.get(path) == content for path, content in expected.items()} == dict.fromkeys(expected, True)
    assert set(found) <= set(commit.files)
    assert (machine.store("acme/norm") / "refs/v1").read_text() == commit.id
    assert litter(machine, commit) == []


def litter(machine: Machine, commit: Commit) -> list[str]:
    """Everything in the cache that has no business there after a success."""
    store = machine.store("acme/norm").name
    hexes = {file.etag for file in commit.files.values()}
    allowed = re.compile(rf"CACHEDIR\.TAG|\.locks(/{store}(/[0-9a-f]+\.lock)?)?|{store}(/(blobs|refs|trees|snapshots|"
                         rf"\.no_exist)(/.*)?)?")
    wrong = []
    for path in machine.cache.rglob("*"):
        name = str(path.relative_to(machine.cache))
        if not allowed.fullmatch(name):
            wrong.append(name)
        elif path.parent.name == "blobs" and path.name not in hexes:
            wrong.append(name)
        elif re.search(r"incomplete|\.tmp|~$", path.name) or (path.is_symlink() and not path.exists()):
            wrong.append(name)
    return wrong


def finished_blobs(machine: Machine) -> set[str]:
    return {path.name for path in (machine.store("acme/norm") / "blobs").glob("*") if "." not in path.name}


def nothing_wrong_is_visible(machine: Machine, commit: Commit) -> None:
    for path, content in all_files(machine.store("acme/norm") / "snapshots").items():
        assert content == commit.files[path.partition("/")[2]].content, path


@pytest.mark.parametrize("moment", range(CRASHES))
def test_kill(hub, machine, commit, moment):
    """Killed up to three times at random moments; then it runs to the end."""
    chance = random.Random(f"{os.environ.get('TWINKLE_SEED', '0')} {moment}")
    # Slow enough that there are moments: about half a second.
    hub.fault("*/repos/*", faults.trickle(256 << 10, 0.004), host="files")
    hub.fault("/kernels/*.py", faults.trickle(20_000, 0.02))
    for _ in range(chance.randint(1, 3)):
        process = machine.start(*FETCH, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(0.005, 0.5))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        nothing_wrong_is_visible(machine, commit)
    finished, partial = finished_blobs(machine), on_disk(machine)
    hub.heal()
    hub.settle()
    hub.forget()
    done = machine.twinkle(*FETCH)
    assert done.code == 0, done
    complete(machine, commit)
    served, sizes = hub.served(), blob_sizes(commit)
    assert not finished & set(served)
    assert set(served) <= set(sizes)
    for etag, size in served.items():
        # Of the large ones, what had arrived is not asked for again (but for the last buffers).
        assert size <= sizes[etag] and size <= sizes[etag] - partial.get(etag, 0) + (2 << 20), (etag, partial)


def on_disk(machine: Machine) -> dict[str, int]:
    """Bytes that a killed process had received of each blob: blocks of the file, since segments are sparse."""
    found: dict[str, int] = {}
    for path in (machine.store("acme/norm") / "blobs").glob("*.incomplete"):
        etag = path.name.partition(".")[0]
        with contextlib.suppress(FileNotFoundError):  # it has just become a blob
            found[etag] = max(found.get(etag, 0), path.stat().st_blocks * 512)
    return found


def test_interrupt(hub, machine, commit):
    """Ctrl-C: exit 130, and what was fetched is kept."""
    hub.fault("*/repos/*", faults.trickle(64 << 10, 0.005), host="files")
    process = machine.start(*FETCH)
    deadline = time.monotonic() + 20
    while not any(size > 1 << 20 for size in on_disk(machine).values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    kept = sum(on_disk(machine).values()) + sum(blob_sizes(commit)[etag] for etag in finished_blobs(machine))
    assert kept > 1 << 20
    hub.heal()
    hub.settle()
    hub.forget()
    assert machine.twinkle(*FETCH).code == 0
    complete(machine, commit)
    assert sum(hub.served().values()) <= sum(blob_sizes(commit).values()) - kept + (2 << 20)


def at_once(hub: Hub, machine: Machine, commit: Commit, env: dict | None = None) -> None:
    running = [machine.start(*FETCH, env=env, stdout=subprocess.DEVNULL) for _ in range(PROCESSES)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
    assert hub.served() == blob_sizes(commit)


def test_many_at_once(hub, machine, commit):
    at_once(hub, machine, commit)
    complete(machine, commit)


def test_many_at_once_without_links(hub, machine, commit):
    at_once(hub, machine, commit, {"HF_HUB_DISABLE_SYMLINKS": "1"})
    complete(machine, commit)
    snapshot = machine.snapshot("acme/norm", commit.id)
    assert not [path for path in snapshot.rglob("*") if path.is_symlink()]


NO_FLOCK = r"""
#include <errno.h>
int flock(int descriptor, int operation) {
    (void)descriptor;
    (void)operation;
    errno = ENOLCK;
    return -1;
}
"""


@pytest.fixture(scope="session")
def no_flock(tmp_path_factory) -> pathlib.Path:
    """A library that makes flock(2) fail as it does on a network file system."""
    folder = tmp_path_factory.mktemp("no_flock")
    (folder / "no_flock.c").write_text(NO_FLOCK)
    library = folder / "no_flock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, folder / "no_flock.c"], check=True)
    return library


def test_many_at_once_without_flock(hub, machine, commit, no_flock):
    at_once(hub, machine, commit, {"LD_PRELOAD": no_flock})
    complete(machine, commit)


def test_killed_without_flock(hub, machine, commit, no_flock):
    """A lock that nobody holds any more is not waited for."""
    hub.fault("*/repos/*", faults.trickle(64 << 10, 0.005), host="files")
    process = machine.start(*FETCH, env={"LD_PRELOAD": no_flock}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not on_disk(machine) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    hub.heal()
    done = machine.twinkle(*FETCH, env={"LD_PRELOAD": no_flock})
    assert done.code == 0, done
    complete(machine, commit)


def test_a_cache_of_the_newer_layout(hub, machine, commit):
    """blobs/<etag> are themselves links into a store that repositories share: followed, and left as they are."""
    assert machine.twinkle(*FETCH).code == 0
    store = machine.cache / "blobs"
    store.mkdir()
    (store / ".huggingface-shared-blobs").write_text("1")
    for blob in (machine.store("acme/norm") / "blobs").iterdir():
        if len(blob.name) == 64:
            shared = store / blob.name[:2] / blob.name[::-1]
            shared.parent.mkdir(exist_ok=True)
            blob.rename(shared)
            blob.symlink_to(os.path.relpath(shared, blob.parent))
    shutil.rmtree(machine.store("acme/norm") / "snapshots")
    hub.forget()
    done = machine.twinkle(*FETCH)
    assert done.code == 0, done
    assert hub.served() == {}
    found = all_files(machine.snapshot("acme/norm", commit.id))
    assert all(found[path] == file.content for path, file in commit.files.items() if path.startswith("build/"))
    assert (done := machine.twinkle("cache", "list", "--json")).code == 0, done
    assert "acme/norm" in done.out
    before = all_files(store)
    assert (done := machine.twinkle("cache", "clean")).code == 0, done
    assert all_files(store) == before
    assert (done := machine.twinkle("cache", "verify")).code == 0, done


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, size: str):
    """A tmpfs, where this process may mount one."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(hub, machine, commit):
    with small_disk(machine.home, "8m") as small:
        options = {} if small else {"preexec_fn": limit_files}
        done = machine.twinkle("--json", *FETCH, **options)
        assert done.code == 1, done
        assert re.search("disk is full|too large", done.error["why"]), done
        assert "hf/hub/kernels--acme--norm" in done.error["where"], done
        nothing_wrong_is_visible(machine, commit)
        if small:
            subprocess.run(["mount", "-o", "remount,size=200m", machine.home], check=True)
        done = machine.twinkle(*FETCH)
        assert done.code == 0, done
        complete(machine, commit)


def limit_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))


@pytest.fixture
def plain_user():
    """A folder that somebody without privileges may enter, and what runs a command as such a user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="twinkle-"))
    folder.chmod(0o755)
    yield folder, ({"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {})
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
    shutil.rmtree(folder)


def test_cache_that_is_only_read(hub, plain_user, commit):
    folder, user = plain_user
    program = folder / "twinkle"  # the build may lie where that user cannot go
    shutil.copy(PROGRAM, program)
    machine = Machine(folder / "machine", hub.endpoint)
    lock(machine)
    assert machine.twinkle(*FETCH).code == 0
    subprocess.run(["chmod", "-R", "a+rX,a-w", folder], check=True)

    def as_user(*arguments, env=None):
        return subprocess.run([program, *arguments], cwd=machine.project, capture_output=True, text=True, timeout=60,
                              env=environment(**{**machine.env, **(env or {})}), **user)

    hub.forget()
    done = as_user(*FETCH)
    assert done.returncode == 0, done
    assert hub.served() == {}
    assert as_user("--offline", *FETCH).returncode == 0
    # More than it has: it says what cannot be written.
    hub.add("acme/other").commit(kernel("other"), branch="v1")
    done = as_user("--json", "fetch", "acme/other@1", "--all-variants")
    assert done.returncode == 1, done
    assert "hf/hub/kernels--acme--other" in done.stderr and "permission denied" in done.stderr
