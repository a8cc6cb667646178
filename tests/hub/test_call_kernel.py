"""Kernels called from C++ (twinkle/kernel.h), downloaded by the hub client that the program has set."""

import pytest
from conftest import PROGRAM
from repository import kernel

EXAMPLE = PROGRAM.parents[1] / "tests/example_call_kernel"
INIT = '''import torch


def twice(x: torch.Tensor, factor: float = {factor}) -> torch.Tensor:
    return x * factor
'''
pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="this twinkle was built without LibTorch")


def tool(factor):
    return kernel("tool", ["torch-universal"], files={"__init__.py": INIT.format(factor=factor)})


@pytest.fixture
def repository(hub):
    made = hub.add("kernels-community/tool")
    made.commit(tool("2.0"), branch="v1")
    made.commit(tool("3.0"), branch="v2")
    return made


def test_a_program_downloads_lists_and_calls_a_kernel(hub, repository, machine):
    done = machine.run([EXAMPLE, "kernels-community/tool", 1, "twice"])
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[0] == "twice(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor"
    assert lines[1] == f"kernels-community/tool@1 {repository.branches['v1']}"
    assert [float(line) for line in lines[2:6]] == [0, 2, 4, 6]
    agents = {entry.headers.get("user-agent", "") for entry in hub.log}
    assert any("call-kernel/1.0" in agent for agent in agents), agents
    offline = machine.run([EXAMPLE, "kernels-community/tool", 1, "twice"], env={"HF_HUB_OFFLINE": "1"})
    assert (offline.code, offline.out) == (0, done.out), offline


def test_a_version_that_moves_is_seen_online(repository, machine):
    assert machine.run([EXAMPLE, "kernels-community/tool", 2, "twice"]).code == 0
    repository.commit(tool("5.0"), branch="v2")
    moved = machine.run([EXAMPLE, "kernels-community/tool", 2, "twice"])
    assert [float(line) for line in moved.out.splitlines()[2:6]] == [0, 5, 10, 15]


@pytest.mark.parametrize("words, code, text", [
    (["kernels-community/tool", 9, "twice"], 3, "has no build"),
    (["kernels-community/tool", 1, "twic"], 3, "twice"),
    (["kernels-community/none", 1, "twice"], 3, "kernels-community/none"),
    (["acme/tool", 1, "twice"], 6, "acme"),
])
def test_errors_say_what_is_wrong(hub, repository, machine, words, code, text):
    hub.add("acme/tool", trusted=False).commit(tool("2.0"), branch="v1")
    done = machine.run([EXAMPLE, *words])
    assert done.code == code and text in done.err, done
