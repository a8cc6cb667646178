"""A kernel whose layer calls a kernel that it depends on: from the Hub into a model."""

import pytest
from conftest import PROGRAM
from repository import kernel

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not list(PROGRAM.parents[1].glob("libexec/twinkle/*/twinkle-worker")),
                                reason="this twinkle was built without LibTorch")

LAYERS = '''import torch
import torch.nn as nn
from kernels import get_kernel_dep

tool = get_kernel_dep("acme/tool")


class Thrice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return tool.times(x)
'''
MANIFEST = '''presets = []
trust = ["acme/norm", "acme/tool"]
[layers.Thrice]
repo_id = "acme/norm"
version = 1
classes = ["*Original"]
'''


class Original(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x + x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Original()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + 1


def tool(factor):
    return kernel("tool", files={"__init__.py": f"import torch\n\n\ndef times(x: torch.Tensor) -> torch.Tensor:\n"
                                                f"    return x * {factor}\n"})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_layer_that_calls_another_kernel(hub, machine):
    hub.add("acme/norm").commit(kernel("norm", depends=[("acme/tool", 1)], files={"layers.py": LAYERS}), branch="v1")
    hub.add("acme/tool").commit(tool("3"), branch="v1")
    torch.jit.script(Model().eval()).save(machine.project / "model.pt")
    machine.write("twinkle.toml", MANIFEST)
    for command in (["lock"], ["fetch", "--locked"]):
        done = machine.twinkle(*command)
        assert done.code == 0, done
    done = machine.twinkle("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "float32[2,3]", "--verify", "--device", "cpu",
                           "--json")
    assert done.code == 0, done
    [site] = done.json["sites"]
    assert (site["site"], site["status"], site["kernel"]) == ("layer", "replaced", "acme/norm@1: Thrice"), site
    assert "kept as they are" not in done.err
