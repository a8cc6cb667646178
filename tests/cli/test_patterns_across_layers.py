"""Patterns whose places lie on both sides of a layer's border: what is added at the end of one, and the norm that the next
begins with."""

from random import Random

import pytest
from kernels_for_tests import needs_runtime, python_kernel
from pattern_projects import assert_same, by_site, counts, pattern_project, save  # noqa: F401

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

FORMULAS = """import torch


def add_norm(x, residual, weight, eps: float):
    total = x + residual
    h = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h, total


def fast(x, residual, weight, eps: float):
    total = residual + x
    return weight * (total / torch.sqrt((total * total).mean(-1, keepdim=True) + eps)), total


def wrong(x, residual, weight, eps: float):
    total = residual + x
    return 1.01 * weight * (total / torch.sqrt((total * total).mean(-1, keepdim=True) + eps)), total
"""
MANIFEST = 'presets = []\n[patterns.add_norm]\npattern = "formulas.py:add_norm"\nfunc_impl = "formulas.py:{}"\n'
NORM = """

def norm(x, weight, eps: float):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))
"""
ALONE = '[patterns.norm]\npattern = "formulas.py:norm"\nfunc_impl = "formulas.py:norm"\n'
INPUT = "float32[2,5,16]"
NAME = "forward:twinkle_patterns.add_norm"
EVERY = ["scripted", "traced", "frozen"]


class Norm(nn.Module):
    def __init__(self, eps: float = 1e-3):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Layer(nn.Module):
    """As in most language models: two norms, two additions."""

    def __init__(self):
        super().__init__()
        self.first_norm, self.mixing, self.second_norm, self.mlp = Norm(), nn.Linear(16, 16), Norm(1e-2), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mixing(self.first_norm(x))
        return x + F.silu(self.mlp(self.second_norm(x)))


class Tuples(Layer):
    """Layers that return more than what they compute."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixed = self.mixing(self.first_norm(x))
        x = x + mixed
        return x + F.silu(self.mlp(self.second_norm(x))), mixed


class Model(nn.Module):
    def __init__(self, layer=Layer, layers=3):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList([layer() for _ in range(layers)])
        self.norm = Norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class ModelOfTuples(Model):
    def __init__(self):
        super().__init__(Tuples)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x, _ = layer(x)
        return self.norm(x)


class Half(nn.Module):
    """A norm, something that computes and an addition, as T5 has them: modules in its blocks."""

    def __init__(self):
        super().__init__()
        self.norm, self.mixing = Norm(), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.mixing(self.norm(x)))


class BlockOfHalves(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([Half(), Half()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for half in self.layer:
            x = half(x)
        return x


def another_input():
    return torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8))


@pytest.mark.parametrize("how", EVERY)
@pytest.mark.parametrize("kind", [Model, ModelOfTuples])
def test_layers(project, kind, how):
    model = save(project, kind(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, "--device", "cpu")
    assert counts(report, "pattern") == {"add_norm": 6} and report["kept"] == 0, report
    # All of them are in the method that has opened the layers, whatever else is left of these.
    assert set(by_site(report)) == {NAME, *(f"{NAME}#{n}" for n in range(2, 7))}
    assert_same(project, model, another_input())
    again = project("kernelize", "fast.pt", "--dry-run", "--json", "--device", "cpu").json
    assert again["replaced"] == 0 and set(by_site(again)) == set(by_site(report))


@pytest.mark.parametrize("how", EVERY)
def test_blocks_in_blocks(project, how):
    """What lies in a block that an inner place has opened already is found where it is now."""
    model = save(project, Model(BlockOfHalves), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, "--device", "cpu")
    assert counts(report, "pattern") == {"add_norm": 6} and report["kept"] == 0, report
    # All of them are in the method that has opened the layers, whatever else is left of these.
    assert set(by_site(report)) == {NAME, *(f"{NAME}#{n}" for n in range(2, 7))}
    assert_same(project, model, another_input())


@pytest.mark.parametrize("how", EVERY)
def test_a_wrong_replacement_is_put_back(project, how):
    model = save(project, Model(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("wrong"), INPUT, "--device", "cpu")
    assert counts(report, "pattern", "reverted") == {"add_norm": 6}
    assert_same(project, model, another_input())


@pytest.mark.parametrize("how", ["scripted", "traced"])
@pytest.mark.parametrize("excluded", [[""], ["#3"], ["#2", "#4", "#6"], ["", "#3", "#5"], ["*"]])
def test_some_of_them(project, how, excluded):
    model = save(project, Model(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, *(f"--exclude={NAME}{one}" for one in excluded))
    kept = 6 if excluded == ["*"] else len(excluded)
    assert counts(report, "pattern") == ({"add_norm": 6 - kept} if kept < 6 else {})
    assert counts(report, "pattern", "kept") == {"add_norm": kept}
    assert all(site["because"] == "excluded" for site in report["sites"] if site["status"] == "kept")
    assert_same(project, model, another_input())


class TwoOfOne(Model):
    """A layer that is called twice, and one that is called with something else, too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        x = self.layers[0](x)
        return self.norm(x) + self.norm(2 * x)


@pytest.mark.parametrize("how", EVERY)
def test_layers_that_are_called_again(project, how):
    model = save(project, TwoOfOne(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, "--device", "cpu")
    assert counts(report, "pattern")["add_norm"] >= 7, report
    assert_same(project, model, another_input())


class UsedBetween(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.layers:
            x = layer(x)
            kept.append(x.relu())
        return self.norm(x) + kept[0] + kept[1]


class WrittenBetween(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
            x.mul_(2.0)
        return self.norm(x)


@pytest.mark.parametrize("how", EVERY)
def test_what_reads_the_sum_between(project, how):
    model = save(project, UsedBetween(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, "--device", "cpu")
    # Scripted, it writes into a list between.
    assert counts(report, "pattern") == {"add_norm": 3 if how == "scripted" else 6}, report
    assert_same(project, model, another_input())


@pytest.mark.parametrize("how", EVERY)
def test_what_writes_between(project, how):
    model = save(project, WrittenBetween(), how, FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT, "--device", "cpu")
    assert counts(report, "pattern")["add_norm"] == 3, report
    assert_same(project, model, another_input())


class EndsInABranch(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mixing(self.first_norm(x))
        h = self.second_norm(x)
        if x.size(0) > 100:
            return x
        return x + F.silu(self.mlp(h))


class BeginsInABranch(Layer):
    """What is found in a branch would be lost if its method became part of another."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first_norm(x)
        if x.size(0) > 1:
            x = x + self.mixing(h)
            x = self.second_norm(x) + x
        return x + F.silu(self.mlp(x))


@pytest.mark.parametrize("layer", [EndsInABranch, BeginsInABranch])
def test_branches(project, layer):
    model = save(project, Model(layer), "scripted", FORMULAS)
    report = project.kernelized(MANIFEST.format("fast"), INPUT)
    assert set(by_site(report)) == {f"layers.{i}.{NAME}" for i in range(3)}
    assert_same(project, model, another_input())


LAYER = """import torch
from torch import nn


class Whole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mixing(self.first_norm(x))
        return x + torch.nn.functional.silu(self.mlp(self.second_norm(x)))
"""


@pytest.mark.parametrize("how", ["scripted", "traced"])
def test_a_layer_that_is_replaced_is_not_opened(project, how):
    model = save(project, Model(), how, FORMULAS)
    python_kernel(project.folder, LAYER, classes=["*.Layer"], layer="Whole")
    layers = (project.folder / "twinkle.toml").read_text()
    report = project.kernelized(MANIFEST.format("fast") + layers.replace("presets = []\n", ""), INPUT)
    assert counts(report, "layer") == {"Layer": 3} and counts(report, "pattern") == {}, report
    assert_same(project, model, another_input())


@torch.jit.script
def gate(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


class WithAFunction(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mixing(self.first_norm(x))
        return x + gate(self.mlp(self.second_norm(x)))


def test_calls_of_functions_stay_where_they_are_found(project):
    model = save(project, Model(WithAFunction), "scripted", FORMULAS + "\n\ndef gate(x):\n    return torch.nn.functional.silu(x)\n")
    functions = f'[functions.gate]\ntarget_module = "{__name__}"\nfunc_impl = "formulas.py:gate"\n'
    report = project.kernelized(MANIFEST.format("fast") + functions, INPUT)
    assert counts(report, "function") == {"gate": 3} and counts(report, "pattern") == {"add_norm": 3}, report
    assert_same(project, model, another_input())


# --- anything ---------------------------------------------------------------------------------------------------------

class Anything(nn.Module):
    """Norms, sums and other modules in a random order, some of them called again."""

    def __init__(self, random, depth):
        super().__init__()
        children = [Norm(random.choice([1e-3, 1e-2])), nn.Linear(16, 16)]
        if depth > 0:
            children += [Anything(random, depth - 1) for _ in range(random.randint(1, 3))]
        self.parts = nn.ModuleList(children)
        self.steps = [self.step(random) for _ in range(random.randint(2, 5))]
        self.both = random.random() < 0.3

    def step(self, random):
        kind = random.choice(["norm", "norm", "add", "add and norm", "linear", "part", "part", "part", "write", "tanh"])
        return kind, random.randrange(1, len(self.parts)), random.random() < 0.5

    def forward(self, x):
        others = [x, torch.tanh(x)]
        for kind, part, old in self.steps:
            other = others[0 if old else -1]
            if kind == "norm":
                x = self.parts[0](x)
            elif kind == "add":
                x = x + other
            elif kind == "add and norm":
                total = other + x
                x = self.parts[0](total) * 0.5 + total
            elif kind == "linear":
                x = torch.tanh(self.parts[1](x))
            elif kind == "write":
                x = x.clone()
                x.mul_(0.5)
            elif kind == "tanh":
                x = torch.tanh(x)
            else:
                x = self.parts[part](x)
                if isinstance(x, tuple):
                    x, more = x
                    others.append(more)
            others.append(x)
        return (x, others[-2]) if self.both else x


class Outside(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.inside(x)
        return result[0] + result[1] if isinstance(result, tuple) else result


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("seed", range(16))
def test_anything(project, seed):
    random = Random(seed)
    torch.manual_seed(seed)
    model = save(project, Outside(Anything(random, 3)), random.choice(["traced", "traced", "frozen"]), FORMULAS + NORM)
    # By themselves: nothing is rounded in another way.
    report = project.kernelized(MANIFEST.format("add_norm") + ALONE, INPUT, "--device", "cpu")
    assert all(site["status"] == "replaced" or site["because"] for site in report["sites"])
    assert counts(report, "pattern", "reverted") == {}, report
    assert_same(project, model, another_input(), 1e-4)


# --- beside layers, and again -----------------------------------------------------------------------------------------

LAYERS = """import torch
from torch import nn


class FNorm(nn.Module):
    weight: torch.Tensor
    eps: float

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps))


class Fails(nn.Module):
    nothing: float

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.nothing
"""
NORMS = '[layers.FNorm]\nrepo_path = "kernel"\nclasses = ["*.Norm"]\n'
FAILING = '[layers.Fails]\nrepo_path = "kernel"\nclasses = ["*.Layer"]\n'
SAME = MANIFEST.format("add_norm")


class NormBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.norm(x + torch.tanh(x)))


class TwoBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = NormBlock(), NormBlock()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))


@pytest.mark.parametrize("how", ["scripted", "traced"])
def test_in_a_layer_that_cannot_be_replaced(project, how):
    """Its norms are layers then, and what they were part of is kept."""
    model = save(project, Model(), how, FORMULAS)
    python_kernel(project.folder, LAYERS)
    report = project.kernelized(SAME + NORMS + FAILING, INPUT)
    assert counts(report, "layer") == {"Norm": 7} and counts(report, "layer", "kept") == {"Layer": 3}
    assert all(site["because"] == "nothing that is left computes it" for site in report["sites"]
               if site["kind"] == "pattern")
    assert_same(project, model, another_input())


@pytest.mark.parametrize("excluded", ["two.norm", "one*"])
def test_again(project, excluded):
    model = save(project, TwoBlocks(), "scripted", FORMULAS)
    python_kernel(project.folder, LAYERS)
    project.kernelized(SAME + NORMS, INPUT, "--exclude", excluded)
    again = project("kernelize", "fast.pt", "-o", "again.pt", "--inputs", INPUT, "--verify", "--json")
    assert again.code == 0, again.err
    assert all(site["max_error"] is not None for site in again.json["sites"] if site["status"] == "replaced")
    (project.folder / "again.pt").rename(project.folder / "fast.pt")
    assert_same(project, model, another_input())


def test_instances_of_a_class_are_verified_apart(project):
    model = save(project, TwoBlocks(), "scripted", FORMULAS + NORM)
    wrong = ALONE.replace("norm\"\nfunc_impl = \"formulas.py:norm", "norm\"\nfunc_impl = \"formulas.py:wrong_norm")
    with open(project.folder / "formulas.py", "a") as file:
        file.write("\n\ndef wrong_norm(x, weight, eps: float):\n    return 1.5 * norm(x, weight, eps)\n")
    report = project.kernelized(SAME + wrong, INPUT, "--exclude", "two*add_norm")
    assert counts(report, "pattern") == {"add_norm": 1} and counts(report, "pattern", "reverted") == {"norm": 1}
    assert_same(project, model, another_input())


def test_patterns_in_what_a_layer_has_put_there(project):
    model = save(project, NormBlock(), "scripted", FORMULAS + NORM)
    python_kernel(project.folder, LAYERS)
    report = project.kernelized("presets = []\n" + ALONE + NORMS, INPUT)
    assert counts(report, "layer") == {"Norm": 1}
    again = project("kernelize", "fast.pt", "-o", "again.pt", "--inputs", INPUT, "--verify", "--json")
    assert again.code == 0 and again.json["replaced"] == 0, again.err
    assert_same(project, model, another_input())


def test_classes_set_apart_inside_of_a_layer_that_cannot_be_replaced(project):
    """Their code is a copy then: places are known by where they are in it."""
    model = save(project, Model(), "scripted", FORMULAS + NORM)
    python_kernel(project.folder, LAYERS)
    report = project.kernelized("presets = []\n" + ALONE + FAILING, INPUT, "--exclude", "norm.*", "--exclude", "layers.1.first_norm.*")
    assert counts(report, "pattern") == {"norm": 5} and counts(report, "layer", "kept") == {"Layer": 3}, report
    assert_same(project, model, another_input())
