"""What is in a kernel of the Hub, before anything of it is fetched, and when all of it is here."""

import pytest
from conftest import all_files
from repository import kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
TARGET = ("--target", "torch=2.13,backend=cpu,cpu=x86_64,os=linux,cxx11=1")
LAYERS = """import torch
from torch import nn


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


class Guarded(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu"):
            return x * 2
"""


@pytest.fixture
def norm(hub):
    made = hub.add("acme/norm")
    made.commit(kernel("norm", [CPU, "torch-rocm"], files={"layers.py": LAYERS}), branch="v1")
    return made


def test_a_kernel_that_is_not_here(norm, machine):
    done = machine.twinkle("inspect", "acme/norm", "--json", *TARGET)
    assert done.code == 0, done
    facts = done.json
    assert facts["repo_id"] == "acme/norm" and facts["variant"] == CPU
    assert [(layer["name"], layer["usable"]) for layer in facts["layers"]] == [("Guarded", False), ("Twice", None)]
    assert facts["layers"][1]["because"] == "not compiled: its files are not on this machine"
    assert facts["without_libraries"] and "libraries were not fetched" in facts["warnings"][0]
    assert not any(name.endswith(".so") for name in all_files(machine.cache)) if machine.cache.exists() else True
    other = machine.twinkle("inspect", "acme/norm@1", "--json", "--variant", "torch-rocm")
    assert other.code == 0 and other.json["variant"] == "torch-rocm"


def test_a_kernel_that_is_here(norm, machine):
    machine.write("twinkle.toml", 'presets = []\n[kernels]\n"acme/norm" = 1\n')
    assert machine.twinkle("fetch", "acme/norm@1", "--trust", "acme/norm", *TARGET).code == 0
    done = machine.twinkle("inspect", "acme/norm@1", "--json", "--offline", *TARGET)
    assert done.code == 0, done
    assert not done.json["without_libraries"] and len(done.json["layers"]) == 2


def test_what_the_hub_does_not_have(norm, machine):
    assert machine.twinkle("inspect", "acme/nothing", "--json").code in (3, 5)
    assert machine.twinkle("inspect", "acme/norm", "--variant", "torch-xpu", "--json").code == 3
    assert machine.twinkle("inspect", "acme/norm", "--offline", "--json").code == 5
