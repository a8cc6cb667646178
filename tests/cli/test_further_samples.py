"""--inputs that is given several times: every set counts, also where nothing is tuned or made coarser."""

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

# Right for small values alone.
FORMULAS = """
import torch

def gate(x):
    return torch.sigmoid(x)

def clamped(x):
    return torch.sigmoid(x.clamp(min=-8.0, max=8.0))
"""
MANIFEST = 'presets = []\n[patterns.gate]\npattern = "formulas.py:gate"\nfunc_impl = "formulas.py:clamped"\n'


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return torch.sigmoid(self.linear(x))


@pytest.fixture
def kernelize(twinkle):
    torch.manual_seed(1)
    torch.jit.trace(Gate().eval(), torch.randn(4, 8)).save(twinkle.folder / "model.pt")
    torch.save(torch.randn(4, 8), twinkle.folder / "small.pt")
    torch.save(torch.full((4, 8), 100.0), twinkle.folder / "large.pt")
    (twinkle.folder / "formulas.py").write_text(FORMULAS)
    (twinkle.folder / "twinkle.toml").write_text(MANIFEST)
    return lambda *inputs: twinkle("kernelize", "model.pt", *(word for one in inputs for word in ("--inputs", one)),
                                   "-o", "fast.pt", "--json", "--no-measure")


def test_a_kernel_that_is_wrong_on_the_second_is_put_back(kernelize):
    assert kernelize("small.pt").json["replaced"] == 1
    done = kernelize("small.pt", "large.pt")
    assert done.code == 0, done.err
    site, = done.json["sites"]
    assert site["status"] == "reverted" and "other inputs" in site["because"]
    assert {"size": "other inputs", "inputs": "float32[4,8]"} in done.json["shapes"]


def test_one_that_the_original_does_not_take_is_an_error(kernelize):
    done = kernelize("small.pt", "float32[4,7]")
    assert done.code == 2
    assert "further --inputs" in done.error["what"] and "float32[4,7]" in done.error["why"]
