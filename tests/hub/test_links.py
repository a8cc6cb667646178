"""Symbolic links that somebody put into the cache: fetch writes nothing through them, and verify, clean and prune remove
nothing behind them. The folder of the cache itself may be a link."""

import os
import shutil

import pytest
from conftest import all_files
from repository import kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ["--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"]
NORM = "kernels-community/norm"
FETCH = ["fetch", NORM + "@1", *TARGET]
STORE = "kernels--kernels-community--norm"
# Below the cache; "COMMIT" is that of the build in the cache.
FOLDERS = [STORE, STORE + "/blobs", STORE + "/refs", STORE + "/snapshots", STORE + "/snapshots/COMMIT",
           STORE + "/snapshots/COMMIT/build", STORE + f"/snapshots/COMMIT/build/{CPU}", STORE + "/trees", ".locks",
           ".locks/" + STORE]


@pytest.fixture
def norm(hub, machine, tmp_path):
    """In the cache; the Hub has another commit of the same version. Commands run in a folder without a project; one
    project needs no kernel, so that prune removes everything."""
    norm = hub.add(NORM)
    norm.cached = norm.commit(kernel("norm", [CPU]), branch="v1").id
    machine.projects, machine.project = machine.project, tmp_path / "elsewhere"
    machine.project.mkdir()
    assert (done := machine.twinkle(*FETCH)).code == 0, done
    norm.newer = norm.commit(kernel("norm", [CPU], files={"layers.py": "# newer\n"}), branch="v1").id
    (machine.projects / "twinkle.toml").write_text("[kernels]\n")
    assert (done := machine.twinkle("--project", machine.projects, "lock")).code == 0, done
    return norm


def put_link(machine, norm, place: str, tmp_path):
    """What was there moves out of the cache, with what a careless clean-up would remove; a link takes its place."""
    planted = machine.cache / place.replace("COMMIT", norm.cached)
    outside = tmp_path / "outside"
    planted.mkdir(exist_ok=True)
    shutil.move(planted, outside)
    if outside.is_dir():
        for name in ("b" * 40, "c" * 64, "d" * 40 + ".0123abcd.incomplete", "old.tmp", "notes.txt"):
            (outside / name).write_text("of somebody else: " + name)
            os.utime(outside / name, (0, 0))
        for name in ("e" * 40, "folder"):
            (outside / name).mkdir()
            (outside / name / "file").write_text("of somebody else")
        (outside / "dangling").symlink_to("nowhere")
    planted.symlink_to(outside)
    return planted, outside


def contents(outside):
    if outside.is_file():
        return outside.read_bytes(), outside.stat().st_mtime_ns
    links = {str(path): os.readlink(path) for path in outside.rglob("*") if path.is_symlink()}
    files = {name: text for name, text in all_files(outside).items()}
    return links, files, sorted(str(path) for path in outside.rglob("*"))


def remedy(machine, *arguments):
    done = machine.twinkle(*arguments)
    return done.code, " ".join(done.err.split())


@pytest.mark.parametrize("command", ["fetch", "verify", "clean", "prune", "list"])
@pytest.mark.parametrize("place", FOLDERS)
def test_a_link_in_the_place_of_a_folder(norm, machine, tmp_path, place, command):
    planted, outside = put_link(machine, norm, place, tmp_path)
    before = contents(outside)
    if command == "fetch":
        done = machine.twinkle(*FETCH)
    elif command == "prune":
        done = machine.twinkle("cache", "prune", machine.projects)
    else:
        done = machine.twinkle("cache", command)
    assert contents(outside) == before, done
    said = " ".join(done.err.split())
    in_snapshot = "COMMIT/" in place
    if command == "fetch":  # the newer commit needs nothing of the old snapshot; a stored list can be asked for again
        if place.endswith("trees") or "COMMIT" in place:
            assert done.code == 0, done
        else:
            assert done.code == 6 and "refused to follow a symbolic link" in said and planted.name in said, done
            assert "remove the link" in said, done
    elif command == "prune" and place.startswith(".locks"):  # no blob is removed without its lock
        assert done.code == 6 and planted.name in said, done
    elif command == "verify":
        assert done.code == 4 and planted.name in said, done
    else:
        assert done.code == 0 and (in_snapshot or planted.name in said), done
    if command != "prune" and not (command == "verify" and in_snapshot):
        assert planted.is_symlink(), done
    if planted.is_symlink():
        planted.unlink()
    assert (done := machine.twinkle(*FETCH)).code == 0, done
    assert (machine.snapshot(NORM, norm.newer) / "build" / CPU / "layers.py").read_text() == "# newer\n"
    assert contents(outside) == before


@pytest.mark.parametrize("place", ["", "build", f"build/{CPU}"])
def test_fetch_writes_no_file_into_a_linked_snapshot(norm, machine, tmp_path, place):
    planted = machine.snapshot(NORM, norm.newer) / place
    outside = tmp_path / "outside"
    outside.mkdir()
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(outside)
    done = machine.twinkle(*FETCH)
    assert done.code == 6 and str(planted.name) in done.err, done
    assert not list(outside.iterdir())


@pytest.mark.parametrize("there", [True, False])
def test_a_ref_that_is_a_link(norm, machine, tmp_path, there):
    """It is replaced, and what it led to stays as it is."""
    ref = machine.store(NORM) / "refs/v1"
    outside = tmp_path / "outside"
    if there:
        outside.write_text("of somebody else")
    ref.unlink()
    ref.symlink_to(outside)
    for action in ("verify", "clean", "list"):
        assert (done := machine.twinkle("cache", action)).code == 0, done
    assert (done := machine.twinkle(*FETCH)).code == 0, done
    assert not ref.is_symlink() and ref.read_text() == norm.newer
    assert (outside.read_text() == "of somebody else") if there else not outside.exists()


def test_a_ref_that_leads_to_a_commit_is_not_believed(norm, machine, tmp_path):
    ref = machine.store(NORM) / "refs/v1"
    outside = tmp_path / "outside"
    shutil.move(ref, outside)
    ref.symlink_to(outside)
    done = machine.twinkle("--offline", *FETCH)
    assert done.code in (3, 5), done


def test_a_list_of_files_that_is_a_link(norm, machine, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("of somebody else")
    planted = machine.store(NORM) / "trees" / f"{norm.newer}.json"
    planted.parent.mkdir(exist_ok=True)
    planted.symlink_to(outside)
    assert (done := machine.twinkle(*FETCH)).code == 0, done
    assert outside.read_text() == "of somebody else"


TARGETS = {"absolute": "{outside}", "out of the cache": "../../../../../../../outside",
           "another repository": "../../../../../kernels--org--other/blobs/{etag}",
           "a snapshot": "../../../" + "a" * 40 + "/file", "no blob": "../../../../blobs/notes.txt",
           "the same file, by an absolute path": "{blob}", "itself": "layers.py"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_file_of_a_snapshot_that_leads_elsewhere(norm, machine, tmp_path, target):
    """Named as damaged, hashed or not, and replaced; what it led to stays."""
    file = machine.snapshot(NORM, norm.cached) / "build" / CPU / "layers.py"
    right = file.read_bytes()
    blob = file.resolve()
    other = machine.cache / "kernels--org--other/blobs" / blob.name
    outside = tmp_path / "outside"
    notes = machine.store(NORM) / "blobs/notes.txt"
    for path in (other, outside, notes):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(right)
    file.unlink()
    file.symlink_to(TARGETS[target].format(outside=outside, etag=blob.name, blob=blob))
    code, said = remedy(machine, "cache", "verify", "--dry-run")
    assert code == 4 and "layers.py: it links to" in said, said
    assert "not into the blobs of its repository" in said
    assert (done := machine.twinkle("cache", "verify")).code == 0, done
    assert file.read_bytes() == right and os.readlink(file).startswith("../../../../blobs/")
    for path in (other, outside, notes, blob):
        assert path.read_bytes() == right
    assert (done := machine.twinkle("cache", "verify", "--dry-run")).code == 0, done


def test_a_blob_that_is_a_link(norm, machine, tmp_path):
    """Only the blobs that repositories share may be linked to."""
    blob = (machine.snapshot(NORM, norm.cached) / "build" / CPU / "layers.py").resolve()
    outside = tmp_path / "outside"
    shutil.move(blob, outside)
    right = outside.read_bytes()
    blob.symlink_to(outside)
    code, said = remedy(machine, "cache", "verify", "--dry-run")
    assert code == 4 and "a link that leads to no blob" in said, said
    assert (done := machine.twinkle("cache", "verify")).code == 0, done
    assert not blob.is_symlink() and blob.read_bytes() == right == outside.read_bytes()


def test_a_lock_that_is_a_link(norm, machine, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("of somebody else")
    for file in (machine.cache / ".locks" / STORE).iterdir():
        file.unlink()
    etag = norm.commits[norm.newer].files[f"build/{CPU}/layers.py"].etag
    (machine.cache / ".locks" / STORE / f"{etag}.lock").symlink_to(outside)
    done = machine.twinkle(*FETCH)
    assert done.code == 6 and "symbolic link" in done.err, done
    assert outside.read_text() == "of somebody else"


def test_the_cache_itself_may_be_a_link(norm, machine, tmp_path):
    elsewhere = tmp_path / "large disk" / "hub"
    elsewhere.parent.mkdir()
    shutil.move(machine.cache, elsewhere)
    machine.cache.symlink_to(elsewhere)
    assert (done := machine.twinkle(*FETCH)).code == 0, done
    for action in ("verify", "clean", "list"):
        assert (done := machine.twinkle("cache", action)).code == 0, done
    assert (done := machine.twinkle("cache", "prune", machine.projects)).code == 0, done
    assert not (elsewhere / STORE).exists()


def test_files_instead_of_links_are_read(norm, machine):
    """As the Python tools leave them where there are no links (HF_HUB_DISABLE_SYMLINKS)."""
    folder = machine.snapshot(NORM, norm.cached)
    for path in [path for path in folder.rglob("*") if path.is_symlink()]:
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    assert (done := machine.twinkle("cache", "verify")).code == 0, done
    done = machine.twinkle("--offline", "fetch", NORM + "@" + norm.cached, *TARGET)
    assert done.code == 0, done
