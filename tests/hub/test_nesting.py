"""Documents that nest without end, wherever TOML is read: refused by name, and no crash."""

import pytest
from repository import kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ["--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"]
NORM = "kernels-community/norm"
KEY = ".".join("a" * 25_000)
DEEP = {"key": f"{KEY} = 1\n", "header": f"[{KEY}]\n", "array": "a = " + "[" * 50_000 + "\n",
        "table": "a = " + "{a = " * 10_000 + "\n"}


@pytest.mark.parametrize("form", DEEP)
@pytest.mark.parametrize("command", [["fetch", NORM, "--all-variants"], ["info", NORM]])
def test_status_of_a_repository(hub, machine, form, command):
    hub.add(NORM).commit({"kernel-status.toml": DEEP[form]}, branch="main")
    machine.write("twinkle.toml", "[kernels]\n")
    done = machine.twinkle(*command)
    assert done.code == 2, done
    assert "kernel-status.toml:1:" in done.err and "nested deeper than 64 levels" in done.err, done


@pytest.mark.parametrize("form", DEEP)
@pytest.mark.parametrize("name, commands", [
    ("twinkle.toml", [["lock"], ["resolve", *TARGET], ["fetch"], ["tree"], ["verify"], ["outdated"], ["add", NORM],
                      ["remove", NORM], ["lock", "--check"]]),
    ("pyproject.toml", [["lock"], ["fetch"], ["init"]]),
    ("twinkle.lock", [["fetch", "--locked", *TARGET], ["verify"], ["tree"], ["lock"], ["cache", "prune"]]),
    ("build.toml", [["check", "."]]),
])
def test_files_of_a_project(hub, machine, form, name, commands):
    hub.add(NORM).commit(kernel("norm", [CPU]), branch="v1")
    for command in commands:
        if name == "twinkle.lock":
            machine.write("twinkle.toml", f'[kernels]\n"{NORM}" = 1\n')
        # What begins with a bracket is taken for the lock's other form, JSON.
        machine.write(name, ("format = 1\n" if name == "twinkle.lock" else "") + DEEP[form])
        done = machine.twinkle(*command)
        assert 0 <= done.code < 10, (command, done)
        if done.code:
            assert "nested deeper than 64 levels" in done.err + done.out or name == "pyproject.toml", (command, done)
