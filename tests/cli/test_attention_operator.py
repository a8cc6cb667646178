"""PyTorch's operator for attention in models, computed by the pack on a CPU where it can; else it is PyTorch's as before."""

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

MANIFEST = 'presets = ["patterns"]\n'


class Attention(nn.Module):
    """`how` is what a model gives beside its heads."""

    def __init__(self, how: str, heads: int = 4, key_heads: int = 4, width: int = 8):
        super().__init__()
        self.how, self.heads, self.key_heads, self.width = how, heads, key_heads, width
        self.query = nn.Linear(32, heads * width)
        self.key, self.value = nn.Linear(32, key_heads * width), nn.Linear(32, key_heads * width)

    def split(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        return x.view(x.size(0), x.size(1), heads, self.width).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.split(self.query(x), self.heads)
        k, v = self.split(self.key(x), self.key_heads), self.split(self.value(x), self.key_heads)
        if self.how == "causal":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.how == "scaled":
            y = F.scaled_dot_product_attention(q, k, v, scale=0.1)
        elif self.how == "masked":
            mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril(2)
            y = F.scaled_dot_product_attention(q, k, v, mask)
        elif self.how == "added":
            y = F.scaled_dot_product_attention(q, k, v, x[:, None, :, :1].expand(-1, -1, -1, x.size(1)).contiguous())
        elif self.how == "grouped":
            y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        elif self.how == "dropout":
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5 if self.training else 0.0)
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return y.transpose(1, 2).reshape(x.size(0), x.size(1), -1)


def kernelized(twinkle, model, how, inputs="float32[2,40,32]", dtype=torch.float32):
    torch.manual_seed(4)
    model = model.eval().to(dtype)
    made = torch.jit.script(model) if how == "scripted" else torch.jit.trace(model, torch.randn(2, 40, 32, dtype=dtype))
    made.save(twinkle.folder / "model.pt")
    (twinkle.folder / "twinkle.toml").write_text(MANIFEST)
    done = twinkle("kernelize", "model.pt", "--inputs", inputs, "-o", "fast.pt", "--json", "--no-measure")
    assert done.code == 0, done.err
    return made, done.json


def sites(report):
    return [site for site in report["sites"] if site["of"].endswith("scaled_dot_product_attention")]


def run(twinkle, x):
    torch.save((x,), twinkle.folder / "in.pt")
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    return torch.load(twinkle.folder / "out.pt", weights_only=True)


@pytest.mark.parametrize("how", ["plain", "causal", "scaled", "masked", "added", "grouped", "dropout"])
@pytest.mark.parametrize("made", ["traced", "scripted"])
def test_the_operator_is_found_however_it_is_called(twinkle, how, made):
    model, report = kernelized(twinkle, Attention(how, key_heads=2 if how == "grouped" else 4), made)
    found = sites(report)
    assert found and all(site["status"] == "replaced" for site in found), report["sites"]  # of a script, in all branches
    assert all(site["kernel"].endswith("fused_attention") for site in found)
    assert report["whole"]["max_error"] <= report["whole"]["allowed_error"]
    for shape in [(2, 40, 32), (1, 7, 32), (3, 300, 32), (1, 1, 32)]:  # other lengths; one row is PyTorch's
        x = torch.randn(shape)
        torch.testing.assert_close(run(twinkle, x), model(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precisions(twinkle, dtype):
    name = str(dtype).removeprefix("torch.")
    model, report = kernelized(twinkle, Attention("causal"), "traced", f"{name}[2,40,32]", dtype)
    assert [site["status"] for site in sites(report)] == ["replaced"]
    x = torch.randn(2, 60, 32).to(dtype)
    torch.testing.assert_close(run(twinkle, x), model(x), atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("made", ["traced", "scripted"])
def test_gradients_are_pytorch_s(twinkle, made):
    model, report = kernelized(twinkle, Attention("causal"), made)
    assert sites(report)
    done = twinkle("kernelize", "model.pt", "--inputs", "float32[2,40,32]", "-o", "fast.pt", "--mode", "training", "--json",
                   "--no-measure")
    assert done.code == 0, done.err
    assert done.json["whole"]["max_error"] <= done.json["whole"]["allowed_error"]


class OfHeads(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)


def test_keys_without_elements(twinkle):
    """There is no factor for them: their size has no inverse root."""
    model = torch.jit.script(OfHeads().eval())
    model.save(twinkle.folder / "model.pt")
    (twinkle.folder / "twinkle.toml").write_text(MANIFEST)
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--device", "cpu", "--json")
    assert done.code == 0 and [site["status"] for site in sites(done.json)] == ["replaced"], done.err
    inputs = torch.randn(1, 2, 20, 0), torch.randn(1, 2, 20, 0), torch.randn(1, 2, 20, 8)
    torch.save(inputs, twinkle.folder / "in.pt")
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    result = torch.load(twinkle.folder / "out.pt", weights_only=True)
    torch.testing.assert_close(result, model(*inputs), equal_nan=True)
