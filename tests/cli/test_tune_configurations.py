"""Configurations of a candidate: keyword arguments of its operators, declared in the build's tuning.toml, measured, chosen by
size, and constants in the model's code. And candidates that crash, hang or fail in one size, which must not take the tuner
down."""

import json
import re

import pytest
from kernels_for_tests import AMPLE, NO_TIME, PATIENCE, compiled_kernel, found_of, libraries, metadata, needs_runtime  # noqa: F401
from test_tune_sizes import Doubling, parts

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

LAYER = """import torch
from torch import nn

from ._ops import ops


class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.{operator}(x) * 2
"""
TUNING = """version = 1

[operators.tuned.properties]
rows = "power-of-two"

[operators.tuned.forward.arguments]
mode = [0, 1, 2{more}]

[[operators.tuned.forward.defaults]]
cfg = {{ mode = {first} }}
"""


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.line = Doubling(), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(self.first(x))


@pytest.fixture(name="project")
def model_and_kernels(twinkle, libraries):  # noqa: F811
    twinkle.env |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": twinkle.folder / "cache", "TWINKLE_KERNELS": twinkle.folder, **PATIENCE}
    model = torch.jit.script(Model().eval())
    model.save(twinkle.folder / "model.pt")
    classes = f"{Doubling.__module__}.{model.first.original_name}"

    def kernel(operator, tuning=None):
        build = compiled_kernel(twinkle.folder, libraries.get("operators", f"for_{operator}"), f"for_{operator}",
                                LAYER.format(operator=operator), operator)
        if tuning:
            (build / "tuning.toml").write_text(tuning)
            metadata(build, f"for_{operator}")

    def tuned(operators, *more, code=0, budget=AMPLE):
        (twinkle.folder / "twinkle.toml").write_text("presets = []\n" + "".join(
            f'[[layers.Layer]]\nrepo_path = "{operator}"\nclasses = ["{classes}"]\n' for operator in operators))
        done = twinkle("tune", "model.pt", "--inputs", "float32[128,64]", "--tune-sizes", "1,16", "--budget", budget, "--json", *more)
        assert done.code == code, done.err
        return done.json["sites"][0] if code == 0 else done

    twinkle.kernel, twinkle.tuned = kernel, tuned
    return twinkle


def test_configurations_are_chosen_by_size(project):
    project.kernel("tuned", TUNING.format(more="", first=0))
    site = project.tuned(["tuned"], "-o", "tuned.pt")
    assert parts({"by_size": [one | {"kernel": one["kernel"] and one["kernel"].split("(")[-1]} for one in site["by_size"]]}) == [
        (32, "mode=1)"), (None, "mode=2)")], site
    assert {one["kernel"] for one in site["measured"]} == {None, "tuned: Layer", "tuned: Layer (mode=1)", "tuned: Layer (mode=2)"}
    labels = project("inspect", "tuned.pt", "--json").json["labels"]
    assert [one["cfg"]["mode"] for one in labels[0]["serves"]] == [1, 2]
    x = torch.randn(7, 64)
    torch.save((x,), project.folder / "in.pt")
    assert project("run", "tuned.pt", "--inputs", "in.pt", "-o", "out.pt").code == 0
    torch.testing.assert_close(torch.load(project.folder / "out.pt", weights_only=True),
                               torch.jit.load(project.folder / "model.pt")(x))
    # All of it is remembered.
    again = project.tuned(["tuned"], budget=NO_TIME)
    assert (again["by_size"], found_of(again)) == (site["by_size"], found_of(site))
    shown = project("tune", "show", "--json").json["measurements"]
    assert {one["candidate"]["cfg"].get("mode") for one in shown} == {None, 1, 2}


def test_configurations_are_chosen_again(project):
    project.kernel("tuned", TUNING.format(more="", first=0))
    site = project.tuned(["tuned"], "-o", "tuned.pt")
    assert project("inspect", "tuned.pt", "--choices", "choices.json").code == 0
    arguments = ["kernelize", "model.pt", "--choices", "choices.json", "--inputs", "float32[128,64]", "--json"]
    again = project(*arguments).json["sites"][0]
    assert again["by_size"] == site["by_size"] and "mode=2" in again["by_size"][-1]["kernel"]
    # A configuration that its operators do not have.
    path = project.folder / "choices.json"
    path.write_text(path.read_text().replace('"mode"', '"speed"'))
    again = project(*arguments).json["sites"][0]
    assert again["status"] == "kept" and "in its tuning.toml" in again["because"], again
    assert project(*arguments, "--strict").code == 6


def test_what_a_build_says_is_best_is_measured_too(project):
    """Its operator does something else where the code gives no configuration."""
    project.kernel("tuned", TUNING.format(more="", first=2))
    site = project.tuned(["tuned"])
    assert {one["kernel"] for one in site["measured"]} == {None, "tuned: Layer", "tuned: Layer (mode=1)", "tuned: Layer (mode=2)"}
    assert parts({"by_size": [one | {"kernel": one["kernel"] and one["kernel"].split("(")[-1]} for one in site["by_size"]]}) == [
        (32, "mode=1)"), (None, "mode=2)")], site


def tuned_layers(project, operators, layers=3):
    """Layers that are called alike: what was done, and the sites."""
    torch.jit.script(nn.Sequential(*(Doubling() for _ in range(layers)), nn.Linear(64, 64)).eval()).save(project.folder / "model.pt")
    (project.folder / "twinkle.toml").write_text("presets = []\n" + "".join(
        f'[[layers.Layer]]\nrepo_path = "{operator}"\nclasses = ["{Doubling.__module__}.Doubling"]\n' for operator in operators))
    done = project("-v", "tune", "model.pt", "--inputs", "float32[128,64]", "--tune-sizes", "1,16", "--budget", AMPLE, "--json")
    assert done.code == 0, done.err
    assert len(done.json["sites"]) == layers
    return done, done.json["sites"]


def test_layers_that_are_called_alike_share_the_candidates(project):
    project.kernel("tuned", TUNING.format(more="", first=0))
    done, sites = tuned_layers(project, ["tuned"])
    for site in sites:
        assert {one["kernel"] for one in site["measured"]} == {None, "tuned: Layer", "tuned: Layer (mode=1)", "tuned: Layer (mode=2)"}
        assert site["by_size"] == sites[0]["by_size"]
    # Three candidates, each in another layer: the model is run once for all.
    assert len(re.findall(r"tun(?:e|ing) 3 candidates", done.err)) == 1 and not re.findall(r"tun(?:e|ing) [12] candidates", done.err), done.err


@pytest.mark.parametrize("layers", [1, 2])
def test_where_candidates_are_more_than_layers_they_are_measured_together(project, layers):
    project.kernel("tuned", TUNING.format(more=", 3, 4", first=0))
    done, sites = tuned_layers(project, ["tuned"], layers)
    for site in sites:
        assert {one["kernel"] for one in site["measured"]} == {
            None, "tuned: Layer", *(f"tuned: Layer (mode={mode})" for mode in (1, 2, 3, 4))}
        assert [one["kernel"].split("(")[-1] for one in site["by_size"]] == ["mode=1)", "mode=2)"]
    assert re.findall(r"tun(?:e|ing) (\d+) ", done.err) == ["5"], done.err


def test_what_crashes_while_several_are_measured_is_found(project):
    project.kernel("crash_later")
    project.kernel("tuned", TUNING.format(more="", first=0))
    _, sites = tuned_layers(project, ["crash_later", "tuned"])
    for site in sites:
        reasons = {one["kernel"]: one["because"] or "" for one in site["candidates"]}
        assert "crashed" in reasons["crash_later: Layer"], reasons
        assert {"tuned: Layer", "tuned: Layer (mode=1)", "tuned: Layer (mode=2)"} <= {one["kernel"] for one in site["measured"]}
        assert all(one["kernel"] and one["kernel"].startswith("tuned") for one in site["by_size"]), site["by_size"]


@pytest.mark.parametrize("operator", ["crash", "hang"])
def test_what_crashes_costs_no_other_its_times(project, operator):
    """Compared after the other, which is measured once all are compared."""
    project.kernel(operator)
    project.kernel("tuned", TUNING.format(more="", first=0))
    site = project.tuned(["tuned", operator])
    assert {one["kernel"] for one in site["measured"] if not one["problem"]} == {
        None, "tuned: Layer", "tuned: Layer (mode=1)", "tuned: Layer (mode=2)"}
    assert [one["kernel"] for one in site["by_size"]] == ["tuned: Layer (mode=1)", "tuned: Layer (mode=2)"]


class Biased(nn.Module):
    """With so many rows of weights, of which one is used."""

    def __init__(self, rows: int):
        super().__init__()
        self.line, self.rows = nn.Linear(128, 128), nn.Parameter(torch.zeros(rows, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(x) + self.rows[0]


def test_weights_of_a_large_model_are_measured_as_they_come_from_memory(twinkle):
    twinkle.env |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": twinkle.folder / "cache"}
    for rows, weights in ((1, {None}), (1 << 17, {None, "memory"})):  # the second has 64 MiB and a little more
        torch.jit.trace(Biased(rows).eval(), torch.randn(1, 128)).save(twinkle.folder / "model.pt")
        done = twinkle("tune", "model.pt", "--inputs", "float32[1,128]", "--budget", "1", "--json")
        assert done.code == 0, done.err
        assert twinkle("tune", "export", "all.json").code == 0
        environments = json.loads((twinkle.folder / "all.json").read_text())["environments"]
        assert {one["invocation"]["extras"].get("weights") for all_of_it in environments for one in all_of_it["entries"]} == weights


def test_what_no_operator_takes_is_no_configuration(project):
    project.kernel("tuned", TUNING.format(more="", first=0).replace("mode", "speed"))
    site = project.tuned(["tuned"])
    assert {one["kernel"] for one in site["measured"]} == {None, "tuned: Layer"}
    assert any("none of its operators is configured" in (one["because"] or "") for one in site["candidates"])


def test_a_damaged_declaration_is_an_error_that_names_it(project):
    project.kernel("tuned", "version = 1\n[operators.tuned]\n")
    done = project.tuned(["tuned"], code=2)
    assert "tuning.toml" in done.err


def test_what_crashes_or_hangs_does_not_take_the_tuner_down(project):
    for operator in ("crash", "hang", "crash_on_more"):
        project.kernel(operator)
    project.kernel("tuned", TUNING.format(more="", first=0))
    site = project.tuned(["crash", "hang", "crash_on_more", "tuned"])
    reasons = {one["kernel"].split(":")[0]: one["because"] or "" for one in site["candidates"] if "mode" not in one["kernel"]}
    assert "crashed" in reasons["crash"] and "hung" in reasons["hang"] and "crashed" in reasons["crash_on_more"]
    assert [one["kernel"] for one in site["by_size"]] == ["tuned: Layer (mode=1)", "tuned: Layer (mode=2)"]


def test_what_is_slow_at_first_wins_if_it_is_fast_then(project):
    """Beside one that takes 12 ms in every call."""
    project.kernel("slow_at_first")
    project.kernel("tuned")
    site = project.tuned(["tuned", "slow_at_first"])
    assert {one["kernel"] for one in site["measured"]} == {None, "tuned: Layer", "slow_at_first: Layer"}
    assert site["kernel"] == "slow_at_first: Layer" and not site["by_size"], site


def test_the_bundled_linear_layer_is_configured(twinkle):
    twinkle.env |= {"OMP_NUM_THREADS": "2", "XDG_CACHE_HOME": twinkle.folder / "cache"}
    model = nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256)).eval()
    torch.jit.trace(model, torch.randn(4, 256)).save(twinkle.folder / "model.pt")
    done = twinkle("tune", "model.pt", "--inputs", "float32[4,256]", "--tune-sizes", "1,4", "--budget", "20", "--json", "-o", "tuned.pt")
    assert done.code == 0, done.err
    measured = {one["kernel"] for site in done.json["sites"] for one in site["measured"] if one["kernel"]}
    linear = {f"twinkle-pack: Linear (grain=0, way={way})" for way in (1, 2, 3)}
    grains = {f"twinkle-pack: LayerNorm (grain={grain}, reading=0)" for grain in (4096, 65536)}
    assert linear | grains <= measured, measured
    assert not any("reading=1" in one for one in measured)  # that is for GPUs
    x = torch.randn(9, 256)
    torch.save((x,), twinkle.folder / "in.pt")
    assert twinkle("run", "tuned.pt", "--inputs", "in.pt", "-o", "out.pt").code == 0
    with torch.no_grad():
        torch.testing.assert_close(torch.load(twinkle.folder / "out.pt", weights_only=True), model(x), rtol=1e-4, atol=1e-5)


def test_the_pack_declares_what_its_operators_take():
    tomllib = pytest.importorskip("tomllib")
    from conftest import ROOT
    declared = tomllib.loads((ROOT / "kernels/twinkle-pack/python/tuning.toml").read_text())["operators"]
    sources = "".join(path.read_text() for path in (ROOT / "kernels/twinkle-pack/src/operators").glob("*.cpp"))
    for name in declared:
        assert f'"{name}"' in sources or f'{name}(' in sources, name
