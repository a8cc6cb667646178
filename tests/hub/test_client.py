"""twinkle/hub.h, through the example program that uses it."""

import pytest
from conftest import PROGRAM
from repository import kernel

EXAMPLE = PROGRAM.parents[1] / "tests/example_fetch_kernel"
CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1"


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
