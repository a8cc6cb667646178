"""Two users and one cache. As root both are real; otherwise the cache loses its write permission, as it looks to another
user."""

import contextlib
import os
import pathlib
import shutil
import stat
import tempfile

import pytest
from conftest import PROGRAM, Machine, all_files
from repository import kernel

NORM = "kernels-community/norm"
FETCH = ("fetch", NORM + "@1", "--all-variants")
FIRST, SECOND, GROUP = 65533, 65534, 65532


REAL = os.getuid() == 0


@pytest.fixture
def place():
    """A folder that other users can reach, unlike those of pytest."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="twinkle-users-"))
    folder.chmod(0o755)
    yield folder
    writable(folder)
    shutil.rmtree(folder)


def writable(folder: pathlib.Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o700 if path.is_dir() else 0o600))


class Users:
    """Two machines' users with homes of their own; the cache is one folder, which the first has made."""

    def __init__(self, place: pathlib.Path, endpoint: str, shared: bool):
        self.cache = place / "cache"
        self.cache.mkdir()
        self.shared = shared
        # A copy: others may not reach the folder that it was built in.
        self.program = shutil.copy(PROGRAM, place / "twinkle")
        self.machines = []
        for uid in (FIRST, SECOND):
            machine = Machine(place / str(uid), endpoint)
            machine.env["KERNELS_CACHE"] = self.cache
            if REAL:
                for path in [place / str(uid), *(place / str(uid)).rglob("*")]:
                    os.chown(path, uid, uid)
            self.machines.append(machine)
        if REAL:
            os.chown(self.cache, FIRST, GROUP)
        self.cache.chmod(0o2775 if shared else 0o755)

    def run(self, which: int, *arguments):
        uid = (FIRST, SECOND)[which]
        options: dict = {"umask": 0o002 if self.shared else 0o022}
        if REAL:
            options |= {"user": uid, "group": uid, "extra_groups": [GROUP]}
        with self.without_right() if which == 1 and not REAL and not self.shared else contextlib.nullcontext():
            return self.machines[which].run([self.program, *arguments], **options)

    @contextlib.contextmanager
    def without_right(self):
        """What another user's files are like."""
        kept = {path: path.stat().st_mode for path in [self.cache, *self.cache.rglob("*")] if not path.is_symlink()}
        for path, mode in kept.items():
            path.chmod(stat.S_IMODE(mode) & ~0o222)
        try:
            yield
        finally:
            for path, mode in kept.items():
                path.chmod(stat.S_IMODE(mode))


@pytest.fixture
def norm(hub):
    norm = hub.add(NORM)
    norm.commit(kernel("norm", files={"a.py": "# a\n" * 1000}), branch="v1")
    return norm


def contents(cache: pathlib.Path):
    return all_files(cache)


def test_what_another_user_has_fetched_is_used(hub, norm, place):
    users = Users(place, hub.endpoint, shared=False)
    assert (done := users.run(0, *FETCH)).code == 0, done
    before = contents(users.cache)
    hub.forget()
    assert (done := users.run(1, *FETCH)).code == 0, done
    assert hub.served() == {}
    for command in (("--offline", *FETCH), ("cache", "list"), ("cache", "verify"), ("cache", "verify", "--dry-run"),
                    ("cache", "clean")):
        assert (done := users.run(1, *command)).code == 0, done
    assert contents(users.cache) == before


def test_what_cannot_be_written_is_said(hub, norm, place):
    users = Users(place, hub.endpoint, shared=False)
    assert (done := users.run(0, *FETCH)).code == 0, done
    norm.commit(kernel("norm", files={"b.py": "# b\n"}), branch="v1")
    before = contents(users.cache)
    done = users.run(1, *FETCH)
    assert done.code == 1 and "cannot write to the cache" in done.err and "permission denied" in done.err, done
    assert "KERNELS_CACHE=FOLDER" in " ".join(done.err.split()), done
    users.machines[1].write("twinkle.toml", "[kernels]\n")
    if REAL:
        os.chown(users.machines[1].project / "twinkle.toml", SECOND, SECOND)
    assert (done := users.run(1, "lock")).code == 0, done
    done = users.run(1, "cache", "prune")
    assert done.code == 1 and "permission denied" in done.err, done
    assert contents(users.cache) == before
    # A cache of their own.
    users.machines[1].env["KERNELS_CACHE"] = users.machines[1].project / "cache"
    assert (done := users.run(1, *FETCH)).code == 0, done


def test_damage_in_the_cache_of_another_user_is_named(hub, norm, place):
    users = Users(place, hub.endpoint, shared=False)
    assert (done := users.run(0, *FETCH)).code == 0, done
    blob = next(path for path in (users.cache / "kernels--kernels-community--norm/blobs").iterdir())
    blob.write_bytes(b"x" * blob.stat().st_size)
    done = users.run(1, "cache", "verify")
    assert done.code in (1, 4) and (blob.name in done.err or "its hash is" in done.err), done
    assert blob.exists()
    assert (done := users.run(0, "cache", "verify")).code == 0, done


def test_a_group_shares_a_cache(hub, norm, place):
    """With a group's folder and umask 002, each goes on with what the other has begun."""
    users = Users(place, hub.endpoint, shared=True)
    for which, line in ((0, "a"), (1, "b"), (0, "c"), (1, "d")):
        commit = norm.commit(kernel("norm", files={"a.py": f"# {line}\n" * 1000}), branch="v1")
        assert (done := users.run(which, *FETCH)).code == 0, done
        store = users.cache / "kernels--kernels-community--norm"
        assert (store / "refs/v1").read_text() == commit.id
        assert (store / "snapshots" / commit.id / "build/torch-universal/a.py").read_text().startswith(f"# {line}")
    for path in [users.cache, *users.cache.rglob("*")]:
        if REAL and not path.is_symlink():
            mode = path.stat().st_mode
            assert mode & stat.S_IWGRP and path.stat().st_gid == GROUP, (path, oct(mode))
    etag = commit.files["build/torch-universal/a.py"].etag
    (store / "blobs" / etag).unlink()
    part = store / "blobs" / f"{etag}.0123abcd.incomplete"
    part.write_bytes(commit.files["build/torch-universal/a.py"].content[:2000])
    part.chmod(0o664)
    if REAL:
        os.chown(part, SECOND, GROUP)
    hub.forget()
    assert (done := users.run(0, *FETCH)).code == 0, done
    assert hub.served()[etag] == len(commit.files["build/torch-universal/a.py"].content) - 2000
    assert (done := users.run(1, "cache", "verify")).code == 0, done
