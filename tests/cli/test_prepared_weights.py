"""Weights that a layer prepares for itself: whose they are, what prepare may return, and what becomes of weights that
cannot be rounded."""

import pytest
from kernels_for_tests import needs_runtime
from precision_projects import Blocks, by_site, in_int8, project, spoiled  # noqa: F401 (fixtures)

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_an_exact_layer_may_prepare_its_weights_without_being_asked_for_fewer_bits(project, twinkle):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8", "LinearExact")
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "small.pt", "--json")
    assert done.code == 0, done.err
    assert {one["kernel"].split(": ")[1] for one in done.json["sites"]} == {"LinearExact"}
    assert "it computes in int8, which was not asked for" in str(done.json["sites"][0]["candidates"])
    weights = project.weights()
    assert weights["up.0.weight"].shape == (64, 128) and project.error() < 1e-6
    again = twinkle("kernelize", "small.pt", "--inputs", "inputs.pt", "-o", "again.pt", "--json")
    assert {one["because"] for one in again.json["sites"]} == {"it is kernelized already"}


def test_what_one_kernel_has_prepared_is_not_given_to_another(project, twinkle):
    """Both call their layer alike, and the first one is wrong."""
    project.save(nn.Sequential(nn.Linear(64, 64)), torch.randn(8, 64))
    layer = """import torch
import torch.nn.functional as F
from torch import nn


class Linear(nn.Module):
    weight: torch.Tensor
    bias: torch.Tensor | None

    def prepare(self):
        return {{"weight": self.weight * {}}}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight * {}, self.bias)
"""
    tables = ""
    for name, before, after in (("wrong", 2.0, 1.0), ("right", 4.0, 0.25)):
        (project.folder / name).mkdir()
        (project.folder / name / "__init__.py").write_text("")
        (project.folder / name / "layers.py").write_text(layer.format(before, after))
        tables += (f'[[layers.Linear]]\nrepo_path = "{name}"\nlayer_name = "Linear"\n'
                   'classes = ["torch.nn.modules.linear.Linear"]\n')
    (project.folder / "twinkle.toml").write_text(tables)
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "small.pt", "--json")
    assert done.code == 0, done.err
    assert [(one["status"], one["kernel"]) for one in done.json["sites"]] == [("replaced", "right: Linear")]
    assert project.error() < 1e-6


@pytest.mark.parametrize("spoil, keeps", [
    (lambda weight: weight.zero_(), True),
    (lambda weight: weight[3].zero_(), True),
    (lambda weight: weight[:, 5].mul_(1000), None),
    (lambda weight: weight[3].fill_(float("nan")), None),
    (lambda weight: weight[3].fill_(float("inf")), None),
])
def test_weights_that_are_hard_to_round(project, spoil, keeps):
    model = Blocks()
    with torch.no_grad():
        spoil(model.up[1].weight)
    project.save(model, torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=0.02)
    assert done.code == 0, done.err
    sites = by_site(done.json)
    if keeps:
        assert sites["up.1"]["status"] == "replaced" and sites["up.1"]["precision"] == "int8"
    small = torch.jit.load(project.folder / "small.pt")
    wanted, got = model(*project.inputs), small(*project.inputs)
    assert (wanted.isnan() == got.isnan()).all()
    if not wanted.isnan().any():
        assert ((got - wanted).norm() / wanted.norm()).item() <= 0.02


def test_a_wrong_scale_is_not_written(spoiled):
    project = spoiled("/ largest\n", "/ largest * 0.5\n")
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=0.02)
    assert done.code == 0 and in_int8(done.json) == []
    assert project.error() < 1e-6


def test_a_layer_that_cannot_be_prepared_keeps_its_original(spoiled):
    project = spoiled("        values, scales = rounded(self.weight, 127.0)",
                      "        if self.weight.size(1) != 128:\n"
                      "            raise ValueError(\"its depth is no multiple of 128\")\n"
                      "        values, scales = rounded(self.weight, 127.0)")
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0, done.err
    assert sorted(in_int8(done.json)) == [f"down.{i}" for i in range(4)]
    assert "its weights cannot be prepared: RuntimeError: ValueError: its depth is no multiple of 128" in by_site(done.json)["up.0"]["because"]


@pytest.mark.parametrize("returned, problem", [
    ("dict(weight=values)", "prepare must end with"),
    ("{\"training\": values}", "which is no tensor of the model"),
    ("{\"weight\": 1}", "returns something else than tensors"),
])
def test_what_prepare_must_return(spoiled, returned, problem):
    project = spoiled('return {"weight": values, "weight_scales": scales}', f"return {returned}")
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0, done.err
    assert in_int8(done.json) == [] and problem in by_site(done.json)["up.0"]["because"]
    assert project.error() < 1e-6


def test_a_crash_while_preparing_harms_only_its_layer(spoiled):
    project = spoiled("    values = torch.round", "    weight = weight + torch.zeros([1 << 50])\n    values = torch.round")
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0 and in_int8(done.json) == []
    assert "its weights cannot be prepared" in by_site(done.json)["up.0"]["because"]


NORM = """

class Norm(nn.Module):
    weight: torch.Tensor
    bias: torch.Tensor
    eps: float

    def prepare(self):
        return {"weight": self.weight + 0.0}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(input, [input.size(-1)], self.weight, self.bias, self.eps)
"""


class Normed(Blocks):
    def __init__(self):
        super().__init__()
        self.last = nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(super().forward(x))


def test_a_method_that_hung_is_not_run_again(spoiled, twinkle):
    """It would take as long for each layer that has it. The layers of another method are prepared."""
    project = spoiled('        return {"weight": self.weight.t().contiguous()}',
                      "        weight = self.weight\n"
                      "        while bool(weight[0, 0] > 100.0):\n"
                      "            weight = weight + 1.0\n"
                      '        return {"weight": weight.t().contiguous()}')
    with (project.kernel / "layers.py").open("a") as layers:
        layers.write(NORM)
    model = Normed()
    with torch.no_grad():
        model.up[0].weight[0, 0] = 101.0
    norm = f'[layers.LayerNorm]\nrepo_path = "{project.kernel}"\npackage_name = "fewer_bits"\nlayer_name = "Norm"\n' \
           'classes = ["torch.nn.modules.normalization.LayerNorm"]\n'
    project.save(model, torch.randn(2, 9, 64)).bind("LinearExact", more=norm)
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "-o", "small.pt", "--json",
                   env={"TWINKLE_SANDBOX_SECONDS": "3"})
    assert done.code == 0, done.err
    sites = by_site(done.json)
    hung = [name for name, one in sites.items() if "its weights cannot be prepared: it hung" in one["because"]]
    assert sorted(hung) == sorted(f"{part}.{i}" for part in ("up", "down") for i in range(4))
    assert {name for name, one in sites.items() if one["status"] == "replaced"} == {"last", *(f"norms.{i}" for i in range(4))}
