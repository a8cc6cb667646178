"""What a forward does besides returning a value, and what it draws at random."""

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

LAYER = "import torch\nimport torch.nn as nn\n\n\nclass Layer(nn.Module):\n    def forward(self, x: torch.Tensor) -> " \
        "torch.Tensor:\n        {}\n"


class Doubles(nn.Module):
    """Writes into its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x[0].mul_(2.0)
        return x


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x * self.weight)


class Model(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.linear(x))


def made(folder, layer, body, name):
    torch.manual_seed(3)
    model = torch.jit.script(Model(layer))
    model.train(isinstance(layer, Drops))
    model.save(folder / "model.pt")
    torch.save((torch.randn(4, 64),), folder / "in.pt")
    (folder / "kernel").mkdir()
    (folder / "kernel/__init__.py").write_text("")
    (folder / "kernel/layers.py").write_text(LAYER.format(body))
    (folder / "twinkle.toml").write_text(
        f'[layers.Layer]\nrepo_path = "kernel"\nclasses = ["*.{name}", "{name}"]\n')


@pytest.mark.parametrize("body, status", [("return x * 2.0", "kept"), ("return x.mul_(2.0)", "replaced")])
def test_a_forward_that_writes_into_its_input(twinkle, body, status):
    made(twinkle.folder, Doubles(), body, "Doubles")
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    (site,) = done.json["sites"]
    assert site["status"] == status
    if status == "kept":
        assert "also changes its input" in site["because"]


@pytest.mark.parametrize("body, right", [("return self.drop(x * self.weight)", True), ("return x * self.weight", False)])
def test_dropout_is_the_same_in_all_runs_that_are_compared(twinkle, body, right):
    made(twinkle.folder, Drops(), body, "Drops")
    for _ in range(2):
        done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "in.pt", "--verify", "--json")
        assert done.code == 0, done.err
        assert done.json["mode"] == "training"
        (site,) = done.json["sites"]
        assert site["status"] == ("replaced" if right else "reverted"), site
