"""The choice per shape: each call of a tuned model gets the candidate that was measured to be the fastest for its size, by
plain TorchScript in the one file. What is slow here is so by far, whatever the machine does; what a call runs is counted, not
timed."""

import concurrent.futures
import importlib.util
import json

import pytest
from kernels_for_tests import AMPLE, NO_TIME, found_of, needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

# Products of 1/256 are 1/256 again: smaller ones would become denormal numbers, with which some CPUs take ten times as long.
WORK = """import torch
from torch import nn


def work(x, times: int):
    z = torch.full([256, 256], 0.00390625, dtype=x.dtype)
    for i in range(times):
        z = torch.mm(z, z)
    return 0.0 * z[0, 0]

"""
LAYER = WORK + """
class Layer(nn.Module):
    def forward(self, x):
        rows = x.numel() // 64
        return {result} + work(x, {few} if rows <= 32 else {many})
"""
FUNCTION = WORK + """
def doubled(x):
    rows = x.numel() // 64
    return {result} + work(x, {few} if rows <= 32 else {many})
"""
CANDIDATE = '[[layers.Layer]]\nrepo_path = "{}"\nlayer_name = "Layer"\nclasses = ["{}"]\n'
PLAIN = """import torch


def doubled(x):
    z = (0 * x.sum() + 0.00390625).reshape(1, 1).expand(256, 256)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    z = torch.mm(z, z)
    return x * 2 + 0.0 * z[0, 0]
"""
PATTERN = '[[patterns.doubled]]\npattern = "formula.py:doubled"\nfunc_impl = "{}.py:doubled"\n'
# By kind of site: a layer in scripted and in traced code, a call, one that a trace has inlined, and a place of a pattern.
MODELS = ["model.pt", "traced.pt", "calling.pt", "inlined.pt", "places.pt"]
IMPLEMENTATION = '[[functions.doubled]]\ntarget_module = "my_pkg.ops"\nfunc_impl = "{}.py:doubled"\n'
# Of two that do the same one may be surely faster, as `2 * x` and `x + x` are not alike: beside "best" stand those that take a
# product more than it.
PACKAGES = {
    "small": {"few": 0, "many": 24, "result": "x * 2"},
    "large": {"few": 24, "many": 0, "result": "x + x"},
    "best": {"few": 0, "many": 0, "result": "2 * x"},
    "small_once": {"few": 1, "many": 24, "result": "x * 2"},
    "large_once": {"few": 24, "many": 1, "result": "x + x"},
    "slow": {"few": 24, "many": 24, "result": "2 * x"},
    "odd": {"few": 0, "many": 0, "result": "x * (2.1 if rows == 16 else 2.0)"},
    "odd_once": {"few": 1, "many": 1, "result": "x * (2.1 if rows == 16 else 2.0)"},
    "picky": {"few": 0, "many": 0, "result": "x.view(128 if rows > 32 else rows, 64) * 2"},
}
SIZES = ["--tune", "--budget", AMPLE, "--tune-sizes", "1,16", "--inputs", "float32[128,64]"]
WITHOUT_TIME = [NO_TIME if one == AMPLE else one for one in SIZES]


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.full([256, 256], 0.00390625, dtype=x.dtype) + 0 * x.sum()  # a trace is no constant then
        for _ in range(8):
            z = torch.mm(z, z)
        return x * 2 + 0.0 * z[0, 0]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.line = Doubling(), Doubling(), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.line(self.first(x)))


class Bounded(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.size(0) <= 200
        return self.second(self.line(self.first(x)))


def doubled(x: torch.Tensor) -> torch.Tensor:
    z = torch.full([256, 256], 0.00390625, dtype=x.dtype) + 0 * x.sum()
    for _ in range(8):
        z = torch.mm(z, z)
    return x * 2 + 0.0 * z[0, 0]


doubled.__module__ = "my_pkg.ops"


class Calling(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return doubled(self.line(doubled(x)))


class Inlined(Calling):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.line(self.function(x)))


def plain_function(folder):
    """As a trace sees it: code in a file my_pkg/ops.py."""
    path = folder / "my_pkg/ops.py"
    path.parent.mkdir()
    path.write_text(PLAIN)
    spec = importlib.util.spec_from_file_location("my_pkg_ops", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.doubled


@pytest.fixture(name="project")
def model_and_packages(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"
    twinkle.env["XDG_CACHE_HOME"] = twinkle.folder / "cache"
    model = torch.jit.script(Model().eval())
    model.save(twinkle.folder / "model.pt")
    torch.jit.trace(Model().eval(), torch.ones(3, 64)).save(twinkle.folder / "traced.pt")
    torch.jit.script(Calling().eval()).save(twinkle.folder / "calling.pt")
    inlined = torch.jit.trace(Inlined(plain_function(twinkle.folder)).eval(), torch.ones(3, 64))
    inlined.save(twinkle.folder / "inlined.pt")
    inlined.save(twinkle.folder / "places.pt")
    (twinkle.folder / "formula.py").write_text(PLAIN)
    classes = f"{Doubling.__module__}.{model.first.original_name}"
    for package, values in PACKAGES.items():
        (twinkle.folder / package).mkdir()
        (twinkle.folder / package / "__init__.py").write_text("")
        (twinkle.folder / package / "layers.py").write_text(LAYER.format(**values))
        (twinkle.folder / f"{package}.py").write_text(FUNCTION.format(**values))

    def bind(packages, places=False):
        tables = [PATTERN.format(one) if places else CANDIDATE.format(one, classes) + IMPLEMENTATION.format(one)
                  for one in packages]
        (twinkle.folder / "twinkle.toml").write_text("presets = []\n" + "".join(tables))

    def kernelized(packages, *more, model="model.pt", output="tuned.pt"):
        bind(packages, places=model == "places.pt")
        done = twinkle("kernelize", model, "-o", output, "--json", *(more or SIZES))
        assert done.code == 0, done.err
        return done.json

    twinkle.bind, twinkle.kernelized = bind, kernelized
    return twinkle


def parts(site):
    """Who serves which rows: [(up to, kernel)]."""
    return [(one["up_to"], one["kernel"] and one["kernel"].split(":")[0].removesuffix(".py")) for one in site["by_size"]]


def products(model, x):
    """How many matrix products a call does: all that is slow in these models."""
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(x)
    return sum(event.name == "aten::mm" for event in profile.events())


@pytest.mark.parametrize("model", MODELS)
def test_each_call_gets_what_is_the_fastest_for_its_size(project, model):
    report = project.kernelized(["small", "large"], model=model)
    assert report["replaced"] == 2 and report["reverted"] == 0
    for site in report["sites"]:
        assert parts(site) == [(32, "small"), (None, "large")], site
        assert "0 to 32 rows: small" in site["because"] and "from 33 rows on: large" in site["because"]
        assert all(one["because"] is None for one in site["candidates"])
        rows = {(one["rows"], (one["kernel"] or "original").split(":")[0].removesuffix(".py")) for one in site["measured"]}
        assert rows >= {(rows, who) for rows in (1, 16, 128) for who in ("original", "small", "large")}
    for name in ("small", "large"):
        project.kernelized([name], "--inputs", "float32[128,64]", model=model, output=f"{name}.pt")
    # Any LibTorch runs it: no operator and no class of twinkle is in it.
    tuned = torch.jit.load(project.folder / "tuned.pt")
    graph = str(tuned.inlined_graph)
    assert "aten::numel" in graph and "twinkle::" not in graph
    original, small, large = (torch.jit.load(project.folder / name) for name in (model, "small.pt", "large.pt"))
    for rows in (1, 16, 128):
        x = torch.randn(rows, 64)
        torch.testing.assert_close(tuned(x), original(x))
        assert products(tuned, x) == min(products(small, x), products(large, x)) == 0 < products(original, x)


def test_the_choice_survives_whatever_is_done_with_the_model(project):
    project.kernelized(["small", "large"])
    original, tuned = (torch.jit.load(project.folder / name) for name in ("model.pt", "tuned.pt"))
    tuned.save(project.folder / "again.pt")
    again = torch.jit.load(project.folder / "again.pt")
    frozen = torch.jit.freeze(again.eval())
    frozen.save(project.folder / "frozen.pt")
    frozen = torch.jit.load(project.folder / "frozen.pt")
    inputs = [torch.randn(rows, 64) for rows in (1, 2, 3, 16, 31, 32, 33, 64, 128, 1000)] + [torch.zeros(0, 64)]
    for model in (tuned, again, frozen):
        assert "aten::numel" in str(model.inlined_graph)
        for x in inputs:
            torch.testing.assert_close(model(x), original(x))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for x, y in zip(inputs * 4, pool.map(model, inputs * 4)):
                torch.testing.assert_close(y, original(x))
    assert project("run", "again.pt", "--inputs", "float32[7,64]").code == 0


def test_the_original_serves_the_sizes_in_which_it_is_the_fastest(project):
    report = project.kernelized(["large"])
    for site in report["sites"]:
        assert parts(site) == [(32, None), (None, "large")]
    tuned = torch.jit.load(project.folder / "tuned.pt")
    for rows in (1, 128):
        x = torch.randn(rows, 64)
        torch.testing.assert_close(tuned(x), torch.jit.load(project.folder / "model.pt")(x))


def test_nothing_is_chosen_where_one_candidate_wins_everywhere(project):
    report = project.kernelized(["small_once", "best", "large_once"])
    for site in report["sites"]:
        assert site["by_size"] == [] and site["kernel"] == "best: Layer"
        reasons = {one["kernel"]: one["because"] for one in site["candidates"]}
        assert reasons["best: Layer"] is None and "times as fast as the original here, with 1 to 128 rows" in reasons["small_once: Layer"]
    assert "aten::numel" not in str(torch.jit.load(project.folder / "tuned.pt").first.graph)


@pytest.mark.parametrize("model", MODELS)
def test_there_may_be_more_candidates_than_sites(project, model):
    """They are made in copies of the model, of which the second is made when nothing else holds the first."""
    packages = ["slow", "odd_once", "large_once", "small_once", "best"]
    report = project.kernelized(packages, model=model)
    for site in report["sites"]:
        assert [one["kernel"].split(":")[0].removesuffix(".py") for one in site["candidates"] if one["because"] is None] == ["best"], site
        measured = {(one["kernel"] or "original").split(":")[0].removesuffix(".py") for one in site["measured"] if not one["problem"]}
        assert measured == {*packages, "original"}
    x = torch.randn(16, 64)
    torch.testing.assert_close(torch.jit.load(project.folder / "tuned.pt")(x), torch.jit.load(project.folder / model)(x))


@pytest.mark.parametrize("model", MODELS)
def test_what_is_wrong_in_one_size_is_banned_there_alone(project, model):
    report = project.kernelized(["odd"], model=model)
    for site in report["sites"]:
        assert parts(site) == [(4, "odd"), (32, None), (None, "odd")], site
        problems = {(one["rows"], one["problem"] is not None) for one in site["measured"] if one["kernel"]}
        assert problems >= {(1, False), (16, True), (128, False)}
        assert all("its error is" in one["problem"] for one in site["measured"] if one["problem"])
    original, tuned = (torch.jit.load(project.folder / name) for name in (model, "tuned.pt"))
    for rows in (1, 4, 15, 16, 17, 128, 200):
        x = torch.randn(rows, 64)
        torch.testing.assert_close(tuned(x), original(x))


def test_what_raises_in_one_size_is_banned_there_alone(project):
    """127 rows are compared because 128 are measured: right for even sizes is not right."""
    report = project.kernelized(["picky"])
    for site in report["sites"]:
        assert parts(site) == [(32, "picky"), (None, None)]
        assert any("it cannot be run" in (one["problem"] or "") and one["rows"] == 128 for one in site["measured"])


def test_nothing_is_asked_twice(project):
    def store():
        return {path: path.read_bytes() for path in (project.folder / "cache").rglob("*.json")}

    first = project.kernelized(["small", "odd", "large"])
    known = store()
    assert known
    # Where nothing is measured, no time is needed.
    again = project.kernelized(["small", "odd", "large"], *WITHOUT_TIME)
    assert store() == known
    for one, other in zip(first["sites"], again["sites"]):
        assert parts(one) == parts(other) and found_of(one) == found_of(other)
        assert {was["from_store"] for was in one["measured"]} == {False} and {was["from_store"] for was in other["measured"]} == {True}
    # Both sites are called alike: each time is told twice, and counted once.
    assert first["tuning"] == {"measured": len(first["sites"][0]["measured"]), "known": 0}
    assert again["tuning"] == {"measured": 0, "known": len(first["sites"][0]["measured"])}
    # Another candidate is measured alone, also where its name has been another's.
    (project.folder / "small/layers.py").write_text(LAYER.format(**PACKAGES["slow"]))
    report = project.kernelized(["small"])
    assert all(one["from_store"] == (one["kernel"] is None) for site in report["sites"] for one in site["measured"])
    assert all(site["status"] == "kept" for site in report["sites"]) and store().items() > known.items()
    # Looser values are another question.
    project.kernelized(["odd"], *SIZES, "--tolerance", "3")
    assert len(store()) > len(known) + 3


def test_the_time_is_shared_and_the_given_inputs_come_first(project):
    report = project.kernelized(["small", "large"], *WITHOUT_TIME)
    for site in report["sites"]:
        assert {one["rows"] for one in site["measured"]} == {128}
        assert site["by_size"] == [] and site["kernel"] == "large: Layer"


def test_a_report_says_when_nothing_is_left(project):
    report = project.kernelized(["slow"])
    assert [warning for warning in report["warnings"] if "nothing was replaced" in warning] == [
        "nothing was replaced: the model computes as before"]


def test_tune_fills_the_store_and_writes_a_model(project):
    project.bind(["small", "large"])
    arguments = ["tune", "model.pt", *SIZES[1:]]
    done = project(*arguments)
    assert done.code == 0, done.err
    assert not (project.folder / "tuned.pt").exists()
    lines = [line.split() for line in done.out.splitlines()]
    assert ["Doubling", "(2", "sites)", "128", "large:", "Layer"] in [line[:6] for line in lines if line[-1:] == ["chosen"]]
    shown = project("tune", "show", "--json").json["measurements"]
    assert not any(one["chosen"] for one in shown)  # which one serves is up to the order of a model's candidates, too
    fastest = [one for one in shown if one["fastest"]]
    assert {one["candidate"]["cfg"].get("kernel") for one in fastest} == {"small", "large"}
    assert {one["candidate"]["role"] for one in shown} == {"original", "other"}
    arguments = ["tune", "model.pt", *WITHOUT_TIME[1:]]  # nothing is left to be measured
    shown = project(*arguments).out.splitlines()
    assert all("store" in line and "this run" not in line for line in shown if line.startswith("Doubling (2 sites)"))
    assert any(line.startswith("0 measurements of this run, ") and line.endswith(" known from the store") for line in shown)
    done = project(*arguments, "-o", "tuned.pt", "--json")
    assert done.code == 0 and all(parts(site) == [(32, "small"), (None, "large")] for site in done.json["sites"])
    assert "aten::numel" in str(torch.jit.load(project.folder / "tuned.pt").inlined_graph)
    assert "original" in project("tune", "show").out


def test_tune_takes_the_candidates_of_a_mapping(project):
    """Made on another day: what the manifest says now does not count."""
    project.bind(["small", "large"])
    assert project("resolve", "-o", "made.map.json").code == 0
    project.bind(["slow"])
    arguments = ["tune", "model.pt", *SIZES[1:], "--map"]
    done = project(*arguments, "made.map.json", "-o", "tuned.pt", "--json")
    assert done.code == 0, done.err
    assert all(parts(site) == [(32, "small"), (None, "large")] for site in done.json["sites"])
    for name in ("tuned.pt", "made.map.json"):  # is read, and not written over
        before = (project.folder / name).read_bytes()
        done = project(*arguments, name, "-o", name)
        assert done.code == 2 and (project.folder / name).read_bytes() == before, done.err
    done = project(*arguments, "none.json")
    assert done.code == 3 and "none.json" in done.err
    done = project("tune", "show", "--map", "made.map.json")
    assert done.code == 2 and "show takes no --map" in done.err


def test_sizes_that_cannot_be_measured_are_named(project):
    torch.jit.script(Bounded()).save(project.folder / "bounded.pt")
    project.bind(["small", "large"])
    done = project("tune", "bounded.pt", "--inputs", "float32[128,64]", "--tune-sizes", "16,128,150,300", "--budget", NO_TIME, "--json")
    assert done.code == 0, done.err
    said = [one for one in done.json["warnings"] if "--tune-sizes" in one]
    assert len(said) == 1 and "300 is not measured" in said[0], done.json["warnings"]


def test_inputs_of_several_sizes(project):
    project.bind(["small", "large"])
    done = project("tune", "model.pt", "--inputs", "float32[128,64]", "--inputs", "float32[32,64]", "--budget", AMPLE, "--json")
    assert done.code == 0, done.err
    assert {one["rows"] for one in done.json["sites"][0]["measured"]} >= {32, 128}
    assert any(shape["size"] == "other inputs" and "[32,64]" in shape["inputs"] for shape in done.json["shapes"])


@pytest.mark.parametrize("arguments, words", [
    (["model.pt"], "tuning a model needs inputs"),
    (["model.pt", "more.pt", "--inputs", "float32[3,64]"], "one model is tuned at a time"),
    (["none.pt", "--inputs", "float32[3,64]"], "none.pt"),
    (["shwo"], "did you mean show"),
    (["show", "--inputs", "float32[3,64]"], "show takes no --inputs"),
    (["model.pt", "--inputs", "float32[3,64]", "-o", "model.pt"], "model.pt"),
])
def test_wrong_usage_of_tune(project, arguments, words):
    done = project("tune", *arguments)
    assert done.code in (2, 3) and words in done.err, done.err


def test_labels_are_in_the_model(project):
    project.kernelized(["small", "large"])
    inspected = project("inspect", "tuned.pt", "--json").json
    assert [label["site"] for label in inspected["labels"]] == ["first", "second"]
    for label in inspected["labels"]:
        assert [(one["from"], one["up_to"], one["kernel"]) for one in label["serves"]] == [
            (0, 32, "small: Layer"), (33, None, "large: Layer")]
        assert all(len(one["build"]) == 64 and one["cfg"]["layer"] == "Layer" for one in label["serves"])
        assert "0 to 32 rows" in label["because"]
    torch.jit.load(project.folder / "tuned.pt").save(project.folder / "again.pt")
    assert project("inspect", "again.pt", "--json").json["labels"] == inspected["labels"]
    shown = project("inspect", "again.pt").out
    assert "labels of replaced sites" in shown and "small: Layer or large: Layer" in shown
    assert project("inspect", "model.pt", "--json").json["labels"] == []


@pytest.mark.parametrize("text", ["", "no JSON", "[" * 1000, json.dumps({"schema": "twinkle.labels/1", "sites": 3}),
                                  json.dumps({"schema": "twinkle.labels/1", "sites": [1, {"site": 2}, {"site": "\x1b[31m", "serves": 3}]})])
def test_labels_from_outside_are_read_with_care(project, text):
    class Labelled(nn.Module):
        def __init__(self):
            super().__init__()
            self.twinkle_labels = text

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if self.twinkle_labels != "?" else x + 1

    torch.jit.script(Labelled()).save(project.folder / "labelled.pt")
    done = project("inspect", "labelled.pt")
    assert done.code == 0 and "\x1b" not in done.out


@pytest.mark.parametrize("frozen", [False, True])
def test_a_formula_s_weights_tell_layers_apart(twinkle, frozen):
    """Sizes of activations count in powers of two, weights exactly: 130 rows are another layer than 256."""
    twinkle.env["XDG_CACHE_HOME"] = twinkle.folder / "cache"
    for rows in (130, 256):
        model = torch.jit.trace(nn.Sequential(nn.Linear(128, rows, bias=False), nn.GELU()).eval(), torch.ones(3, 128))
        (torch.jit.freeze(model) if frozen else model).save(twinkle.folder / f"{rows}.pt")
        done = twinkle("tune", f"{rows}.pt", "--inputs", "float32[3,128]", "--tune-sizes", "3", "--budget", NO_TIME, "--json")
        assert done.code == 0 and [site["of"] for site in done.json["sites"]] == ["linear_gelu"], done.err
    entries = [entry for environment in json.loads(twinkle("tune", "export", "-").out)["environments"]
               for entry in environment["entries"] if entry["candidate"]["role"] == "original"]
    assert sorted([one.get("sizes") for one in entry["invocation"]["inputs"]][:2] for entry in entries) == [
        [[4, 128], [130, 128]], [[4, 128], [256, 128]]]
