"""Fewer bits within an error that the user names: which layers get them, whether the error holds on these and on other
inputs, and what the file holds."""

import pytest
from kernels_for_tests import needs_runtime
from precision_projects import KERNEL, Blocks, by_site, in_int8, project, spoiled  # noqa: F401 (fixtures)

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Block(nn.Module):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(torch.relu(self.up(x)))

    def __init__(self):
        super().__init__()
        self.block = Block.Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


class Shared(nn.Module):
    """An embedding whose weight is that of the last layer, too."""

    def __init__(self, words=96, width=64):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.inner = nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.inner(self.embedding(ids)))


@pytest.mark.parametrize("scripted", [False, True])
def test_every_layer_where_the_error_allows_it(project, scripted):
    project.save(Blocks(), torch.randn(2, 9, 64), scripted=scripted).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0, done.err
    assert len(in_int8(done.json)) == 8
    whole = done.json["whole"]
    assert whole["allowed_error"] == 0.05 and 1e-4 < whole["max_error"] <= 0.05
    # The report's is the worst of all sizes.
    assert 1e-4 < project.error() <= whole["max_error"] * 1.001
    precision = done.json["precision"]
    assert precision["sites"] == {"int8": 8} and precision["weights_bytes"] < precision["original_bytes"] / 3
    assert {one.dtype for name, one in project.weights().items() if name.endswith("weight") and "norm" not in name} \
        == {torch.int8}
    size = (project.folder / "small.pt").stat().st_size
    assert size < (project.folder / "model.pt").stat().st_size


def test_as_many_layers_as_the_error_allows(project):
    project.save(Blocks(count=6), torch.randn(2, 9, 64)).bind("LinearInt8")
    all_error = project.run(max_error=1).json["whole"]["max_error"]
    counts = []
    for share in (0.9, 0.7, 0.5):
        done = project.run(max_error=share * all_error)
        assert done.code == 0, done.err
        counts.append(len(in_int8(done.json)))
        assert project.error() <= share * all_error
        left = [one for one in done.json["sites"] if one["kind"] == "layer" and not one.get("precision")]
        assert all("does not fit into what the model may have" in one["candidates"][0]["because"] for one in left)
    assert 12 > counts[0] >= counts[1] >= counts[2] > 0


def test_nothing_fits(project):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = project.run(max_error=1e-5)
    assert done.code == 0 and in_int8(done.json) == []
    assert any("takes the model's error above" in warning for warning in done.json["warnings"])
    assert project.error() < 1e-6
    assert {one.dtype for one in project.weights().values()} == {torch.float32}


def test_the_same_inputs_give_the_same_layers(project):
    project.save(Blocks(count=6), torch.randn(2, 9, 64)).bind("LinearInt8")
    all_error = project.run(max_error=1).json["whole"]["max_error"]
    first, second = (project.run(max_error=0.6 * all_error).json for _ in range(2))
    assert in_int8(first) == in_int8(second) and first["whole"] == second["whole"]


def test_a_mix_of_precisions(project):
    project.save(Blocks(count=6), torch.randn(2, 9, 64)).bind("LinearInt8", "LinearInt4")
    coarse = project.run(precision="int4", max_error=1).json["whole"]["max_error"]
    done = project.run(precision="int8,int4", max_error=coarse / 2)
    assert done.code == 0, done.err
    found = done.json["precision"]["sites"]
    assert set(found) == {"int8", "int4"} and sum(found.values()) == 12
    assert project.error() <= coarse / 2


def test_an_exact_kernel_serves_what_does_not_fit(project):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8", "LinearExact")
    done = project.run(max_error=1e-5)
    assert done.code == 0, done.err
    layers = [one for one in done.json["sites"] if one["kind"] == "layer"]
    assert len(layers) == 8
    assert {one["kernel"].split(": ")[1] for one in layers} == {"LinearExact"}
    assert {one["status"] for one in layers} == {"replaced"}
    assert project.error() < 1e-6


def test_an_exact_layer_does_not_give_way_to_a_coarser_one_of_a_narrower_range(project, twinkle):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearExact", "LinearInt8")
    bound = project.folder / "twinkle.toml"
    bound.write_text(bound.read_text().rstrip() + '\ndevice = "cuda"\ncapability = "90-999"\n')
    target = "torch=2.13,backend=cu130,arch=9.0,cpu=x86_64,os=linux,cxx11=1"
    done = twinkle("kernelize", "model.pt", "--target", target, "--device", "cuda", "--no-verify", "-o", "small.pt", "--json")
    assert done.code == 0, done.err
    for site in done.json["sites"]:
        reasons = {one["kernel"].split(": ")[1]: one["because"] for one in site["candidates"]}
        # Weights are prepared for this machine alone.
        assert "for another machine" in reasons["LinearExact"] and "not asked for" in reasons["LinearInt8"], reasons


class Rare(nn.Module):
    """A layer that the inputs of these tests do not reach."""

    def __init__(self):
        super().__init__()
        self.rare = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 1e9):
            return self.rare(x)
        return torch.relu(x)


def test_a_layer_whose_error_is_unknown_stays_exact(project):
    project.save(Rare(), torch.randn(2, 64), scripted=True).bind("LinearInt8")
    done = project.run()
    assert done.code == 0, done.err
    assert in_int8(done.json) == [] and "do not reach it" in by_site(done.json)["rare"]["because"]
    assert any("no layer computes in int8: none is right on these inputs" in one for one in done.json["warnings"])
    assert project.weights()["rare.weight"].dtype == torch.float32


def test_a_layer_that_is_wrong_in_fewer_bits_stays_exact(spoiled):
    project = spoiled("/ largest\n", "/ 0.0\n")
    project.save(nn.Sequential(nn.Linear(64, 64), nn.Sigmoid()), torch.randn(2, 64)).bind("LinearInt8")
    done = project.run()
    assert done.code == 0, done.err
    assert in_int8(done.json) == [] and project.error() < 1e-6


def test_the_error_of_a_layer_is_that_of_the_layers_inside_of_it(project):
    """A kernel serves the block, and calls the linear layers, which are coarser later."""
    project.save(Block(), torch.randn(5, 64))
    (project.folder / "block").mkdir()
    (project.folder / "block/__init__.py").write_text("")
    (project.folder / "block/layers.py").write_text("""import torch
from torch import nn


class Block(nn.Module):
    up: nn.Module
    down: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))
""")
    table = f'[[layers.Block]]\nrepo_path = "block"\nlayer_name = "Block"\nclasses = ["{Block.__module__}.Inner"]\n'
    project.bind("LinearInt8", more=table)
    done = project.run()
    assert done.code == 0, done.err
    sites = by_site(done.json)
    assert sorted(in_int8(done.json)) == ["block.down", "block.up"] and sites["block"]["status"] == "replaced"
    assert sites["block"]["max_error"] > 1e-3 and sites["block"]["allowed_error"] is None


def test_other_inputs_are_compared_too(project, twinkle):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    torch.save((torch.randn(3, 5, 64) * 40,), project.folder / "more.pt")
    done = project.run("--inputs", "more.pt", "--verify=given", max_error=0.5)
    assert done.code == 0, done.err
    assert "other inputs" in str(done.json["shapes"])


def test_it_holds_on_inputs_that_nobody_has_shown(project):
    project.save(Blocks(), torch.randn(4, 16, 64)).bind("LinearInt8")
    done = project.run(max_error=0.02)
    assert done.code == 0 and in_int8(done.json)
    errors = [project.error(torch.randn(batch, length, 64)) for batch in (1, 2, 5) for length in (1, 7, 33, 128)]
    assert max(errors) <= 0.02


def test_the_largest_values_stay_in_place(project):
    project.save(Shared(), torch.randint(0, 96, (4, 16))).bind("LinearInt8")
    free = project.run(max_error=0.5, precision="int8")
    done = project.run("--agree", "1.0", max_error=0.5)
    assert free.code == done.code == 0, done.err
    small = torch.jit.load(project.folder / "small.pt")
    ids = project.inputs[0]
    assert (small(ids).argmax(-1) == project.model(ids).argmax(-1)).all()
    assert done.json["whole"].get("agreement", 1) == 1


def test_a_weight_that_two_layers_share(project):
    project.save(Shared(), torch.randint(0, 96, (4, 16)), scripted=True).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0 and in_int8(done.json) == ["inner", "head"]
    weights = project.weights()
    assert weights["embedding.weight"].dtype == torch.float32 and weights["head.weight"].dtype == torch.int8
    assert project.error() <= 0.05


def test_a_shared_weight_that_a_trace_passes_to_its_layer(project):
    """A trace hands the embedding's weight to the last layer in each call: that layer has no weight to change."""
    project.save(Shared(), torch.randint(0, 96, (4, 16))).bind("LinearInt8")
    done = project.run(max_error=0.05)
    assert done.code == 0 and in_int8(done.json) == ["inner"]
    assert project.error() <= 0.05


@pytest.mark.parametrize("options, problem", [
    (["--precision", "int8"], "--precision needs the error"),
    (["--precision", "int8", "--max-error", "2"], "--max-error cannot be '2'"),
    (["--precision", "int8", "--max-error", "nan"], "--max-error cannot be 'nan'"),
    (["--precision", "INT 8", "--max-error", "0.1"], "--precision cannot be 'INT 8'"),
    (["--max-error", "0.1"], "limit what --precision may do"),
    (["--agree", "0.1"], "limit what --precision may do"),
    (["--precision", "int8", "--max-error", "0.1", "--no-verify"], "for which it needs inputs"),
    (["--precision", "int8", "--max-error", "0.1", "--tune"], "exclude each other"),
    (["--precision", "int8", "--max-error", "0.1", "--mode", "training"], "is for inference"),
])
def test_usage(project, twinkle, options, problem):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", *options)
    assert done.code == 2 and problem in done.err


def test_without_a_kernel_that_offers_it(project):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearExact")
    done = project.run(precision="int3", max_error=0.05)
    assert done.code == 0
    assert any("no kernel offers that" in warning for warning in done.json["warnings"])


def test_text(project, twinkle):
    project.save(Blocks(), torch.randn(2, 9, 64)).bind("LinearInt8")
    done = twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "--precision", "int8", "--max-error", "0.05", "-o",
                   "small.pt")
    assert done.code == 0, done.err
    assert "precision: int8 in 8 of 8 layers, error " in done.out and " of 0.05 allowed; weights " in done.out


def test_inspect_shows_precision(twinkle):
    done = twinkle("inspect", KERNEL, "--json")
    assert done.code == 0, done.err
    layers = {one["name"]: one for one in done.json["layers"]}
    assert layers["LinearInt8"]["precision"] == "int8" and layers["LinearInt8"]["prepares"]
    assert layers["LinearInt4"]["precision"] == "int4" and layers["LinearInt4"]["prepares"]
    assert layers["LinearExact"]["precision"] is None
