"""Linear layers as sites: alone, with what follows them, several of one input; and what keeps them from being one."""

import pytest
from kernels_for_tests import needs_runtime, python_kernel

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

WIDTH, HIDDEN = 48, 80
INPUT = f"float32[2,7,{WIDTH}]"


class Attention(nn.Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(WIDTH, WIDTH, bias=bias), nn.Linear(WIDTH, 16, bias=False)
        self.v_proj, self.o_proj = nn.Linear(WIDTH, WIDTH, bias=bias), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return self.o_proj(torch.tanh(q) * v + k.mean(-1, keepdim=True))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(F.gelu(self.first(x)))


class Model(nn.Module):
    def __init__(self, *parts: nn.Module):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = x + part(x)
        return x


def every(model: nn.Module, how: str, dtype=torch.float32) -> torch.jit.ScriptModule:
    model = model.to(dtype).eval()
    return torch.jit.script(model) if how == "scripted" else torch.jit.trace(
        model, torch.randn(2, 7, WIDTH, dtype=dtype), check_trace=False)


def kernelized(twinkle, model, *options, manifest='presets = ["linear"]\n', inputs=INPUT):
    """The report; the model beside its original."""
    torch.jit.save(model, twinkle.folder / "model.pt")
    if manifest:
        (twinkle.folder / "twinkle.toml").write_text(manifest)
    done = twinkle("kernelize", "model.pt", "--inputs", inputs, "-o", "fast.pt", "--json", *options)
    assert done.code == 0, done.err
    return done.json


def replaced(report):
    """How many sites of each class or pattern."""
    counts = {}
    for site in report["sites"]:
        if site["status"] == "replaced":
            name = site["of"].rsplit(".", 1)[-1]
            counts[name] = counts.get(name, 0) + 1
    return counts


def put_back(report):
    return [site for site in report["sites"] if site["status"] == "put_back"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("how", ["traced", "scripted"])
def test_what_a_model_has_of_linear_layers(twinkle, how, dtype):
    torch.manual_seed(1)
    model = every(Model(Attention(), Gated(), Plain()), how, getattr(torch, dtype))
    report = kernelized(twinkle, model, inputs=f"{dtype}[2,7,{WIDTH}]")
    assert replaced(report) == {"linear3": 1, "linear_silu_mul": 1, "linear_gelu": 1, "Linear": 3}
    assert not put_back(report)
    assert report["verified"]


def test_the_file_holds_the_weights_as_they_were(twinkle):
    torch.manual_seed(2)
    model = every(Model(Attention(), Gated()), "traced")
    kernelized(twinkle, model)
    before, after = (twinkle.folder / name for name in ("model.pt", "fast.pt"))
    assert after.stat().st_size < before.stat().st_size + 64 * 1024


def test_a_frozen_model_has_functions_left_and_no_modules(twinkle):
    torch.manual_seed(3)
    model = torch.jit.freeze(every(Model(Attention(), Gated(), Plain()), "traced"), optimize_numerics=False)
    report = kernelized(twinkle, model)
    assert replaced(report) == {"linear3": 1, "linear_silu_mul": 1, "linear_gelu": 1, "linear": 3}


def test_two_layers_that_share_a_weight_keep_sharing_it(twinkle):
    torch.manual_seed(4)
    parts = Plain(), Plain()
    parts[1].first.weight = parts[0].first.weight
    report = kernelized(twinkle, every(Model(*parts), "traced"))
    assert replaced(report) == {"linear_gelu": 2, "Linear": 2}


class Scaled(nn.Linear):
    """Not a torch.nn.Linear: it does more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * F.linear(x, self.weight, self.bias)


class SwiGLU(nn.Module):
    def __init__(self, projection=nn.Linear):
        super().__init__()
        self.gate_proj, self.up_proj = projection(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down_proj, self.act_fn = nn.Linear(HIDDEN, WIDTH, bias=False), nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


MLP_MANIFEST = 'presets = ["linear"]\n[layers.SwiGLUMLP]\nclasses = ["test_linear.SwiGLU"]\n'


@pytest.mark.parametrize("how", ["traced", "scripted"])
def test_a_gated_mlp_multiplies_by_its_projections_at_once(twinkle, how):
    torch.manual_seed(5)
    model = Model(SwiGLU()).eval()
    SwiGLU.__module__ = "test_linear"
    report = kernelized(twinkle, every(model, how), manifest=MLP_MANIFEST)
    assert replaced(report) == {"SwiGLU": 1, "Linear": 1}
    assert "linear_silu_mul" in twinkle("inspect", "fast.pt", "--graph", "test_linear.SwiGLU").out


@pytest.mark.parametrize("how", ["traced", "scripted"])
def test_a_projection_of_another_class_is_called(twinkle, how):
    torch.manual_seed(6)
    SwiGLU.__module__ = Scaled.__module__ = "test_linear"
    report = kernelized(twinkle, every(Model(SwiGLU(Scaled)), how), manifest=MLP_MANIFEST)
    assert replaced(report)["SwiGLU"] == 1
    assert not put_back(report)
    graph = twinkle("inspect", "fast.pt", "--graph", "test_linear.SwiGLU").out
    assert "linear_silu_mul" not in graph
    assert "silu_mul" in graph


def test_training_keeps_the_gradients_of_linear_layers(twinkle):
    torch.manual_seed(7)
    SwiGLU.__module__ = "test_linear"
    report = kernelized(twinkle, every(Model(SwiGLU(), Plain()), "scripted"), "--mode", "training", "--strict",
                        manifest=MLP_MANIFEST)
    assert replaced(report)["SwiGLU"] == 1 and report["verified"]
    assert not put_back(report)


def test_the_preset_holds_without_a_manifest(twinkle):
    torch.manual_seed(8)
    report = kernelized(twinkle, every(Model(Plain()), "traced"), manifest="")
    assert replaced(report) == {"linear_gelu": 1, "Linear": 1}


ASKS = """import torch
from torch import nn


class RMSNorm(nn.Module):
    inner: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.inner, {}):
            return torch.nn.functional.linear(x, self.inner.weight, self.inner.bias)
        return x + self.inner.no_such_attribute
"""


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


@pytest.mark.parametrize("asked, why", [("nn.Linear", ""), ("torch.nn.Linear", ""),
                                        ("nn.LayerNorm", "has no attribute no_such_attribute")])
def test_a_layer_asks_for_the_class_of_a_submodule(twinkle, tmp_path, asked, why):
    torch.manual_seed(9)
    Holder.__module__ = "test_linear"
    python_kernel(tmp_path, ASKS.format(asked), classes=("test_linear.Holder",))
    manifest = (tmp_path / "twinkle.toml").read_text()
    site = kernelized(twinkle, every(Model(Holder()), "traced"), manifest=manifest)["sites"][0]
    assert site["status"] == ("kept" if why else "replaced")
    assert why in site["because"]
