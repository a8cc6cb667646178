"""Traced models of transformers, in three dtypes: which sites are found, replaced, kept and why; right per site and
whole, on inputs of another batch and length than they were traced with; and that each replaced site matters.

TWINKLE_ALL_MODELS=1 does for every dtype and every site what is otherwise done for a part of them.
"""

import copy
import fnmatch
import json
import os
import re

import pytest
from conftest import ROOT, Twinkle
from kernels_for_tests import made_models, needs_runtime

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
nn = torch.nn
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ALL = os.environ.get("TWINKLE_ALL_MODELS") == "1"
PLAIN = ROOT / "tests/kernels/plain"
ROUNDOFF = {torch.float32: 2**-24, torch.bfloat16: 2**-8, torch.float16: 2**-11}

# The layers of tests/kernels/plain, and what they are bound to.
LEAVES = {
    "LayerNorm": ["torch.nn.modules.normalization.LayerNorm"],
    "RMSNorm": ["transformers.models.*.*RMSNorm", "transformers.models.t5.modeling_t5.T5LayerNorm"],
    "GELU": ["transformers.activations.GELUActivation", "transformers.activations.GELUTanh"],
    "NewGELU": ["transformers.activations.NewGELUActivation"],
    "SiLU": ["transformers.activations.SiLUActivation"],
    "ReLU": ["torch.nn.modules.activation.ReLU"],
    "Tanh": ["torch.nn.modules.activation.Tanh"],
    "Linear": ["torch.nn.modules.linear.Linear"],
    "Conv1D": ["transformers.pytorch_utils.Conv1D"],
    "Conv1d": ["torch.nn.modules.conv.Conv1d"],
    "Conv2d": ["torch.nn.modules.conv.Conv2d"],
    "Embedding": ["torch.nn.modules.sparse.Embedding"],
}
MLPS = {
    "GatedMLP": [f"transformers.models.{name}.modeling_{name}.*MLP" for name in
                 ("qwen2", "qwen3", "llama", "mistral", "gemma")],
    "Phi3MLP": ["transformers.models.phi3.modeling_phi3.Phi3MLP"],
    "GPT2MLP": ["transformers.models.gpt2.modeling_gpt2.GPT2MLP"],
    "BertIntermediate": ["transformers.models.bert.modeling_bert.BertIntermediate"],
    "ViTMLP": ["transformers.models.vit.modeling_vit.ViTMLP"],
    "T5DenseActDense": ["transformers.models.t5.modeling_t5.T5DenseActDense"],
}
# How many sites each layer replaces.
REPLACED = {
    "qwen2": {"Linear": 15, "SiLU": 2, "RMSNorm": 5, "Embedding": 1},
    "qwen3": {"Linear": 15, "SiLU": 2, "RMSNorm": 9, "Embedding": 1},
    "llama": {"Linear": 15, "SiLU": 2, "RMSNorm": 5, "Embedding": 1},
    "mistral": {"Linear": 15, "SiLU": 2, "RMSNorm": 5, "Embedding": 1},
    "gemma": {"Linear": 15, "GELU": 2},
    "phi3": {"Linear": 9, "SiLU": 2, "RMSNorm": 5, "Embedding": 1},
    "gpt2": {"Linear": 1, "Conv1D": 8, "NewGELU": 2, "LayerNorm": 5, "Embedding": 2},
    "bert": {"Linear": 13, "GELU": 2, "LayerNorm": 5, "Embedding": 3},
    "vit": {"Linear": 13, "GELU": 2, "LayerNorm": 5, "Conv2d": 1},
    "t5": {"Linear": 33, "ReLU": 4, "RMSNorm": 12, "Embedding": 4},
    "whisper": {"Linear": 12, "GELU": 2, "LayerNorm": 5, "Conv1d": 2, "Embedding": 1},
}
# … and which keep their original, by site, with words of the reason.
KEPT = {
    "gemma": {f"model.model.{site}": "multiplies by weight + 1" for site in
              ("norm", *(f"layers.{i}.{name}_layernorm" for i in (0, 1) for name in ("input", "post_attention")))},
    "bert": {"model.pooler.activation": "nothing uses its result"},
    "vit": {"model.pooler.activation": "nothing uses its result"},
    "t5": {"model.shared": "nothing calls it under this name"},
}
# What the bundled pack and the preset replace. The activation of an MLP is part of it.
BY_PRESET = {
    **{name: {"RMSNorm": 5, "SwiGLUMLP": 2} for name in ("qwen2", "llama", "mistral")},
    "qwen3": {"RMSNorm": 9, "SwiGLUMLP": 2}, "phi3": {"RMSNorm": 5, "Phi3MLP": 2},
    "gemma": {"GemmaRMSNorm": 5, "GeGLUMLP": 2}, "t5": {"T5LayerNorm": 12, "ReLU": 4},
    "gpt2": {"LayerNorm": 5, "NewGELU": 2},
    **{name: {"LayerNorm": 5, "Gelu": 2} for name in ("bert", "vit", "whisper")},
}
# Nothing of these reaches the result: a trace computes them all the same.
UNUSED = {"bert": ["model.pooler.*"], "vit": ["model.pooler.*"]}
SOME_HALVES = ["qwen2_float16", "llama_bfloat16", "t5_float16", "bert_bfloat16", "gpt2_float16", "vit_bfloat16"]
FULL = [f"{name}{suffix}" for name in REPLACED for suffix in ("", "_float16", "_bfloat16")]


@pytest.fixture(autouse=True)
def one_thread(twinkle):
    """Threads that wait for each other cost these tiny models more than they gain, most of all on a busy machine."""
    twinkle.env["OMP_NUM_THREADS"] = "1"


def family(name):
    return name.split("_")[0]


@pytest.fixture(scope="module")
def traced():
    return made_models() / "traced"


def bindings(layers, kernel=PLAIN, more=""):
    return "presets = []\n" + "".join(
        f'\n[layers.{layer}]\nrepo_path = "{kernel}"\nclasses = {json.dumps(classes)}\n{more}'
        for layer, classes in layers.items())


def resolved(folder, layers, kernel=PLAIN, more=""):
    (folder / "twinkle.toml").write_text(bindings(layers, kernel, more))
    done = Twinkle(folder)("resolve", "-o", "twinkle.map.json")
    assert done.code == 0, done.err
    return folder / "twinkle.map.json"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return resolved(tmp_path_factory.mktemp("plain"), LEAVES)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """The same layers, each a little wrong. No factor: a norm behind the site would undo it."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "kernel").mkdir()
    (folder / "kernel/__init__.py").write_text("from . import layers\n")
    source = (PLAIN / "layers.py").read_text()
    spoilt = re.sub(r"(?m)^        return (.*)$", r"        return spoilt(\1)", source)
    (folder / "kernel/layers.py").write_text(spoilt.replace("class LayerNorm", """def spoilt(y: torch.Tensor) -> torch.Tensor:
    return y + 0.1 * torch.roll(y, [1], [-1])


class LayerNorm""", 1))
    return resolved(folder, LEAVES, folder / "kernel")


class Case:
    """A model with its inputs, and what the original and a run in double precision give."""

    def __init__(self, folder, name):
        self.path = folder / f"{name}.pt"
        data = torch.load(folder / f"{name}.io.pt", weights_only=True)
        self.inputs, self.expected = data["inputs"], data["expected"]
        self.own = self.outputs(self.path)

    @torch.no_grad()
    def outputs(self, path):
        model = torch.jit.load(path)
        with torch.jit.optimized_execution(False):  # optimizing takes longer than running
            return [model(*inputs) for inputs in self.inputs]

    def errors(self, results):
        """Of each run, in the Euclidean norm and of the largest value: the error, and the original's own."""
        for result, own, expected in zip(results, self.own, self.expected, strict=True):
            assert result.dtype == own.dtype and result.shape == own.shape
            for norm in (torch.linalg.vector_norm, lambda x: x.abs().max()):
                yield [(norm(x.double() - expected) / norm(expected)).item() for x in (result, own)]

    def assert_right(self, results):
        roundoff = ROUNDOFF[self.own[0].dtype]
        for index, (error, own) in enumerate(self.errors(results)):
            assert own < 64 * roundoff  # else the comparison would say nothing
            assert error <= max((1.5, 4)[index % 2] * own, roundoff), (error, own)

    def differs(self, results):
        return any(error > max(4 * own, ROUNDOFF[self.own[0].dtype]) for error, own in self.errors(results))


def kernelized(twinkle, case, *more, inputs=True, code=0):
    """Without a manifest of the test's: layers alone. Formulas have tests of their own (test_patterns.py and others)."""
    manifest = twinkle.folder / "twinkle.toml"
    if not manifest.exists():
        manifest.write_text('presets = ["transformers"]\n')
    if inputs:
        torch.save(tuple(case.inputs[1]), twinkle.folder / "in.pt")
        more = (*more, "--inputs", "in.pt", "--verify")
    done = twinkle("kernelize", case.path, "-o", "fast.pt", "--json", *more)
    assert done.code == code, done.err
    return done.error if code else done.json


def outputs(twinkle, case):
    """In a process of their own, without Python."""
    results = []
    for inputs in case.inputs:
        torch.save(tuple(inputs), twinkle.folder / "in.pt")
        done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt", "--json")
        assert done.code == 0, done.err
        results.append(torch.load(twinkle.folder / "out.pt", weights_only=True))
    return results


def sites_of(report, status):
    return {site["site"]: site for site in report["sites"] if site["status"] == status}


def layer_of(site):
    return site["kernel"].split(": ")[1]


def count_by_layer(sites):
    counts = {}
    for site in sites.values():
        counts[layer_of(site)] = counts.get(layer_of(site), 0) + 1
    return counts


@pytest.mark.parametrize("name", FULL if ALL else [*REPLACED, *SOME_HALVES])
def test_layer_by_layer(twinkle, traced, plain, name):
    case = Case(traced, name)
    report = kernelized(twinkle, case, "--map", plain)
    replaced, kept = sites_of(report, "replaced"), sites_of(report, "kept")
    assert count_by_layer(replaced) == REPLACED[family(name)]
    assert set(kept) == set(KEPT.get(family(name), {})) and not sites_of(report, "reverted")
    for site, words in KEPT.get(family(name), {}).items():
        assert words in kept[site]["because"]
    for site in replaced.values():
        assert site["max_error"] <= site["allowed_error"], site
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))


@pytest.mark.parametrize("name", REPLACED)
def test_each_site_matters(twinkle, traced, wrong, name):
    """Every wrong site is named and put back; and one site of each kind alone spoils the result of the model."""
    case = Case(traced, name)
    report = kernelized(twinkle, case, "--map", wrong)
    reverted = sites_of(report, "reverted")
    assert count_by_layer(reverted) == REPLACED[name] and report["replaced"] == 0
    assert all("error" in site["because"] for site in reverted.values())
    assert all(map(torch.equal, case.outputs(twinkle.folder / "fast.pt"), case.own))

    reaching = [site for site in reverted if not any(fnmatch.fnmatch(site, one) for one in UNUSED.get(name, []))]
    alone = reaching if ALL else {layer_of(reverted[site]): site for site in reversed(reaching)}.values()
    for site in alone:
        report = kernelized(twinkle, case, "--map", wrong, "--only", site, inputs=False)
        assert list(sites_of(report, "replaced")) == [site]
        assert case.differs(case.outputs(twinkle.folder / "fast.pt")), site
    error = kernelized(twinkle, case, "--map", wrong, "--only", reaching[-1], "--strict", code=4)
    assert error["where"] == reaching[-1] and "error" in error["why"]


@pytest.mark.parametrize("name", FULL if ALL else
                         [*BY_PRESET, "qwen3_bfloat16", "t5_mixed", "phi3_float16", "gemma_bfloat16", "bert_float16"])
def test_the_preset(twinkle, traced, name):
    case = Case(traced, name)
    report = kernelized(twinkle, case)
    # A site of few values may be put back for the last bit of one of them.
    close = {name: site for name, site in sites_of(report, "reverted").items()
             if site["max_error"] < 1.5 * site["allowed_error"]}
    assert count_by_layer({**sites_of(report, "replaced"), **close}) == BY_PRESET[family(name)]
    assert report["kept"] == 0 and not report["warnings"]
    case.assert_right(outputs(twinkle, case))


@pytest.mark.parametrize("spoilt", ["", " + 0.1"])
def test_what_is_inside_of_a_replaced_module(twinkle, traced, tmp_path, spoilt):
    """An MLP's activation is no site where a layer computes it, and is one again where that layer is put back."""
    case = Case(traced, "qwen2")
    (tmp_path / "mlp").mkdir()
    (tmp_path / "mlp/__init__.py").write_text("from . import layers\n")
    (tmp_path / "mlp/layers.py").write_text(f"""import torch
import torch.nn.functional as F
from torch import nn


class GatedMLP(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x)){spoilt}
""")
    (tmp_path / "twinkle.toml").write_text(
        bindings({"GatedMLP": MLPS["GatedMLP"]}, tmp_path / "mlp") +
        bindings({"SiLU": LEAVES["SiLU"]}).removeprefix("presets = []\n"))
    assert Twinkle(tmp_path)("resolve", "-o", "twinkle.map.json").code == 0
    report = kernelized(twinkle, case, "--map", tmp_path / "twinkle.map.json")
    replaced, reverted = sites_of(report, "replaced"), sites_of(report, "reverted")
    if spoilt:
        assert count_by_layer(reverted) == {"GatedMLP": 2} and count_by_layer(replaced) == {"SiLU": 2}
    else:
        assert count_by_layer(replaced) == {"GatedMLP": 2} and len(report["sites"]) == 2
        assert all("with its act_fn" in site["because"] for site in replaced.values())
    assert all(site["max_error"] <= site["allowed_error"] for site in replaced.values())
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))


@pytest.mark.parametrize("name", ["qwen2", "gemma", "phi3_bfloat16", "gpt2", "bert", "vit_float16", "t5"])
def test_whole_mlps(twinkle, traced, name):
    """One layer for a whole MLP, with the projections of the host."""
    case = Case(traced, name)
    report = kernelized(twinkle, case, "--map", resolved(twinkle.folder, MLPS))
    counts = count_by_layer(sites_of(report, "replaced"))
    assert list(counts.values()) == [4 if name == "t5" else 2]
    assert report["kept"] == 0
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))


@pytest.mark.parametrize("name", ["qwen2", "llama_bfloat16"])
def test_a_flattened_tuple_and_a_dropped_output(twinkle, traced, name):
    """Attention, whole: (cos, sin) are two inputs of the trace, its second output is none. What the trace has lost
    without a trace of it, the manifest says."""
    case = Case(traced, name)
    layers = {"Attention": [f"transformers.models.{family(name)}.modeling_{family(name)}.*Attention"]}
    report = kernelized(twinkle, case, "--map", resolved(twinkle.folder, layers))
    assert report["replaced"] == 0 and all("head_dim" in site["because"] for site in report["sites"])
    report = kernelized(twinkle, case, "--map", resolved(twinkle.folder, layers, more="attributes = { head_dim = 16 }\n"))
    assert report["replaced"] == 2
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))


def test_zero_centred_norms(twinkle, traced, tmp_path):
    """Gemma's norm is taken by a layer that computes it, and by no other: not for its epsilon's sake, either."""
    case = Case(traced, "gemma")
    gemma = ["transformers.models.gemma.modeling_gemma.GemmaRMSNorm"]
    report = kernelized(twinkle, case, "--map", resolved(tmp_path, {"ZeroCentredNorm": gemma}))
    assert report["replaced"] == 5
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))
    forced = resolved(tmp_path, {"RMSNorm": gemma}, more="attributes = { variance_epsilon = 1e-3 }\n")
    report = kernelized(twinkle, case, "--map", forced)
    assert len(sites_of(report, "reverted")) == 5


def test_weights_of_another_dtype_than_the_trace(twinkle, traced, plain, tmp_path):
    """BERT runs in half precision though it was traced in float32: nothing in its graphs names a dtype."""
    model = torch.jit.load(traced / "bert.pt")
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point():
            tensor.data = tensor.data.bfloat16()
    model.save(tmp_path / "bert.pt")
    data = torch.load(traced / "bert_bfloat16.io.pt", weights_only=True)  # the same weights, rounded
    torch.save(data, tmp_path / "bert.io.pt")
    case = Case(tmp_path, "bert")
    report = kernelized(twinkle, case, "--map", plain)
    assert count_by_layer(sites_of(report, "replaced")) == REPLACED["bert"]
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))


class Pictures(nn.Module):
    """The layers of torch.nn with other options than their defaults; one of them is called three times."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 16, 3, stride=2, padding=(1, 0), dilation=1, groups=2, bias=False)
        self.act = nn.GELU(approximate="tanh")
        self.norm = nn.LayerNorm(16, eps=1e-2, elementwise_affine=True, bias=False)
        self.fc = nn.Linear(16, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.act(self.conv(x)).flatten(2).transpose(1, 2))
        y = self.norm(y + self.act(self.fc(y)))
        return self.norm(y * self.fc(y))


@pytest.mark.parametrize("compiled", ["traced", "scripted"])
def test_layers_of_torch_nn(twinkle, tmp_path, compiled):
    """From a local package without compiled code."""
    torch.manual_seed(8)
    model = Pictures().eval()
    images = [torch.randn(2, 4, 9, 9), torch.randn(3, 4, 12, 8)]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
        made = torch.jit.trace(model, images[0]) if compiled == "traced" else torch.jit.script(model)
        made.save(tmp_path / "model.pt")
        expected = [copy.deepcopy(model).double()(x.double()) for x in images]
    torch.save({"inputs": [(x,) for x in images], "expected": expected}, tmp_path / "model.io.pt")
    case = Case(tmp_path, "model")
    layers = {**LEAVES, "GELU": ["torch.nn.modules.activation.GELU"]}
    report = kernelized(twinkle, case, "--map", resolved(tmp_path, layers))
    assert {site: layer_of(one) for site, one in sites_of(report, "replaced").items()} == {
        "conv": "Conv2d", "act": "GELU", "norm": "LayerNorm", "fc": "Linear"}
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))
    if compiled == "traced":
        saved = torch.jit.load(twinkle.folder / "fast.pt")
        assert {"forward", "forward1", "forward2"} <= set(saved.norm._c._method_names())


def test_a_norm_that_rounds_to_another_dtype(twinkle, traced, tmp_path):
    """T5 with residuals in float32: its norm rounds to the weight's dtype, Llama's keeps the input's. In the same
    dtype they are the same."""
    case = Case(traced, "t5_mixed")
    t5 = {"RMSNorm": ["transformers.models.t5.modeling_t5.T5LayerNorm"]}
    reverted = sites_of(kernelized(twinkle, case, "--map", resolved(tmp_path, t5)), "reverted")
    assert reverted and all("dtype" in site["because"] for site in reverted.values())
    case.assert_right(case.outputs(twinkle.folder / "fast.pt"))
