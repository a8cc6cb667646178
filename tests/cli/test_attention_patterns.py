"""Rotary embeddings and attention by the preset "patterns": calls expected, found, replaced in traced models of
transformers (frozen or not, in two dtypes) and in scripted ones; right by the rule; what is something else stays."""

import copy
import importlib.util
import json
import zipfile

import pytest
from conftest import Twinkle
from kernels_for_tests import made_models, needs_runtime
from test_models import Case, family, kernelized, outputs, sites_of

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

MINE = {"rotary", "partial_rotary", "grouped_attention", "attention", "biased_attention", "attention_left_out",
        "attention_dropout"}
# Of two layers each. Where the operator is there already, only what goes into it is found.
EXPECTED = {
    **{name: {"rotary": 4, "grouped_attention": 2}
       for name in ("qwen2", "qwen3", "llama", "mistral", "gemma", "cohere")},
    "phi3": {"partial_rotary": 4, "grouped_attention": 2},
    "gptneox": {"partial_rotary": 4, "attention": 2},
    "gemma2": {"rotary": 4},  # between scores and softmax its own function
    **{name: {"attention": 2} for name in ("gpt2", "bert", "vit", "whisper")},
    "t5": {"attention": 4, "biased_attention": 2},
}


@pytest.fixture(autouse=True)
def one_thread(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"
    (twinkle.folder / "twinkle.toml").write_text('presets = ["patterns"]\n')


@pytest.fixture(scope="module")
def traced():
    return made_models() / "traced"


def counts(report, status="replaced"):
    """Of those replaced also what is put back for a last bit: in models this small the original's error varies."""
    found = {}
    if status == "replaced":
        close = [site for site in sites_of(report, "reverted").values()
                 if site["max_error"] < 1.5 * site["allowed_error"]]
        report = {"sites": [site for site in report["sites"] if site["status"] == status] +
                  [{**site, "status": status} for site in close]}
    for site in sites_of(report, status).values():
        if site["of"] in MINE:
            found[site["of"]] = found.get(site["of"], 0) + 1
    return found


@pytest.mark.parametrize("name", [f"{name}_eager" for name in EXPECTED] +
                         [f"{name}_eager_bfloat16" for name in ("llama", "phi3", "gpt2", "bert", "t5")])
def test_attention_that_is_written_out(twinkle, traced, name):
    case = Case(traced, name)
    report = kernelized(twinkle, case)
    assert counts(report) == EXPECTED[family(name)]
    assert not counts(report, "kept")
    case.assert_right(outputs(twinkle, case))


@pytest.mark.parametrize("name", ["llama", "phi3", "bert", "gpt2", "gemma2", "cohere_bfloat16"])
def test_frozen_models(twinkle, traced, tmp_path, name):
    """No module is left, and equal operators of several layers are one."""
    name, _, dtype = name.partition("_")
    name = f"{name}_eager" + (f"_{dtype}" if dtype else "")
    torch.jit.freeze(torch.jit.load(traced / f"{name}.pt").eval()).save(tmp_path / f"{name}.pt")
    (tmp_path / f"{name}.io.pt").symlink_to(traced / f"{name}.io.pt")
    case = Case(tmp_path, name)
    report = kernelized(twinkle, case, "--device", "cpu")
    assert counts(report) == EXPECTED[family(name)]
    case.assert_right(outputs(twinkle, case))


@pytest.mark.parametrize("name", ["qwen2", "phi3_bfloat16"])
def test_beside_the_operator(twinkle, traced, name):
    case = Case(traced, name)
    report = kernelized(twinkle, case)
    assert sum(counts(report).values()) == 4
    case.assert_right(outputs(twinkle, case))


def test_nothing_is_computed_twice(twinkle, traced):
    """What has been replaced is gone, with the dropout that was switched off."""
    case = Case(traced, "bert_eager")
    kernelized(twinkle, case, inputs=False)
    with zipfile.ZipFile(twinkle.folder / "fast.pt") as archive:
        code = "".join(archive.read(name).decode() for name in archive.namelist()
                       if "/code/__torch__/transformers/" in name and name.endswith(".py"))
    assert "twinkle_functions.twinkle_patterns" in code
    assert not any(word in code for word in ("torch.softmax", "torch.matmul", "torch.dropout"))


SOURCE = """import math
import torch
import torch.nn.functional as F
from torch import nn

def rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)

class Attention(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.qkv = nn.Linear(64, 192)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 12, 16).transpose(1, 2).chunk(3, dim=1)
        q = q * cos + rotate_half(q) * sin
        k = rotate_half(k) * sin + cos * k
        FORM
        return torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width)
"""
# How scripted code gets its weights, and what is found of it.
FORMS = {
    "left out": ("""scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(16))
        weights = F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1)""", {"attention_left_out": 1}),
    "divided": ("""scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(16)
        weights = F.softmax(mask + scores, dim=-1)""", {"attention": 1}),
    "unscaled": ("weights = torch.softmax(torch.matmul(q, k.transpose(2, 3)) + mask, -1)", {"attention": 1}),
    "dropout": ("""weights = torch.softmax(0.25 * torch.matmul(q, k.transpose(2, 3)) + mask, -1)
        weights = F.dropout(weights, self.dropout, self.training)""", {"attention_dropout": 1}),
    "softcap": ("""scores = torch.tanh(torch.matmul(q, k.transpose(2, 3)) * 0.25 / 30.0) * 30.0
        weights = torch.softmax(scores + mask, -1)""", {}),
    "other axis": ("weights = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.25 + mask, -2)", {}),
    "used twice": ("""weights = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.25 + mask, -1)
        v = v + weights.square().sum(-1, keepdim=True)""", {}),
}


def made(folder, form, dropout=0.0):
    name = f"attention_{form.replace(' ', '_')}"
    (folder / f"{name}.py").write_text(SOURCE.replace("FORM", FORMS[form][0]))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(3)
    return module.Attention(dropout)


@pytest.mark.parametrize("form", FORMS)
def test_scripted_attention(twinkle, tmp_path, form):
    model = made(tmp_path, form, dropout=0.5).eval()
    runs = []
    for batch, length in ((2, 9), (3, 11)):
        angles = torch.randn(length, 8).repeat(1, 2)
        mask = torch.ones(length, length).tril()
        if form != "left out":
            mask = (1 - mask) * torch.finfo(torch.float32).min
        runs.append((torch.randn(batch, length, 64), angles.cos(), angles.sin(), mask))
    torch.jit.script(model).save(tmp_path / "model.pt")
    with torch.no_grad():
        double = copy.deepcopy(model).double()
        expected = [double(*(one.double() for one in inputs)) for inputs in runs]
    torch.save({"inputs": runs, "expected": expected}, tmp_path / "model.io.pt")
    case = Case(tmp_path, "model")
    report = kernelized(twinkle, case)
    assert counts(report) == {"rotary": 2, **FORMS[form][1]}
    if form == "used twice":
        assert list(counts(report, "kept")) == ["attention"]
    case.assert_right(outputs(twinkle, case))


def test_pytorch_s_operator_is_for_all_devices(twinkle):
    """Also for GPUs without a build of the bundled kernels for them."""
    done = twinkle("resolve", "-o", "map.json")
    assert done.code == 0, done.err
    patterns = json.loads((twinkle.folder / "map.json").read_text())["patterns"]
    devices = {one["name"]: [candidate["device"] for candidate in one["candidates"]] for one in patterns}
    assert {name: devices[name] for name in MINE if "attention" in name} == {
        name: ["cpu", "any"] for name in MINE if "attention" in name}


def test_dropout_while_training(twinkle, tmp_path):
    """All weights are dropped: whoever forgets it gives something else than zeros."""
    model = made(tmp_path, "dropout", dropout=1.0).train()
    torch.jit.script(model).save(tmp_path / "model.pt")
    inputs = (torch.randn(2, 9, 64), torch.randn(9, 16), torch.randn(9, 16), torch.zeros(9, 9))
    torch.save(inputs, tmp_path / "in.pt")
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--mode", "training", "--json")
    assert done.code == 0, done.err
    assert counts(json.loads(done.out)) == {"rotary": 2, "attention_dropout": 1}
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    assert not torch.load(tmp_path / "out.pt", weights_only=True).any()


def test_a_wrong_replacement_is_put_back(twinkle, traced, tmp_path):
    (tmp_path / "mine.py").write_text("""import torch
import torch.nn.functional as F


def formula(q, k, v, scale: float):
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)) * scale, -1), v)


def unscaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, None, 0.0, False, scale=1.0)
""")
    (tmp_path / "twinkle.toml").write_text(
        'presets = []\n[patterns.mine]\npattern = "mine.py:formula"\nfunc_impl = "mine.py:unscaled"\n')
    assert Twinkle(tmp_path)("resolve", "-o", "twinkle.map.json").code == 0
    case = Case(traced, "vit_eager")
    report = kernelized(twinkle, case, "--map", tmp_path / "twinkle.map.json")
    reverted = sites_of(report, "reverted")
    assert len(reverted) == 2 and all("error" in site["because"] for site in reverted.values())
    assert all(map(torch.equal, case.outputs(twinkle.folder / "fast.pt"), case.own))


def test_the_sites_have_names(twinkle, traced):
    report = kernelized(twinkle, Case(traced, "llama_eager"), inputs=False)
    sites = [site for site in sites_of(report, "replaced") if "layers.1.self_attn" in site]
    assert sites == [f"model.model.layers.1.self_attn.forward:twinkle_patterns.{name}"
                     for name in ("rotary", "rotary#2", "grouped_attention")], json.dumps(sites)


def test_rows_that_leave_everything_out(twinkle):
    """-inf everywhere: softmax gives NaN, the operator 0. A comparison on such a row finds that out."""
    class Attends(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            weights = torch.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.25 + mask, dim=-1)
            return torch.matmul(weights, v).transpose(1, 2).contiguous()

    torch.jit.script(Attends().eval()).save(twinkle.folder / "model.pt")
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 2, 5, 16, generator=generator) for _ in range(3))
    mask = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
    for row, status in ((1.0, "replaced"), (float("-inf"), "reverted")):
        mask[2, :3] = row
        torch.save((q, k, v, mask), twinkle.folder / "inputs.pt")
        done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "inputs.pt", "--verify", "--device", "cpu",
                       "--json")
        assert done.code == 0, done.err
        assert [site["status"] for site in done.json["sites"]] == [status], done.json
