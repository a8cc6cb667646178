"""The layers of the bundled pack on real modules, traced and scripted, as the preset binds them: one class of each
form, all in one model. --verify compares each with a run in double precision, in training its gradients too."""

import importlib
import types

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
torch.set_num_threads(1)
nn = torch.nn
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
WIDTH = 32
EPS = 1e-3


@pytest.fixture(autouse=True)
def one_thread(twinkle):
    """Threads that wait for each other cost these small tensors more than they gain."""
    twinkle.env["OMP_NUM_THREADS"] = "1"


def real(name):
    module, _, name = name.rpartition(".")
    return getattr(importlib.import_module(module if "." in module else f"transformers.models.{module}.modeling_{module}"),
                   name)


def config(act):
    """What an MLP asks of its configuration, under every name that one has for it."""
    return types.SimpleNamespace(
        hidden_size=WIDTH, d_model=WIDTH, intermediate_size=48, d_ff=48, shared_intermediate_size=48, mlp_bias=False,
        hidden_act=act, hidden_activation=act, dense_act_fn=act, dropout_rate=0.0, mlp_dropout=0.0,
        hidden_dropout_prob=0.0, block_auto_adjust_ff_dim=False)


# The layer, and how a module that it stands for is made.
NORMS = [
    ("RMSNorm", lambda: real("llama.LlamaRMSNorm")(WIDTH, EPS)),
    ("Llama4RMSNorm", lambda: real("llama4.Llama4TextRMSNorm")(WIDTH, EPS)),
    ("OlmoRMSNorm", lambda: real("olmo2.Olmo2RMSNorm")(WIDTH, EPS)),
    ("OlmoRMSNorm", lambda: real("helium.HeliumRMSNorm")(WIDTH, EPS)),
    ("GemmaRMSNorm", lambda: real("gemma.GemmaRMSNorm")(WIDTH, EPS)),
    ("Gemma4RMSNorm", lambda: real("gemma3n.Gemma3nRMSNorm")(WIDTH, EPS)),
    ("Gemma4RMSNorm", lambda: real("moshi.MoshiRMSNorm")(WIDTH, EPS)),
    ("WeightlessRMSNorm", lambda: real("llama4.Llama4TextL2Norm")(EPS)),
    ("WeightlessRMSNorm", lambda: real("deepseek_v4.DeepseekV4UnweightedRMSNorm")(EPS)),
    ("TorchRMSNorm", lambda: nn.RMSNorm(WIDTH, EPS)),
    ("TorchRMSNorm", lambda: nn.RMSNorm((4, WIDTH))),
    ("TorchRMSNorm", lambda: nn.RMSNorm(WIDTH, elementwise_affine=False)),
    ("T5LayerNorm", lambda: real("t5.T5LayerNorm")(WIDTH, EPS)),
    ("LayerNorm", lambda: nn.LayerNorm(WIDTH, EPS)),
    ("LayerNorm", lambda: nn.LayerNorm(WIDTH, EPS, bias=False)),
    ("LayerNorm", lambda: nn.LayerNorm(WIDTH, EPS, elementwise_affine=False)),
    ("LayerNorm", lambda: nn.LayerNorm((4, WIDTH), EPS)),
    ("LayerNorm1P", lambda: real("videoprism.VideoPrismLayerNorm")(WIDTH, EPS)),
    ("CohereLayerNorm", lambda: real("cohere.CohereLayerNorm")(WIDTH, EPS)),
    ("CohereLayerNorm", lambda: real("cohere.CohereLayerNorm")((4, WIDTH), EPS)),
    ("OlmoLayerNorm", lambda: real("olmo.OlmoLayerNorm")(WIDTH)),
    ("DebertaLayerNorm", lambda: real("deberta.DebertaLayerNorm")(WIDTH, EPS)),
]
ACTIVATIONS = [
    ("Silu", lambda: real("transformers.activations.SiLUActivation")()),
    ("Silu", nn.SiLU),
    ("Gelu", lambda: real("transformers.activations.GELUActivation")()),
    ("Gelu", nn.GELU),
    ("GeluTanh", lambda: nn.GELU(approximate="tanh")),
    ("NewGELU", lambda: real("transformers.activations.NewGELUActivation")()),
    ("FastGELU", lambda: real("transformers.activations.FastGELUActivation")()),
    ("QuickGELU", lambda: real("transformers.activations.QuickGELUActivation")()),
    ("ReLU", nn.ReLU),
]
MLPS = [
    ("SwiGLUMLP", lambda: real("llama.LlamaMLP")(config("silu"))),
    ("SwiGLUMLP", lambda: real("beam.BeamMLP")(config("silu"))),
    ("GeGLUMLP", lambda: real("gemma.GemmaMLP")(config("gelu_new"))),
    ("GeGLUErfMLP", lambda: real("gemma.GemmaMLP")(config("gelu"))),
    ("Phi3MLP", lambda: real("phi3.Phi3MLP")(config("silu"))),
    ("GraniteMoeMLP", lambda: real("granitemoeshared.GraniteMoeSharedMLP")(config("silu"))),
    ("MoonshineMLP", lambda: real("moonshine.MoonshineDecoderMLP")(config("silu"), "silu")),
    ("T5GemmaMLP", lambda: real("t5gemma.T5GemmaMLP")(config("gelu_new"))),
    ("GteMLP", lambda: real("gte.GteMLP")(config("gelu"))),
    ("T5DenseGatedActDense", lambda: real("t5.T5DenseGatedActDense")(config("gelu_new"))),
]
# What torch.jit.script does not take.
TRACED_ONLY = [
    ("Gemma4RMSNorm", lambda: real("gemma4.Gemma4RMSNorm")(WIDTH, EPS, with_scale=False)),
    ("LayerNorm1P", lambda: real("nemotron.NemotronLayerNorm1P")(WIDTH, EPS)),
    ("GeluTanh", lambda: real("transformers.activations.GELUTanh")()),
    ("GeGLUMLP", lambda: real("gemma2.Gemma2MLP")(config("gelu_pytorch_tanh"))),
]


class All(nn.Module):
    def __init__(self, makers):
        super().__init__()
        self.parts = nn.ModuleList([make() for _, make in makers])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = []
        for part in self.parts:
            results.append(part(x * 1.5))
        return torch.cat(results, -1)


def made(makers, dtype, compiled):
    torch.manual_seed(4)
    model = All(makers).eval()
    for parameter in model.parameters():
        parameter.data.uniform_(0.5, 1.5)
        if parameter.dim() > 1 and parameter.shape[0] != 4:  # of a Linear
            parameter.data.sub_(1).mul_(0.4)
    model = model.to(dtype)
    x = torch.randn(64, 4, WIDTH).to(dtype)  # many values, so that their roundings average out
    return torch.jit.trace(model, x) if compiled == "traced" else torch.jit.script(model), x


# Each dtype, each mode and each way of compiling with each other.
RUNS = [("float32", "traced", "inference"), ("float32", "scripted", "training"), ("bfloat16", "traced", "training"),
        ("bfloat16", "scripted", "inference"), ("float16", "traced", "training"), ("float16", "scripted", "inference")]


@pytest.mark.parametrize("dtype, compiled, mode", RUNS)
def test_every_layer(twinkle, dtype, compiled, mode):
    dtype = getattr(torch, dtype)
    makers = [*NORMS, *ACTIVATIONS, *MLPS, *(TRACED_ONLY if compiled == "traced" else [])]
    model, x = made(makers, dtype, compiled)
    model.save(twinkle.folder / "model.pt")
    torch.save((x,), twinkle.folder / "in.pt")
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--mode", mode, "--inputs", "in.pt", "--verify", "--json")
    assert done.code == 0, done.err
    sites = {site["site"]: site for site in done.json["sites"] if site["site"].count(".") == 1}
    wanted = {f"parts.{i}": f"twinkle-pack: {layer}" for i, (layer, _) in enumerate(makers)}
    assert {name: site["kernel"] for name, site in sites.items()} == wanted
    for site in sites.values():
        # Which of two sums over a projection's inputs ends up a little nearer to the truth is chance.
        assert site["status"] == "replaced" or (
            site["because"].startswith("its error is") and site["max_error"] < 1.5 * site["allowed_error"]), site


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.silu = nn.SiLU(inplace=True)
        self.gelu = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return self.relu(y) + y + self.silu(self.gelu(y))


@pytest.mark.parametrize("compiled", ["traced", "scripted"])
def test_what_writes_into_its_input_stays(twinkle, compiled):
    x = torch.randn(3, 8)
    model = torch.jit.trace(Writes(), x) if compiled == "traced" else torch.jit.script(Writes())
    model.save(twinkle.folder / "model.pt")
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--device", "cpu", "--json")
    assert done.code == 0, done.err
    sites = {site["site"]: site for site in done.json["sites"]}
    assert {name for name, site in sites.items() if site["status"] == "replaced"} == {"gelu"}
    assert "inplace" in sites["relu"]["because"] and "inplace" in sites["silu"]["because"]


class Shared(nn.Module):
    """An MLP whose activation is used outside of it too, and one with an activation that no layer has a gate for."""

    def __init__(self):
        super().__init__()
        self.mlp = real("llama.LlamaMLP")(config("silu"))
        self.other = real("llama.LlamaMLP")(config("gelu_new"))
        self.act = self.mlp.act_fn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.act(self.mlp(x)))


def test_an_activation_is_part_of_the_mlp_that_computes_it(twinkle):
    """… and a site of its own where something else calls it, or where its MLP stays."""
    torch.jit.script(Shared()).save(twinkle.folder / "model.pt")
    torch.jit.script(All(MLPS[:1])).save(twinkle.folder / "plain.pt")

    def replaced(model, *more):
        done = twinkle("kernelize", model, "-o", "fast.pt", "--json", *more)
        assert done.code == 0, done.err
        assert not done.json["warnings"], done.json["warnings"]
        return {site["site"]: (site["kernel"].split(": ")[1], site["because"]) for site in done.json["sites"]
                if site["status"] == "replaced"}

    plain = replaced("plain.pt")
    assert plain == {"parts.0": ("SwiGLUMLP", "SwiGLUMLP, fallback on cpu, with its gate_proj, with its up_proj, with its act_fn"),
                     "parts.0.down_proj": ("Linear", "Linear, fallback on cpu")}
    assert [layer for layer, _ in replaced("plain.pt", "--only", "*.act_fn").values()] == ["Silu"]
    assert replaced("plain.pt", "--strict") == plain
    shared = {site: layer for site, (layer, _) in replaced("model.pt").items()}
    assert shared.pop("mlp") == "SwiGLUMLP", shared
    assert sorted(layer for layer in shared.values() if "inear" not in layer) == ["NewGELU", "Silu"], shared
