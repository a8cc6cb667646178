"""What a user does in a day: lock, look, upgrade, add, remove, clean up."""

import os
import pty
import re
import select
import shutil
import subprocess

import faults
import pytest
from conftest import PROGRAM, Machine, all_files, environment
from repository import Repository, kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
CUDA = "torch213-cxx11-cu130-x86_64-linux"
OLD = "torch29-cxx11-cpu-x86_64-linux"
TARGET = ("--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1")
GPU = ("--target", "torch=2.13,backend=cu130,arch=9.0,cpu=x86_64,os=linux,cxx11=1")
MANIFEST = """# Our kernels.
[kernels]
"acme/norm" = 1  # the first
"acme/gelu" = ">=0.1,<0.3"
"""


@pytest.fixture
def repositories(hub) -> dict[str, Repository]:
    made = {name: hub.add(f"acme/{name}") for name in ("norm", "base", "gelu", "other")}
    made["base"].commit(kernel("base", [CPU, CUDA]), branch="v1")
    made["norm"].commit(kernel("norm", [CPU, CUDA, OLD], depends=[("acme/base", 1)]), branch="v1")
    made["norm"].commit(kernel("norm", [CPU, CUDA], version=2), branch="v2")
    for i in (1, 2, 3):
        made["gelu"].commit(kernel("gelu", [CPU, CUDA], files={"release.py": f"RELEASE = {i}\n"}), tag=f"v0.{i}.0")
    made["other"].commit(kernel("other", [CPU]), branch="v1")
    return made


@pytest.fixture
def project(hub, repositories, machine) -> Machine:
    machine.write("twinkle.toml", MANIFEST)
    ok(machine.twinkle("lock"))
    hub.forget()
    return machine


def ok(done, code: int = 0):
    assert done.code == code, done
    return done


def test_versions(repositories, machine):
    first = ok(machine.twinkle("--json", "versions", "acme/norm", *TARGET))
    listed = {version["version"]: version for version in first.json["versions"]}
    assert {number: version["commit"] for number, version in listed.items()} == {
        1: repositories["norm"].branches["v1"], 2: repositories["norm"].branches["v2"]}
    chosen = [variant["name"] for variant in listed[1]["variants"] if variant["preferred"]]
    assert chosen == [CPU]
    assert all(variant["accepted"] or variant["reason"] for variant in listed[1]["variants"])
    for _ in range(3):
        assert machine.twinkle("--json", "versions", "acme/norm", *TARGET).out == first.out
    ok(machine.twinkle("versions", "acme/norm", "--target", "torch=2.5,backend=cpu,cpu=x86_64,os=linux,cxx11=1"), 3)


def test_a_local_copy_takes_the_place_of_the_hub(hub, repositories, machine):
    for path, content in kernel("norm", [OLD], version=9).items():
        (machine.project / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.project / "copy" / path).write_bytes(content)
    machine.env["LOCAL_KERNELS"] = "acme/norm=copy"
    asked = len(hub.log)
    target = ("--target", TARGET[1].replace("2.13", "2.9"))
    versions = ok(machine.twinkle("--json", "versions", "acme/norm", *target)).json
    (version,) = versions["versions"]
    assert (version["version"], [one["name"] for one in version["variants"]]) == (None, [OLD])
    info = ok(machine.twinkle("--json", "info", "acme/norm@1")).json
    assert (info["path"], info["metadata_version"]) == (str(machine.project / "copy"), 9)
    inspected = ok(machine.twinkle("--json", "inspect", "acme/norm", *target)).json
    assert inspected["variant"] == OLD and not inspected["without_libraries"]
    for answer in (versions, info, inspected):
        assert any("acme/norm is taken from copy (LOCAL_KERNELS)" in text for text in answer["warnings"])
    assert len(hub.log) == asked
    assert ok(machine.twinkle("--json", "versions", "acme/base", *TARGET)).json["versions"][0]["version"] == 1


def test_a_newer_version_would_fit(hub, repositories, machine):
    hub.add("acme/late").commit(kernel("late", [OLD]), branch="v1")
    hub.repositories["acme/late"].commit(kernel("late", [CPU], version=2), branch="v2")
    done = ok(machine.twinkle("--json", "fetch", "acme/late@1", *TARGET), 3)
    assert re.search(r"version 2|@2|v2", str(done.error)), done


def test_what_the_lock_decides_is_not_asked(hub, project):
    ok(project.twinkle("lock", "--check"))
    assert hub.log == []
    ok(project.twinkle("fetch", "--locked", *TARGET))
    assert hub.requests("/api/kernels/*") == []
    hub.forget()
    ok(project.twinkle("fetch", "--locked", *TARGET))
    ok(project.twinkle("verify"))
    ok(project.twinkle("tree"))
    assert hub.log == []


def test_a_lock_elsewhere_leaves_the_locks_of_the_project_alone(project):
    own = (project.project / "twinkle.lock").read_bytes()
    project.write("kernels.lock", "[]")
    ok(project.twinkle("lock", "--lockfile", "other/mine.lock"), 1)  # no such folder
    ok(project.twinkle("lock", "--lockfile", "mine.lock"))
    assert (project.project / "mine.lock").read_bytes() == own
    assert (project.project / "kernels.lock").read_text() == "[]"
    ok(project.twinkle("lock", "--check", "--lockfile", "mine.lock"))
    # The Python tools read no other format there.
    done = ok(project.twinkle("lock", "--lockfile", "kernels.lock"), 2)
    assert "kernels.lock" in done.err and (project.project / "kernels.lock").read_text() == "[]"


def test_fetch_for_several_targets(project, repositories):
    ok(project.twinkle("fetch", "--locked", *TARGET, *GPU))
    snapshot = project.snapshot("acme/norm", repositories["norm"].branches["v1"])
    assert {path.name for path in (snapshot / "build").iterdir()} == {CPU, CUDA}
    base = project.snapshot("acme/base", repositories["base"].branches["v1"])
    assert {path.name for path in (base / "build").iterdir()} == {CPU, CUDA}


def test_nothing_locked(repositories, machine):
    machine.write("twinkle.toml", MANIFEST)
    ok(machine.twinkle("fetch", "--locked", *TARGET), 7)
    done = ok(machine.twinkle("fetch", *TARGET))
    assert "lock" in done.err
    assert not (machine.project / "twinkle.lock").exists()


def test_specifier_takes_the_newest_release_that_fits(project, repositories):
    lock = (project.project / "twinkle.lock").read_text()
    assert repositories["gelu"].tags["v0.2.0"] in lock
    ok(project.twinkle("fetch", "--locked", *TARGET))
    snapshot = project.snapshot("acme/gelu", repositories["gelu"].tags["v0.2.0"])
    assert (snapshot / "build" / CPU / "release.py").read_text() == "RELEASE = 2\n"


def test_upgrade(hub, project, repositories):
    before = (project.project / "twinkle.lock").read_text()
    old = {name: repositories[name].branches["v1"] for name in ("norm", "base")}
    for name in old:
        repositories[name].commit(kernel(name, [CPU], files={"more.py": "MORE = 1\n"}), branch="v1")
    ok(project.twinkle("lock", "--check"))
    ok(project.twinkle("lock"))
    assert (project.project / "twinkle.lock").read_text() == before
    listed = ok(project.twinkle("--json", "outdated", *TARGET)).json["outdated"]
    found = {entry["kernel"].partition("@")[0]: entry for entry in listed}
    assert found["acme/norm"]["locked_commit"] == old["norm"]
    assert found["acme/norm"]["current_commit"] == repositories["norm"].branches["v1"]
    assert found["acme/norm"]["newest_version"] == 2
    ok(project.twinkle("lock", "--upgrade", "acme/norm"))
    after = (project.project / "twinkle.lock").read_text()
    assert repositories["norm"].branches["v1"] in after
    ok(project.twinkle("lock", "--upgrade"))
    assert old["norm"] not in (project.project / "twinkle.lock").read_text()


def test_add_and_remove(project, repositories):
    ok(project.twinkle("add", "acme/other@1"))
    text = (project.project / "twinkle.toml").read_text()
    assert '"acme/other" = 1' in text and text.startswith(MANIFEST.rstrip("\n"))
    assert repositories["other"].branches["v1"] in (project.project / "twinkle.lock").read_text()
    ok(project.twinkle("lock", "--check"))
    ok(project.twinkle("remove", "acme/other"))
    assert (project.project / "twinkle.toml").read_text() == MANIFEST
    ok(project.twinkle("lock", "--check"))
    done = project.twinkle("add", "acme/missing@1")
    assert done.code == 3, done
    assert (project.project / "twinkle.toml").read_text() == MANIFEST


def test_tree_and_info(project, repositories):
    kernels = ok(project.twinkle("--json", "tree")).json["kernels"]
    norm = next(node for node in kernels if node["kernel"].startswith("acme/norm"))
    assert [child["kernel"] for child in norm["dependencies"]] == ["acme/base@1"]
    information = ok(project.twinkle("--json", "info", "acme/norm@1")).json
    assert information["commit"] == repositories["norm"].branches["v1"]
    assert information["repo_id"] == "acme/norm"


def test_cycles_are_refused(hub, machine):
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        hub.add(f"acme/{name}").commit(kernel(f"kernel-{name}", [CPU], depends=[(f"acme/{other}", 1)]), branch="v1")
    machine.write("twinkle.toml", '[kernels]\n"acme/a" = 1\n')
    done = machine.twinkle("--json", "lock")
    assert done.code in (2, 6), done
    assert all(name in done.error["why"] for name in ("acme/a", "acme/b", "acme/c")), done
    assert not (machine.project / "twinkle.lock").exists()


def test_trust_reaches_dependencies(hub, repositories, machine):
    hub.add("stranger/helper", trusted=False).commit(kernel("helper", [CPU]), branch="v1")
    hub.add("acme/needy").commit(kernel("needy", [CPU], depends=[("stranger/helper", 1)]), branch="v1")
    machine.write("twinkle.toml", '[kernels]\n"acme/needy" = 1\n')
    done = ok(machine.twinkle("--json", "lock"), 6)
    assert "stranger/helper" in str(done.error)
    assert hub.served() == {} or not hub.requests("/kernels/stranger/*")
    machine.write("twinkle.toml", 'trust = ["stranger/helper"]\n[kernels]\n"acme/needy" = 1\n')
    ok(machine.twinkle("lock"))
    ok(machine.twinkle("fetch", "--locked", *TARGET))


def damaged(project, commit, library):
    """The blob of a fetched file, one byte of which is another."""
    ok(project.twinkle("fetch", "--locked", *TARGET))
    blob = project.store("acme/norm") / "blobs" / commit.files[library].etag
    content = bytearray(blob.read_bytes())
    content[5] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(content)
    return blob


def test_damage_is_found_and_repaired(hub, project, repositories):
    commit = repositories["norm"].find("v1")
    library = f"build/{CPU}/_norm_1.abi3.so"
    damaged(project, commit, library)
    done = ok(project.twinkle("verify"), 4)
    assert "_norm_1.abi3.so" in done.out + done.err
    ok(project.twinkle("--offline", "cache", "verify", "--dry-run"), 4)
    hub.forget()
    assert project.twinkle("cache", "verify").code in (0, 4)
    assert hub.served() == {commit.files[library].etag: commit.files[library].size}
    ok(project.twinkle("verify"))
    ok(project.twinkle("cache", "verify"))


def test_what_cannot_be_fetched_again_stays(hub, project, repositories):
    """Damaged, but somebody may still make use of it."""
    commit = repositories["norm"].find("v1")
    library = f"build/{CPU}/_norm_1.abi3.so"
    blob = damaged(project, commit, library)
    content = blob.read_bytes()
    endpoint = project.env["HF_ENDPOINT"]
    project.env["HF_ENDPOINT"] = "http://127.0.0.1:9"
    ok(project.twinkle("cache", "verify"), 4)
    assert blob.read_bytes() == content
    assert (project.store("acme/norm") / "snapshots" / commit.id / library).exists()
    project.env["HF_ENDPOINT"] = endpoint
    assert project.twinkle("cache", "verify").code in (0, 4)
    ok(project.twinkle("cache", "verify"))


def test_prune_keeps_what_the_locks_need(hub, project, repositories):
    ok(project.twinkle("fetch", "--locked", "--all-variants"))
    ok(project.twinkle("fetch", "acme/norm@2", "acme/other@1", "--all-variants"))
    needed = {path: content for path, content in all_files(project.cache).items()
              if "/snapshots/" in path and repositories["norm"].branches["v2"] not in path and "other" not in path}
    planned = ok(project.twinkle("--json", "cache", "prune", "--dry-run"))
    assert "acme/other" in planned.out
    assert needed.items() <= all_files(project.cache).items()
    ok(project.twinkle("cache", "prune"))
    left = all_files(project.cache)
    assert needed.items() <= left.items()
    assert not [path for path in left if repositories["norm"].branches["v2"] in path and "snapshots" in path]
    hub.forget()
    ok(project.twinkle("fetch", "--locked", "--all-variants"))
    assert hub.log == []


def test_clean_takes_what_a_crash_left(hub, project, repositories):
    ok(project.twinkle("fetch", "--locked", *TARGET))
    partial = project.store("acme/norm") / "blobs" / ("ab" * 32 + ".0123abcd.incomplete")
    partial.write_bytes(b"x" * 1000)
    before = all_files(project.store("acme/norm") / "snapshots")
    ok(project.twinkle("cache", "clean", "--dry-run"))
    assert partial.exists()
    ok(project.twinkle("cache", "clean"))
    assert not partial.exists()
    assert all_files(project.store("acme/norm") / "snapshots") == before


def test_bundle_for_a_machine_without_network(hub, project, tmp_path):
    ok(project.twinkle("fetch", "--locked", *TARGET))
    hub.forget()
    bundle = tmp_path / "bundle"
    ok(project.twinkle("--offline", "resolve", "--bundle", bundle, *TARGET))
    assert hub.log == []
    assert [path for path in bundle.rglob("*.abi3.so")]


def test_resolve_names_the_command_that_fetches(project):
    done = ok(project.twinkle("--json", "resolve", *TARGET), 3)
    assert "twinkle fetch" in done.error["hint"]


def on_terminal(machine: Machine, *arguments: str) -> tuple[int, str]:
    leader, follower = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], cwd=machine.project, stdin=follower, stdout=follower,
                               stderr=follower, env=environment(**{**machine.env, "TERM": "xterm",
                                                                   "HF_HUB_DISABLE_PROGRESS_BARS": None}))
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 30)[0]:
        try:
            block = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not block:
            break
        shown += block
    os.close(leader)
    return process.wait(timeout=10), shown.decode()


def test_progress_on_a_terminal_only(hub, machine):
    files = {"weights.bin": os.urandom(3_000_000)}
    hub.add("acme/large").commit(kernel("large", [CPU], files=files), branch="v1")
    hub.fault("*/repos/*", faults.trickle(200_000, 0.05), host="files")
    code, shown = on_terminal(machine, "fetch", "acme/large@1", "--all-variants")
    assert code == 0, shown
    assert "acme/large" in shown and "files" in shown and "/s" in shown, shown
    shutil.rmtree(machine.cache)
    done = ok(machine.twinkle("fetch", "acme/large@1", "--all-variants"))
    assert "/s" not in done.err and "\r" not in done.err and "\x1b" not in done.out + done.err
