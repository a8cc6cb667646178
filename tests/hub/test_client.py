"""twinkle/hub.h, through the example program that uses it."""

import pytest
from conftest import PROGRAM
from repository import kernel

EXAMPLE = PROGRAM.parents[1] / "tests/example_fetch_kernel"
HAS = PROGRAM.parents[1] / "tests/has_kernel"
CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"
GPU = "torch=2.13,backend=cu130,arch=9.0,cpu=x86_64,os=linux,cxx11=1"


@pytest.fixture
def norm(hub):
    norm = hub.add("kernels-community/norm")
    norm.commit(kernel("norm", [CPU]), branch="v1")
    return norm


def test_a_program_fetches_a_kernel(hub, norm, machine):
    done = machine.run([EXAMPLE, "kernels-community/norm", 1, TARGET])
    assert done.code == 0, done
    repository, variant, folder = done.out.split()
    assert (repository, variant) == ("kernels-community/norm", CPU)
    assert (machine.snapshot(repository, norm.branches["v1"]) / "build" / CPU).samefile(folder)
    agents = {entry.headers.get("user-agent", "") for entry in hub.log}
    assert any("fetch-kernel-example/1.0" in agent for agent in agents), agents
    offline = machine.run([EXAMPLE, "kernels-community/norm", 1, TARGET], env={"HF_HUB_OFFLINE": "1"})
    assert (offline.code, offline.out) == (0, done.out), offline


@pytest.mark.parametrize("words, code", [
    (["kernels-community/none", 1, TARGET], 3),
    (["kernels-community/norm", 7, TARGET], 3),
    (["kernels-community/norm", 1, "torch=2.6,backend=cpu"], 3),
    (["not a name", 1, TARGET], 2),
])
def test_errors_are_told_apart(norm, machine, words, code):
    done = machine.run([EXAMPLE, *words])
    assert done.code == code and done.err.startswith("error: "), done


def test_has_is_true_of_what_get_would_give(hub, norm, machine):
    assert machine.run([HAS, "kernels-community/norm", 1, TARGET]).out == "yes\n"
    assert machine.run([HAS, "kernels-community/norm", 7, TARGET]).out == "no\n"
    assert machine.run([HAS, "kernels-community/none", 1, TARGET]).out == "no\n"
    # A build for the CPU is none for a GPU, as in Python.
    assert machine.run([HAS, "kernels-community/norm", 1, GPU]).out == "no\n"
    norm.commit(kernel("norm", [CPU, CPU.replace("cpu", "cu130")]), branch="v2")
    assert machine.run([HAS, "kernels-community/norm", 2, GPU]).out == "yes\n"


def test_has_refuses_whom_get_refuses(hub, machine):
    hub.add("acme/tool", trusted=False).commit(kernel("tool", [CPU]), branch="v1")
    refused = machine.run([HAS, "acme/tool", 1, TARGET])
    assert (refused.code, refused.out) == (6, "") and "the publisher acme is not trusted" in refused.err, refused
    assert machine.run([EXAMPLE, "acme/tool", 1, TARGET]).code == 6
    for trusted in ("acme/tool", "acme/*", "acme"):
        assert machine.run([HAS, "acme/tool", 1, TARGET, trusted]).out == "yes\n"


def test_has_sees_local_kernels(hub, machine):
    for path, content in kernel("tool", [CPU]).items():
        (machine.project / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.project / "copy" / path).write_bytes(content)
    env = {"LOCAL_KERNELS": "acme/tool=copy"}
    done = machine.run([HAS, "acme/tool", 1, TARGET], env=env)
    assert done.out == "yes\n" and "LOCAL_KERNELS" in done.err, done
    assert not hub.log
