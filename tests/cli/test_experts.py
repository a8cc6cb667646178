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
        weight, expert = torch.softmax(self.router(h), -1).max(-1)
        order = torch.argsort(expert)
        ends = torch.nn.functional.one_hot(expert, self.experts).sum(0).cumsum(0).to(torch.int32)
        y = torch._grouped_mm(nn.functional.silu(torch._grouped_mm(h[order], self.up, ends)), self.down, ends)
        return x + torch.zeros_like(x).index_copy(0, order, y) * weight[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_of_experts_is_compared_in_double(twinkle, dtype):
    torch.manual_seed(3)
    model = nn.Sequential(Experts(), Experts()).eval().to(dtype)
    x = torch.randn(33, 64, dtype=dtype)
    torch.jit.trace(model, x).save(twinkle.folder / "model.pt")
    torch.save(x, twinkle.folder / "inputs.pt")
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "fast.pt", "--json", "--no-measure")
    assert done.code == 0, done.err
    assert done.json["replaced"] >= 2
    whole = done.json["whole"]
    assert whole["original_error"] > 0 and "double precision" not in whole.get("because", "")
