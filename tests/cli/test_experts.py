"""A mixture of experts, as transformers traces it: rows sorted by expert, and products of groups, which take no float64."""

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Experts(nn.Module):
    def __init__(self, width: int = 64, inner: int = 128, experts: int = 4):
        super().__init__()
        self.norm, self.router = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, inner) / 8)
        self.down = nn.Parameter(torch.randn(experts, inner, width) / 8)
        self.experts = experts

    def forward(self, x):
        h = self.norm(x)
        weight, expert = torch.softmax(self.router(h).float(), -1).max(-1)
        order = torch.argsort(expert)
        ends = torch.nn.functional.one_hot(expert, self.experts).sum(0).cumsum(0).to(torch.int32)
        y = torch._grouped_mm(h[order].to(self.up.dtype), self.up, ends)
        y = torch._grouped_mm(nn.functional.silu(y).to(self.down.dtype), self.down, ends)
        return x + (y * weight[order, None])[torch.argsort(order)].to(x.dtype)


def kernelized(twinkle, dtype, *options):
    torch.manual_seed(3)
    model = nn.Sequential(Experts(), Experts()).eval().to(dtype)
    x = torch.randn(33, 64, dtype=dtype)
    torch.jit.trace(model, x).save(twinkle.folder / "model.pt")
    torch.save(x, twinkle.folder / "inputs.pt")
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "fast.pt", "--json", "--no-measure", *options)
    assert done.code == 0, done.err
    return done.json


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_of_experts_is_compared_in_double(twinkle, dtype):
    report = kernelized(twinkle, dtype)
    assert report["replaced"] >= 2
    assert report["whole"]["original_error"] > 0 and "double precision" not in report["whole"]["because"]


def test_a_model_of_experts_in_another_dtype(twinkle):
    """A trace in float32 has the casts to the weights' dtype as casts to float32."""
    report = kernelized(twinkle, torch.float32, "--dtype", "bfloat16")
    assert report["replaced"] >= 2 and report["dtype"] == "bfloat16"
