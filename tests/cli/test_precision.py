"""Fewer bits within an error that the user names: which layers get them, whether the error holds on these and on other
inputs, what the file holds, and what becomes of weights that cannot be rounded. The kernel is plain Python, so that
PyTorch itself runs what was written."""

import copy
import shutil

import pytest
from conftest import ROOT
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
KERNEL = ROOT / "tests/kernels/fewer_bits"


def manifest(*layers):
    tables = "".join(f'[[layers.Linear]]\nrepo_path = "{{}}"\npackage_name = "fewer_bits"\nlayer_name = "{layer}"\n'
                     'classes = ["torch.nn.modules.linear.Linear"]\n' for layer in layers)
    return lambda folder: tables.replace("{}", str(folder))


class Blocks(nn.Module):
    """Residual blocks of linear layers, as a transformer has them."""

    def __init__(self, width=64, count=4):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(count))
        self.up = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, up, down in zip(self.norms, self.up, self.down):
            x = x + down(nn.functional.gelu(up(norm(x))))
        return x


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


@pytest.fixture
def project(twinkle, tmp_path):
    """Saves a model and inputs, and kernelizes with fewer bits."""
    torch.manual_seed(0)

    class Project:
        folder = tmp_path
        kernel = KERNEL

        def save(self, model, *inputs, scripted=False):
            self.model = model.eval()
            made = torch.jit.script(model) if scripted else torch.jit.trace(model, inputs)
            made.save(str(tmp_path / "model.pt"))
            torch.save(inputs, tmp_path / "inputs.pt")
            self.inputs = inputs
            return self

        def bind(self, *layers, more=""):
            (tmp_path / "twinkle.toml").write_text(manifest(*layers)(self.kernel) + more)
            return self

        def run(self, *options, precision="int8", max_error=0.02):
            return twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "--precision", precision, "--max-error",
                           max_error, "-o", "small.pt", "--json", *options)

        def error(self, *inputs):
            """The error of what was written, by PyTorch."""
            small = torch.jit.load(tmp_path / "small.pt")
            exact = copy.deepcopy(self.model).double()
            inputs = inputs or self.inputs
            wanted = exact(*(one.double() if one.is_floating_point() else one for one in inputs))
            return ((small(*inputs).double() - wanted).norm() / wanted.norm()).item()

        def weights(self):
            return dict(torch.jit.load(tmp_path / "small.pt").named_parameters())

    return Project()


def by_site(report):
    return {one["site"]: one for one in report["sites"]}


def in_int8(report):
    return [one["site"] for one in report["sites"] if one.get("precision") == "int8" and one["status"] == "replaced"]


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


@pytest.fixture
def spoiled(project, tmp_path):
    """A copy of the kernel with one thing changed."""
    def change(before, after):
        project.kernel = tmp_path / "kernel" / "fewer_bits"
        shutil.copytree(KERNEL, project.kernel, ignore=shutil.ignore_patterns("__pycache__"))
        text = (project.kernel / "layers.py").read_text()
        assert before in text
        (project.kernel / "layers.py").write_text(text.replace(before, after, 1))
        return project
    return change


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
