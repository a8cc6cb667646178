"""verify: what is read, what is remembered, what is found."""

import pytest
from repository import kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ["--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"]


@pytest.fixture
def fetched(hub, machine):
    norm = hub.add("kernels-community/norm")
    norm.commit(kernel("norm", [CPU]), branch="v1")
    machine.write("twinkle.toml", '[kernels]\n"kernels-community/norm" = 1\n')
    for command in (["lock"], ["fetch", *TARGET]):
        assert (done := machine.twinkle(*command)).code == 0, done
    return machine.snapshot("kernels-community/norm", norm.branches["v1"]) / "build" / CPU


def spoil(build):
    """Changes a byte and nothing else that a quick look would see: size and time stay."""
    path = (build / "layers.py").resolve()
    import os
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_changed_byte_is_found(machine, fetched):
    assert machine.twinkle("verify").code == 0
    spoil(fetched)
    done = machine.twinkle("verify", "--json")
    assert done.code == 4
    assert "layers.py" in done.error["why"]


def test_unchanged_files_are_read_once_if_asked_for(machine, fetched):
    memory = machine.env["XDG_CACHE_HOME"] / "twinkle/verified.json"
    assert machine.twinkle("verify").code == 0
    assert not memory.exists(), "it is off unless it is asked for"
    assert machine.twinkle("verify", "--trust-unchanged").code == 0
    known = memory.read_text()
    again = machine.twinkle("verify", "--trust-unchanged", "--json")
    assert again.code == 0 and again.json["builds"][0]["ok"]
    assert memory.read_text() == known
    # The time of the inode gives a change away that hides behind the time of the bytes.
    spoil(fetched)
    assert machine.twinkle("verify", "--trust-unchanged").code == 4
    for broken in ("", "[]", "{", '{"schema": 7}', '{"schema": "twinkle.verified/1", "files": {"x": 1}}'):
        memory.write_text(broken)
        assert machine.twinkle("verify", "--trust-unchanged").code == 4
