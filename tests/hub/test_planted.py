"""What somebody planted in the cache or the lock: nothing outside of the cache is touched, and there is a way back."""

import pytest
from repository import kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ["--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"]
NORM = "kernels-community/norm"


@pytest.fixture
def norm(hub, machine):
    norm = hub.add(NORM)
    norm.commit(kernel("norm", [CPU]), branch="v1")
    machine.write("twinkle.toml", f'[kernels]\n"{NORM}" = 1\n')
    for command in (["lock"], ["fetch", *TARGET]):
        assert (done := machine.twinkle(*command)).code == 0, done
    return norm


@pytest.mark.parametrize("place", ["snapshots/" + "a" * 40, "snapshots", "blobs", "trees"])
def test_nothing_outside_is_deleted_through_a_link(norm, machine, tmp_path, place):
    outside = tmp_path / "outside"
    (outside / ("b" * 40)).mkdir(parents=True)
    (outside / "dangling").symlink_to("nowhere")
    (outside / ("b" * 40) / "dangling").symlink_to("nowhere")
    (outside / ("c" * 40)).write_text("not what its name says")
    (outside / "old.tmp").write_text("of somebody else")
    before = {path.name for path in outside.rglob("*")}
    planted = machine.store(NORM) / place
    if planted.exists():
        planted.rename(planted.with_name(planted.name + ".before"))
    planted.symlink_to(outside)
    for command in (["cache", "verify"], ["cache", "clean"], ["cache", "prune"], ["cache", "list"]):
        machine.twinkle(*command)
        assert {path.name for path in outside.rglob("*")} >= before, command


def test_a_link_out_of_the_cache_is_replaced(norm, machine, tmp_path):
    build = machine.snapshot(NORM, norm.branches["v1"]) / "build" / CPU
    content = (build / "layers.py").read_bytes()
    foreign = tmp_path / "layers.py"
    foreign.write_bytes(content[:-1] + b"!")
    (build / "layers.py").unlink()
    (build / "layers.py").symlink_to(foreign)
    assert machine.twinkle("verify").code != 0
    assert (done := machine.twinkle("fetch", *TARGET)).code == 0, done
    assert (build / "layers.py").read_bytes() == content
    assert foreign.read_bytes() != content
    assert (done := machine.twinkle("verify")).code == 0, done


def test_a_lock_that_was_edited_is_written_anew(norm, machine):
    lock = machine.project / "twinkle.lock"
    right = lock.read_text()
    lock.write_text(right.replace("size = ", "size = 1", 1))
    assert machine.twinkle("lock", "--check").code == 7
    assert machine.twinkle("fetch", *TARGET).code == 7
    done = machine.twinkle("lock")
    assert done.code == 0 and "decided anew" in done.err, done
    assert lock.read_text() == right


def test_sizes_beyond_measure_are_refused(norm, machine):
    lock = machine.project / "twinkle.lock"
    text = lock.read_text()
    start = text.index("size = ")
    lock.write_text(text[:start] + "size = 9223372036854775807" + text[text.index(",", start) :])
    done = machine.twinkle("fetch", *TARGET)
    assert done.code == 2 and "twinkle.lock:" in done.err, done


def test_offline_nobody_knows_what_is_out_of_date(norm, machine):
    assert machine.twinkle("outdated", *TARGET).code == 0
    done = machine.twinkle("--offline", "outdated", *TARGET)
    assert done.code == 5 and "offline" in done.err, done


def test_offline_damaged_files_stay(norm, machine):
    blob = (machine.snapshot(NORM, norm.branches["v1"]) / "build" / CPU / "layers.py").resolve()
    blob.chmod(0o644)
    blob.write_bytes(b"x" * blob.stat().st_size)
    done = machine.twinkle("--offline", "cache", "verify")
    assert done.code == 4 and blob.exists(), done
    assert (done := machine.twinkle("cache", "verify")).code == 0, done
    assert machine.twinkle("verify").code == 0


def test_the_lock_of_the_python_tool_alone(norm, machine):
    (machine.project / "twinkle.toml").unlink()
    (machine.project / "twinkle.lock").unlink()
    machine.write("pyproject.toml", f'[tool.kernels.dependencies]\n"{NORM}" = 1\n')
    machine.write("kernels.lock", '[{"dependency": {"repo-id": "%s", "version": 1}, "lock": {"commit": "%s"}}]'
                  % (NORM, norm.branches["v1"]))
    assert (done := machine.twinkle("fetch", "--locked", *TARGET)).code == 0, done
    assert (done := machine.twinkle("lock", "--check")).code == 0, done
    assert machine.twinkle("lock", "--check", "--upgrade").code == 2


def test_help_for_a_command_that_is_not_there(machine):
    done = machine.twinkle("fecth", "--help")
    assert done.code == 2 and "did you mean 'fetch'" in done.err, done
