"""Patterns: formulas found in the graphs of models, whatever computes them is called. Those of the preset on models of
transformers, and a user's own on models made to break them."""

import importlib.util

import pytest
from kernels_for_tests import made_models, needs_runtime
from pattern_projects import assert_same, by_site, counts, pattern_project, save  # noqa: F401

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

ATTENTION = {"scaled_dot_product_attention": 2}
# What the preset "patterns" alone replaces in the models of tests/models.
FOUND = {
    "llama": {"add_rms_norm": 4, "rms_norm": 1, "silu_mul": 2, "rotary": 4, **ATTENTION},
    "llama_float16": {"add_rms_norm": 4, "rms_norm": 1, "silu_mul": 2, "rotary": 4, **ATTENTION},
    "gemma_bfloat16": {"add_rms_norm": 4, "rms_norm": 1, "gelu_tanh_mul": 2, "rotary": 4, **ATTENTION},
    "phi3_float16": {"add_rms_norm": 4, "rms_norm": 1, "silu_and_mul": 2, "partial_rotary": 4, **ATTENTION},
    "t5_float16": {"rms_norm": 12, "scaled_dot_product_attention": 6},
    "gpt2": {"add_layer_norm": 5, "gelu_new": 2, **ATTENTION},
    "bert": {"add_layer_norm": 5, **ATTENTION},
}
# … and with the preset "transformers" before it: layers are more than what patterns find in them.
WITH_LAYERS = {
    "llama_float16": ({"add_rms_norm": 4, "rotary": 4, **ATTENTION}, {"LlamaRMSNorm": 1, "LlamaMLP": 2}),
    "gpt2": ({"add_layer_norm": 5, **ATTENTION}, {"NewGELUActivation": 2}),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_preset_on_models_of_transformers(project, name):
    report = project.kernelized('presets = ["patterns"]', "int64[2,12]:1..90" if "t5" not in name else
                                "int64[2,12]:1..90;int64[2,9]:1..90", model=made_models() / f"traced/{name}.pt")
    assert counts(report, "pattern") == FOUND[name], report
    assert report["kept"] == 0 and counts(report, "pattern", "reverted") == {}
    for site in report["sites"]:
        assert site["max_error"] <= site["allowed_error"]


@pytest.mark.parametrize("name", WITH_LAYERS)
def test_layers_and_patterns_together(project, name):
    presets = 'presets = ["transformers", "patterns"]'
    report = project.kernelized(presets, "int64[2,12]:1..90", model=made_models() / f"traced/{name}.pt")
    patterns, layers = WITH_LAYERS[name]
    assert counts(report, "pattern") == patterns and counts(report, "layer") == layers
    # What a pattern has taken in is no site any more.
    across = [site for site in report["sites"] if site["of"].startswith("add_")]
    assert all("with its " in site["because"] for site in across)
    again = project("kernelize", "fast.pt", "--dry-run", "--json")
    sites = by_site(again.json)
    assert again.code == 0
    assert all(sites[site["site"]]["because"] == "it is kernelized already" for site in across)


# --- a user's own pattern -------------------------------------------------------------------------------------------

FORMULAS = """import torch


def norm(x, weight, eps: float):
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h.to(x.dtype)


def fast(x, weight, eps: float):
    h = x.to(torch.float32)
    return weight * (h / torch.sqrt((h * h).mean(-1, keepdim=True) + eps)).to(x.dtype)


def wrong(x, weight, eps: float):
    return 1.01 * fast(x, weight, eps)


def gate(gate, up):
    return torch.nn.functional.silu(gate) * up


def fast_gate(gate, up):
    return gate * torch.sigmoid(gate) * up
"""
NORM = '[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "formulas.py:{}"\n'
GATE = '[patterns.gate]\npattern = "formulas.py:gate"\nfunc_impl = "formulas.py:fast_gate"\n'
INPUT = "float32[2,5,16]"


class Norm(nn.Module):
    """As Norm.formula computes it, which tests exchange."""

    def __init__(self, eps: float = 1e-3):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class Block(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.up, self.gate, self.norm = nn.Linear(16, 16), nn.Linear(16, 16), norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        return x + F.silu(self.gate(h)) * self.up(h)


class Model(nn.Module):
    def __init__(self, norm=Norm):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.blocks = nn.ModuleList([Block(norm()), Block(norm())])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x


def saved(project, model, how):
    return save(project, model, how, FORMULAS)


@pytest.mark.parametrize("how", ["scripted", "traced", "frozen"])
def test_a_pattern_of_the_users_own(project, how):
    torch.manual_seed(3)
    model = saved(project, Model(), how)
    report = project.kernelized("presets = []\n" + NORM.format("fast") + GATE, INPUT)
    assert counts(report, "pattern") == {"norm": 2, "gate": 2} and report["kept"] == 0, report
    sites = by_site(report)
    if how == "frozen":
        names = {f"forward:twinkle_patterns.{name}{n}" for name in ("norm", "gate") for n in ("", "#2")}
    else:
        names = {f"blocks.{i}.{name}" for i in (0, 1) for name in
                 ("norm.forward:twinkle_patterns.norm", "forward:twinkle_patterns.gate")}
    assert set(sites) == names
    assert all(site["kernel"].startswith("formulas.py: fast") for site in sites.values())
    x = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8))
    assert_same(project, model, x)


@pytest.mark.parametrize("how", ["scripted", "traced", "frozen"])
def test_a_wrong_replacement_is_put_back(project, how):
    torch.manual_seed(3)
    model = saved(project, Model(), how)
    report = project.kernelized("presets = []\n" + NORM.format("wrong") + GATE, INPUT)
    assert counts(report, "pattern", "reverted") == {"norm": 2} and counts(report, "pattern") == {"gate": 2}
    assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))
    done = project("kernelize", "model.pt", "--inputs", INPUT, "--verify", "--strict")
    assert done.code == 4 and "twinkle_patterns.norm" in done.err


@pytest.mark.parametrize("how", ["scripted", "traced", "frozen"])
def test_what_is_put_back_leaves_its_place_to_the_next_pattern(project, how):
    """Both compute the same: the first in the manifest takes the place, the second where that is wrong."""
    torch.manual_seed(3)
    model = saved(project, Model(), how)
    second = NORM.format("fast").replace("[patterns.norm]", "[patterns.second]")
    right = project.kernelized("presets = []\n" + NORM.format("fast") + second, INPUT)
    assert counts(right, "pattern") == {"norm": 2} and right["kept"] == 0 and len(right["sites"]) == 2
    report = project.kernelized("presets = []\n" + NORM.format("wrong") + second, INPUT)
    assert counts(report, "pattern", "reverted") == {"norm": 2} and counts(report, "pattern") == {"second": 2}
    assert all(site["max_error"] <= site["allowed_error"] for site in report["sites"] if site["of"] == "second")
    for site in report["sites"]:
        (candidate,) = site["candidates"]
        wrong = site["because"] if site["status"] == "reverted" else None
        assert candidate == {"kernel": site["kernel"], "variant": None, "because": wrong}
    assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))


def test_one_place_alone(project):
    saved(project, Model(), "frozen")
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT, "--exclude", "*norm")
    assert {name: site["status"] for name, site in by_site(report).items()} == {
        "forward:twinkle_patterns.norm": "kept", "forward:twinkle_patterns.norm#2": "replaced"}
    torch.manual_seed(3)
    model = saved(project, Model(), "scripted")
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT, "--only", "blocks.1.*")
    assert by_site(report)["blocks.1.norm.forward:twinkle_patterns.norm"]["status"] == "replaced"
    assert report["replaced"] == 1
    assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))


# --- what nearly matches --------------------------------------------------------------------------------------------

class OtherEpsilonPlace(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * (torch.rsqrt(h.pow(2).mean(-1, keepdim=True)) + self.eps)
        return self.weight * h.to(x.dtype)


class OtherDimension(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-2, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class OtherPower(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.abs().pow(2.5).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class NotKept(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1).unsqueeze(-1) + self.eps)
        return self.weight * h.to(x.dtype)


class AnotherFactor(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = (h + 1) * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


class RoundedBetween(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True).to(torch.bfloat16) + self.eps)
        return self.weight * h.to(x.dtype)


@pytest.mark.parametrize("how", ["scripted", "traced"])
@pytest.mark.parametrize("norm", [OtherEpsilonPlace, OtherDimension, OtherPower, NotKept, AnotherFactor,
                                  RoundedBetween])
def test_what_nearly_matches_is_no_place(project, norm, how):
    saved(project, Model(norm), how)
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)
    assert report["sites"] == [] and "the pattern norm is nowhere in this model" in report["warnings"][0]


def test_each_place_has_its_own_constants(project):
    torch.manual_seed(3)
    model = Model()
    model.blocks[1].norm.eps = 0.5
    for how in ("scripted", "traced", "frozen"):
        saved(project, model, how)
        report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)
        assert counts(report, "pattern") == {"norm": 2}
        assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))


# Written in other ways, it is the same.
class InOtherWords(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.float()
        variance = torch.mean(h * h, dim=(-1,), keepdim=True)
        h = (1.0 / torch.sqrt(self.eps + variance)) * h
        return h.type_as(x) * self.weight


# The cast says nothing new: what is gathered keeps its dtype.
class Gathered(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.gather(x.to(torch.float32), -1, torch.argsort(x, -1))
        h = h.to(torch.float32) * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


@pytest.mark.parametrize("how", ["scripted", "traced", "frozen"])
@pytest.mark.parametrize("norm", [InOtherWords, Gathered])
def test_other_ways_to_write_it(project, norm, how):
    torch.manual_seed(3)
    model = saved(project, Model(norm), how)
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)
    assert counts(report, "pattern") == {"norm": 2}, report
    assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))


MOVED = """
import torch
class Moved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 16))
        self.eps = 1e-3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, order = x.to(torch.float32), torch.argsort(x, -1)
        h = {moved}
        h = h.to(torch.float32) * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)
"""


@pytest.mark.parametrize("moved", [
    "torch.take_along_dim(h, order, -1)", "h.scatter(-1, order, h)", "torch.tile(h, [2, 1, 1])[:2]",
    "torch.diagonal(h.unsqueeze(0).expand(2, -1, -1, -1), 0, 0, 1).permute(2, 0, 1)", "h.index_put([order[0, 0, :1] % 2], h[:1])", "h.roll(1, -1)",
    "torch.stack([h, h])[1]"])
def test_operators_that_keep_the_dtype(project, tmp_path, moved):
    """The cast behind them says nothing new."""
    (tmp_path / "moved.py").write_text(MOVED.format(moved=moved))
    spec = importlib.util.spec_from_file_location("moved", tmp_path / "moved.py")
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    saved(project, Model(module.Moved), "scripted")
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)
    assert counts(report, "pattern") == {"norm": 2}, report


# --- what is refused ------------------------------------------------------------------------------------------------

class UsedElsewhere(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        squares = h.pow(2)
        h = h * torch.rsqrt(squares.mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype) + squares


class Written(Norm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.clone()
        scale = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        h.add_(1.0)
        return self.weight * (h * scale)


@pytest.mark.parametrize("how,norm,why", [
    ("scripted", UsedElsewhere, "is used elsewhere"), ("traced", UsedElsewhere, "is used elsewhere"),
    ("frozen", UsedElsewhere, "is used elsewhere"), ("scripted", Written, "writes into")])
def test_what_cannot_be_replaced_is_kept(project, norm, why, how):
    saved(project, Model(norm), how)
    manifest = "presets = []\n" + NORM.format("fast")
    report = project.kernelized(manifest, INPUT)
    assert counts(report, "pattern", "kept") == {"norm": 2}, report
    assert all(why in site["because"] for site in report["sites"])
    done = project("kernelize", "model.pt", "--inputs", INPUT, "--strict")
    assert done.code == 6 and why in done.err


def test_what_a_trace_has_written_in_place_is_another_value(project):
    saved(project, Model(Written), "traced")
    assert project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)["sites"] == []


class Forks(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.side = Norm(), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = torch.jit.fork(self.side, x)
        return self.norm(x) + torch.jit.wait(side)


@pytest.mark.parametrize("how", ["scripted", "frozen"])
def test_beside_what_is_forked(project, how):
    """Frozen, the weights of what is forked are constants in a graph of its own: the reference has them in double, too."""
    model = saved(project, Forks(), "scripted")
    if how == "frozen":
        torch.jit.freeze(torch.jit.script(model)).save(project.folder / "model.pt")
    report = project.kernelized("presets = []\n" + NORM.format("fast"), INPUT)
    assert counts(report, "pattern") == {"norm": 1}, report
    assert_same(project, model, torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8)))


def test_a_formula_that_makes_a_tensor_of_constants_is_looked_for(project):
    """In a trace without such a tensor it is nowhere."""
    formulas = FORMULAS + """

def shifted(x):
    return x.tanh() + torch.full([16], 1e-3, dtype=x.dtype)
"""
    save(project, Model(), "traced", formulas)
    report = project.kernelized('[patterns.shifted]\npattern = "formulas.py:shifted"\nfunc_impl = "formulas.py:shifted"\n', INPUT)
    assert counts(report, "pattern") == {} and any("shifted is nowhere" in one for one in report["warnings"])


def test_modes_and_devices(project):
    saved(project, Model(), "traced")
    report = project.kernelized("presets = []\n" + NORM.format("fast") + 'device = "cuda"\n', INPUT)
    assert [site["status"] for site in report["sites"]] == ["kept", "kept"]
    training = "presets = []\n" + NORM.format("norm") + 'mode = "training"\n'
    report = project.kernelized(training, INPUT, "--mode", "training")
    assert counts(report, "pattern") == {"norm": 2}


# --- manifests and formulas that are wrong --------------------------------------------------------------------------

@pytest.mark.parametrize("text,why", [
    ('pattern = "formulas.py"', '"pattern" is "file.py:function"'),
    ('pattern = ["formulas.py:norm", "other.py:norm"]', "functions of one file"),
    ("pattern = []", "empty"),
    ('patern = "formulas.py:norm"', "pattern"),
    ('pattern = "formulas.py:norm"\nfunc_impl = "formulas.py:fast"\nrepo_id = "a/b"', "exactly one of"),
])
def test_a_wrong_table(project, text, why):
    (project.folder / "formulas.py").write_text(FORMULAS)
    (project.folder / "twinkle.toml").write_text("presets = []\n[patterns.norm]\n" + text + "\n")
    done = project("resolve", "-o", "map.json")
    assert done.code == 2 and why in done.err


@pytest.mark.parametrize("formula,why", [
    ("def norm(x, weight):\n    return x + 1\n", "does not use weight"),
    ("def norm(x):\n    return x + 1, x\n", "not computed by any operator"),
    ("def norm(x):\n    x.add_(1)\n    return x + 1\n", "writes into nothing"),
    ("def norm(x):\n    if x.dim() > 2:\n        return x + 1\n    return x + 2\n", "straight-line"),
    ("def norm(x):\n    return x.to(torch.float32)\n", "no operator but casts"),
    ("def other(x):\n    return x + 1\n", "no function norm"),
    ("def norm(x):\n    return nowhere(x)\n", "nowhere"),
    ("def norm(x):\n" + "    x = x + 1\n" * 300 + "    return x\n", "more than"),
])
def test_a_wrong_formula(project, formula, why):
    saved(project, Model(), "traced")
    (project.folder / "formulas.py").write_text("import torch\n\n\n" + formula)
    done = project.kernelized('presets = []\n[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "op:aten::relu"',
                              INPUT, code=2)
    assert why in done.err
