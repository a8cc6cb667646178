"""Scripted models with what people put into modules (tests/models/scripted.py): which sites are found, replaced and
kept; one instance of several alone; and that every site matters."""

import json

import pytest
from kernels_for_tests import MLP, NORM, RMS_NORM, models, needs_runtime

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NORMS = [NORM, "scripted.*Norm"]
SILU = 'when_submodule = { act_fn = ["torch.nn.modules.activation.SiLU"] }\n'
BLOCKS = [f"layers.{i}.{name}" for i in range(3) for name in ("mlp", "norm")]

# By model: the sites that are replaced, those that are kept with words of the reason, and those that the inputs of the
# tests do not reach.
EXPECTED = {
    "several_types": (["small", "large", "large_too", "silu"], {"gelu": "GELU"}),
    "one_name_two_classes": (["one"], {}),
    "methods": (["norm"], {}),
    "counting": ([], {"norm": "its forward also changes its calls"}),
    "overloaded": (["norm"], {}),
    "interfaces": (["chosen", "norms.0", "norms.1"], {}),
    "choice": (["a", "b", "block.norm", "block.mlp"], {}),
    "containers": ([*BLOCKS, "named.first", "named.second", "chain.0", "chain.1.0", "chain.1.1", "nested.0.0",
                    "nested.1.0", "mixed.0", "mixed.1"], {}),
    "hooks": (["first.norm", "first.mlp", "second.norm", "second.mlp", "last"], {}),
    "inner_hooks": (["block.norm"], {"block.mlp": "has hooks, which this call would skip"}),
    "attributes": (["one", "same", "other", "present"], {}),
    "forks": (["a", "b"], {}),
    "in_traced": (["inner.norm", "inner.mlp", "norm"], {}),
    "traced_in": (["inner.norm", "inner.mlp", "norm"], {}),
}


def path(models, name):
    return models / ("traced_in_scripted.pt" if name == "traced_in" else f"scripted_{name}.pt")


def manifest(folder, norm="", mlp=""):
    classes = json.dumps([NORM] if "one_name" in norm else NORMS)
    (folder / "twinkle.toml").write_text(
        f"presets = []\n[layers.RMSNorm]\n{norm.replace('one_name', '')}classes = {classes}\n"
        f'[layers.SwiGLUMLP]\n{mlp}classes = ["{MLP}"]\n{SILU}')


def kernelized(twinkle, models, name, *more):
    inputs = models.parent / "inputs/hidden.pt"
    done = twinkle("kernelize", path(models, name), "-o", "fast.pt", "--inputs", inputs, "--verify", "--json", *more)
    assert done.code == 0, done.err
    return done.json


def statuses(report, status):
    return sorted(site["site"] for site in report["sites"] if site["status"] == status)


def assert_same(twinkle, models, name, hidden, method=None):
    """The rule is --verify's work; this notices what only a fresh process would: in save, load and other methods."""
    torch.save((hidden,), twinkle.folder / "in.pt")
    chosen = ["--method", method] if method else []
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", *chosen)
    assert done.code == 0, done.err
    result = torch.load(twinkle.folder / "out.pt", weights_only=True)
    with torch.no_grad():
        expected = getattr(torch.jit.load(path(models, name)), method or "forward")(hidden)
    assert (result - expected).norm() < 1e-5 * expected.norm()


@pytest.fixture(autouse=True)
def one_thread(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"  # tiny models: more threads only wait for each other


@pytest.fixture
def hidden():
    return torch.randn(3, 7, 64, generator=torch.Generator().manual_seed(8))


@pytest.mark.parametrize("name", EXPECTED)
def test_sites(twinkle, models, hidden, name):
    replaced, kept = EXPECTED[name]
    manifest(twinkle.folder, norm="one_name" if name == "one_name_two_classes" else "")
    report = kernelized(twinkle, models, name)
    assert statuses(report, "replaced") == sorted(replaced) and statuses(report, "kept") == sorted(kept)
    assert len(report["sites"]) == len(replaced) + len(kept)
    for site in report["sites"]:
        assert kept.get(site["site"], "") in site["because"]
        assert "not reached" not in site["because"]
        if site["status"] == "replaced":
            assert site["max_error"] <= site["allowed_error"]
    assert report["whole"]["max_error"] <= report["whole"]["allowed_error"]
    assert_same(twinkle, models, name, hidden)


@pytest.mark.parametrize("verify, unreached", [("--verify", []), ("--verify=given", ["b"])])
def test_a_branch_that_other_sizes_alone_take(twinkle, models, verify, unreached):
    manifest(twinkle.folder)
    inputs = models.parent / "inputs/hidden.pt"
    done = twinkle("kernelize", path(models, "choice"), "--inputs", inputs, verify, "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    assert [site["site"] for site in done.json["sites"] if "not reached" in site["because"]] == unreached
    said = [one for one in done.json["warnings"] if "not reached" in one]
    assert [one.startswith("1 of the replaced sites is not reached") and "(b)" in one for one in said] == [True] * len(unreached)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_site_matters(twinkle, models, name):
    """Kernels that are wrong by 2 % are put back at every site that the inputs reach, in these or other sizes."""
    replaced, _ = EXPECTED[name]
    package = twinkle.folder / "wrong"
    package.mkdir()
    (package / "__init__.py").write_text("from . import layers\n")
    mlp = ("\n\nclass SwiGLUMLP(nn.Module):\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n"
           "        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x)) * 1.02\n")
    (package / "layers.py").write_text(RMS_NORM.replace("self.weight *", "1.02 * self.weight *") + mlp)
    wrong = 'repo_path = "wrong"\n'
    manifest(twinkle.folder, norm=wrong + ("one_name" if name == "one_name_two_classes" else ""), mlp=wrong)
    report = kernelized(twinkle, models, name)
    assert statuses(report, "reverted") == sorted(replaced)
    assert all("error" in site["because"] for site in report["sites"] if site["status"] == "reverted")


ALONE = [("several_types", "large"), ("several_types", "large_too"), ("interfaces", "chosen"), ("interfaces", "norms.1"),
         ("containers", "layers.1.norm"), ("containers", "layers.0.norm"), ("containers", "chain.1.1"),
         ("containers", "nested.1.0"), ("containers", "named.first"), ("hooks", "first.norm"), ("hooks", "second.mlp"),
         ("attributes", "same"), ("forks", "b"), ("choice", "block.norm")]


@pytest.mark.parametrize("name, site", ALONE)
def test_one_instance_of_a_class_alone(twinkle, models, hidden, name, site):
    manifest(twinkle.folder)
    report = kernelized(twinkle, models, name, "--only", site)
    assert statuses(report, "replaced") == [site]
    assert_same(twinkle, models, name, hidden)
    report = kernelized(twinkle, models, name, "--exclude", site)
    assert statuses(report, "replaced") == sorted(set(EXPECTED[name][0]) - {site})
    assert_same(twinkle, models, name, hidden)


def test_as_few_classes_as_it_takes(twinkle, models):
    """Of three blocks one is treated otherwise: two classes of blocks, two of norms, not three."""
    manifest(twinkle.folder)
    kernelized(twinkle, models, "containers", "--only", "layers.*", "--exclude", "layers.1.norm")
    classes = {entry["name"]: entry for entry in twinkle("inspect", "fast.pt", "--json").json["classes"]}
    assert classes["scripted.Block"]["types"] == 2 and classes["scripted.Block"]["instances"] == 3


def test_instances_that_the_model_exchanges_are_kept(twinkle, models, hidden):
    manifest(twinkle.folder)
    report = kernelized(twinkle, models, "choice", "--exclude", "b")
    assert statuses(report, "replaced") == ["block.mlp", "block.norm"]
    because = {site["site"]: site["because"] for site in report["sites"]}
    assert "chooses between it and another instance" in because["a"] and because["b"] == "excluded"
    assert_same(twinkle, models, "choice", hidden)
    strict = twinkle("kernelize", path(models, "choice"), "-o", "strict.pt", "--exclude", "b", "--strict", "--json")
    assert strict.code == 6 and "chooses between" in strict.error["why"]


def test_other_methods(twinkle, models, hidden):
    manifest(twinkle.folder)
    kernelized(twinkle, models, "methods")
    assert_same(twinkle, models, "methods", hidden, "features")
    norm, = (entry for entry in twinkle("inspect", "fast.pt", "--json", "--graph", "scripted.MethodsNorm").json["classes"]
             if entry["name"] == "scripted.MethodsNorm")
    assert {method["name"] for method in norm["methods"]} >= {"forward", "forward1", "twice"}
