"""Functions of models: scripted ones, wherever they are called, by qualified name; and functions of
torch.nn.functional that are script functions."""

import json

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return x + alpha * y


def normalize(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return add(x, torch.zeros_like(x)) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def gated(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return F.silu(first) * second


def other_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x - y


for function in (add, normalize, gated):
    function.__module__ = "my_pkg.math_ops"
other_add.__module__, other_add.__name__, other_add.__qualname__ = "other.math_ops", "add", "add"
subtract = other_add


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = gated(self.up(normalize(x, 1e-3)))
        return subtract(add(x, h), add(y=h, x=x, alpha=0.5))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + 8 * block(x)
        return normalize(x)


FAST = """import torch


def fast_add(x, y, alpha=1.0):
    return torch.add(x, alpha * y)


def wrong_add(x, y, alpha=1.0):
    return torch.add(x, y)  # right where alpha is 1


def fast_normalize(x, eps=1e-6):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def gated_into(out, x):
    half = x.shape[-1] // 2
    out.copy_(torch.nn.functional.silu(x[..., :half]) * x[..., half:])
"""

ADD = '[functions.add]\ntarget_module = "my_pkg.math_ops"\nfunc_impl = "fast.py:{}_add"\n'
NORMALIZE = '[functions.normalize]\ntarget_module = "my_pkg.math_ops"\nfunc_impl = "fast.py:fast_normalize"\n'
GATED = '[functions.gated]\ntarget_module = "my_pkg.math_ops"\nfunc_impl = "fast.py:gated_into"\n'
SILU = '[functions.silu]\ntarget_module = "torch.nn.functional"\nfunc_impl = "op:aten::silu"\n'


@pytest.fixture
def project(twinkle):
    torch.manual_seed(3)
    model = Model().eval()
    torch.jit.script(model).save(twinkle.folder / "model.pt")
    (twinkle.folder / "fast.py").write_text(FAST)
    twinkle.env["OMP_NUM_THREADS"] = "1"
    twinkle.model = model
    return twinkle


def kernelized(twinkle, manifest, *more):
    (twinkle.folder / "twinkle.toml").write_text("presets = []\n" + manifest)
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "float32[2,5,16]", "--verify", "--json", *more)
    assert done.code == 0, done.err
    return done.json


def sites(report, status):
    return sorted(site["site"] for site in report["sites"] if site["status"] == status)


def assert_same(twinkle):
    """In a fresh process, at another shape."""
    x = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8))
    torch.save((x,), twinkle.folder / "in.pt")
    done = twinkle("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    with torch.no_grad():
        expected = twinkle.model(x)
    result = torch.load(twinkle.folder / "out.pt", weights_only=True)
    assert (result - expected).norm() < 1e-5 * expected.norm()


BLOCK = [f"blocks.{i}.forward:my_pkg.math_ops.add{n}" for i in range(2) for n in ("", "#2")]
INNER = "my_pkg.math_ops.normalize:my_pkg.math_ops.add"


def test_a_function_wherever_it_is_called(project):
    report = kernelized(project, ADD.format("fast"))
    assert sites(report, "replaced") == sorted([*BLOCK, INNER])
    for site in report["sites"]:
        assert site["kind"] == "function" and site["of"] == "my_pkg.math_ops.add"
        assert site["kernel"] == "fast.py: fast_add" and site["max_error"] <= site["allowed_error"]
    assert_same(project)


def test_a_wrong_function_is_put_back_where_it_is_wrong(project):
    report = kernelized(project, ADD.format("wrong"))
    second = [site for site in BLOCK if site.endswith("#2")]
    assert sites(report, "reverted") == sorted(second)
    assert sites(report, "replaced") == sorted([*BLOCK[::2], INNER])
    assert all("its error is" in site["because"] for site in report["sites"] if site["status"] == "reverted")
    assert_same(project)
    done = project("kernelize", "model.pt", "--inputs", "float32[2,5,16]", "--verify", "--strict")
    assert done.code == 4 and "math_ops.add" in done.err


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x + x


doubled.__module__ = "__main__"


class OfAScript(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return doubled(torch.sin(x))


def test_functions_of_the_script_that_made_the_model(twinkle):
    twinkle.model = OfAScript().eval()
    torch.jit.script(twinkle.model).save(twinkle.folder / "model.pt")
    (twinkle.folder / "fast.py").write_text("import torch\n\n\ndef doubled(x):\n    return 2.0 * x\n")
    (twinkle.folder / "twinkle.toml").write_text(
        'presets = []\n[functions.doubled]\ntarget_module = "__main__"\nfunc_impl = "fast.py:doubled"\n')
    done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "float32[4,3]", "--verify", "--device", "cpu", "--json")
    assert done.code == 0 and sites(done.json, "replaced") == ["forward:doubled"], done.err
    assert_same(twinkle)
    again = twinkle("kernelize", "fast.pt", "--dry-run", "--device", "cpu", "--json")
    assert [site["because"] for site in again.json["sites"]] == ["it is kernelized already"]


def test_one_call_alone(project):
    report = kernelized(project, ADD.format("wrong"), "--only", "blocks.1.*#2")
    assert sites(report, "reverted") == ["blocks.1.forward:my_pkg.math_ops.add#2"]
    report = kernelized(project, ADD.format("fast"), "--only", "blocks.1.*#2")
    assert sites(report, "replaced") == ["blocks.1.forward:my_pkg.math_ops.add#2"]
    assert_same(project)


def test_several_functions_and_their_kinds(project):
    report = kernelized(project, NORMALIZE + GATED + SILU)
    # What stood in gated is gone with it.
    gone = "my_pkg.math_ops.gated:torch.nn.functional.silu"
    assert sites(report, "replaced") == sorted(
        [*(f"blocks.{i}.forward:my_pkg.math_ops.{name}" for i in range(2) for name in ("normalize", "gated")),
         "forward:my_pkg.math_ops.normalize"])
    assert len(report["sites"]) == 5
    assert all(f", with its {gone}" in site["because"] for site in report["sites"] if "gated" in site["site"])
    assert_same(project)
    report = kernelized(project, SILU)
    assert sites(report, "replaced") == [gone]
    assert report["sites"][0]["kernel"] == "aten::silu"
    assert_same(project)


def test_the_mapping_holds_the_source(project):
    (project.folder / "twinkle.toml").write_text("presets = []\n" + ADD.format("fast"))
    assert project("resolve", "-o", "map.json").code == 0
    mapping = json.loads((project.folder / "map.json").read_text())
    assert mapping["functions"] == [{"target_module": "my_pkg.math_ops", "func_name": "add", "candidates": [
        {"source": FAST, "file": "fast.py", "function": "fast_add", "device": "any", "mode": "fallback",
         "has_backward": True, "can_torch_compile": True}]}]
    (project.folder / "fast.py").unlink()
    (project.folder / "twinkle.toml").unlink()
    done = project("kernelize", "model.pt", "--map", "map.json", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["replaced"] == 5
    assert_same(project)


def test_training_and_gradients(project):
    report = kernelized(project, NORMALIZE + GATED, "--mode", "train")
    assert len(sites(report, "replaced")) == 5
    wrong = FAST.replace("(x * x).mean", "(x * x).detach().mean")
    (project.folder / "fast.py").write_text(wrong)
    report = kernelized(project, NORMALIZE, "--mode", "train")
    assert sites(report, "replaced") == []
    assert all("gradient" in site["because"] for site in report["sites"])


def gate(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 64)
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(gate(self.gate(x), self.up(x)))


def test_an_operator_of_a_kernel(twinkle):
    """The model then names the kernel; an operator that knows no gradient is not for training."""
    gate.__module__ = "my_pkg.gates"
    twinkle.model = Gated().eval()
    torch.jit.script(twinkle.model).save(twinkle.folder / "model.pt")
    manifest = '[functions.gate]\ntarget_module = "my_pkg.gates"\nfunc_impl = "op:twinkle_pack::silu_mul"\n'
    report = kernelized(twinkle, manifest)
    [site] = report["sites"]
    assert site["status"] == "replaced" and "silu_mul" in site["kernel"] and site["variant"]
    assert_same(twinkle)
    [kernel] = twinkle("inspect", "fast.pt", "--json").json["kernels"]
    assert kernel["name"] == "twinkle-pack"
    report = kernelized(twinkle, manifest, "--mode", "train")
    assert sites(report, "kept") == ["forward:my_pkg.gates.gate"]
    assert "no autograd kernel" in report["sites"][0]["because"]
    # The pack's function of that name is an autograd.Function.
    report = kernelized(twinkle, manifest.replace('func_impl = "op:twinkle_pack::silu_mul"', 'func_name = "silu_mul"'),
                        "--mode", "train")
    [site] = report["sites"]
    assert site["status"] == "replaced" and site["kernel"] == "twinkle-pack: silu_mul"


def test_inspect_says_what_could_be_replaced(project):
    (project.folder / "twinkle.toml").write_text("presets = []\n" + ADD.format("fast") + SILU)
    bindings = {one["class"]: one for one in project("inspect", "model.pt", "--json").json["bindings"]}
    assert bindings["my_pkg.math_ops.add"]["kind"] == "function" and bindings["my_pkg.math_ops.add"]["fits"] == 5
    assert bindings["torch.nn.functional.silu"]["kernel"] == "aten::silu"
    shown = project("inspect", "model.pt").out
    assert "fast.py: fast_add" in shown


def test_what_cannot_be_replaced_is_said(project):
    missing = ADD.format("fast").replace("add]", "ad]")
    report = kernelized(project, missing)
    assert "no call of the function my_pkg.math_ops.ad is in this model" in report["warnings"][0]
    operator = SILU.replace("functions.silu", "functions.scaled_dot_product_attention")
    assert kernelized(project, operator)["warnings"][0].endswith("; as an operator it is found by a pattern")
    for manifest, code, words in [
        (ADD.format("fast").replace("fast.py:", "gone.py:"), 3, "gone.py"),
        (ADD.format("fast").replace("fast.py:", "fast.py::"), 2, "func_impl"),
        (ADD.format("fast") + 'func_name = "sub"\n', 2, "what is replaced is what the table is called"),
        (ADD.format("fast").replace('"fast.py:fast_add"', '"op:aten::adds"'), 6, "the nearest is aten::add"),
        (ADD.format("fast").replace('"fast.py:fast_add"', '"op:twinkle_pack::no_such"'), 3, 'no operator "'),
        (ADD.format("fast").replace('"fast.py:fast_add"', '"op:nowhere::add"'), 6, "no library has registered"),
    ]:
        (project.folder / "twinkle.toml").write_text("presets = []\n" + manifest)
        done = project("kernelize", "model.pt", "-o", "other.pt")
        assert done.code == code and words in done.out + done.err, (manifest, done.err)


def test_odd_names_in_a_manifest(project):
    """They name nothing in the model, and are said without harm to a terminal."""
    for name in ["a\\nb", "größe", "a.b", "\\u001b[31mred", "x" * 20000, "twinkle_functions.add", "add'; --", "%s{}"]:
        for function, module in ((name, "my_pkg.math_ops"), ("add", name)):
            (project.folder / "twinkle.toml").write_text(
                f'presets = []\n[functions."{function}"]\ntarget_module = "{module}"\nfunc_impl = "fast.py:fast_add"\n')
            for command in (["resolve"], ["kernelize", "model.pt", "-o", "odd.pt"], ["inspect", "model.pt"]):
                done = project(*command)
                assert done.code == 0, (name, command, done.err)
                assert "\x1b" not in done.out + done.err and "a\nb" not in done.out + done.err
            assert project("kernelize", "model.pt", "-o", "odd.pt", "--json").json["sites"] == []


BROKEN = {"broken.py": "def add(x, y:\n", "nested.py": "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n",
          "flags.py": "def add(x, y, alpha=1.0):\n    return x + alpha * y\n\n\nadd.has_backward = False\n",
          "thing.py": "add = 3\n\n\nclass Thing:\n    pass\n", "huge.py": "# " + "x" * (5 << 20) + "\n",
          "python.py": "def add(x, y, alpha=1.0):\n    try:\n        return x + alpha * y\n    except ValueError:\n"
                       "        return x\n", "latin.py": b"# caf\xe9\ndef add(x, y):\n    return x\n"}


@pytest.mark.parametrize("impl, code, words", [
    ("fast.py:slow_add", 3, ["no function or layer slow_add in fast.py", "there are: fast_add, fast_normalize"]),
    ("fast.py:fast_ad", 3, ['did you mean "fast_add"?']),
    ("broken.py:add", 2, ["broken.py:1"]),
    ("nested.py:add", 2, ["nested.py:1"]),
    ("huge.py:add", 2, ["huge.py"]),
    ("latin.py:add", 2, ["latin.py:1"]),
    ("thing.py:add", 3, ["it has none"]),
    ("thing.py:Thing", 3, ["it has none"]),
    ("op:twinkle_pack::silu_nul", 3, ['no operator "silu_nul" in twinkle-pack', 'did you mean "silu_mul"?']),
])
def test_resolve_finds_wrong_functions(twinkle, impl, code, words):
    for name, text in {"fast.py": FAST, **BROKEN}.items():
        (twinkle.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (twinkle.folder / "twinkle.toml").write_text(
        f'presets = []\n[functions.add]\ntarget_module = "my_pkg.math_ops"\nfunc_impl = "{impl}"\n')
    done = twinkle("resolve", "--json")
    assert done.code == code, done.err
    assert all(word in f"{done.error}" for word in words), done.err
    assert "huge" in impl or "twinkle.toml:2:1" in done.err


def test_resolve_says_what_a_function_cannot_do(twinkle):
    for name in ("flags.py", "python.py"):
        (twinkle.folder / name).write_text(BROKEN[name])

    def resolved(impl, mode, *more):
        (twinkle.folder / "twinkle.toml").write_text(
            f'presets = []\n[functions.add]\ntarget_module = "m"\nfunc_impl = "{impl}"\nmode = "{mode}"\n')
        done = twinkle("resolve", "-o", "map.json", "--json", *more)
        return done if more else next(one for one in done.json["decisions"] if one["what"] == "function m.add")

    decision = resolved("flags.py:add", "train")
    assert decision["chosen"] is None and "has_backward is false at flags.py:1" in decision["because"]
    assert resolved("flags.py:add", "inference")["chosen"] == "flags.py: add on any (inference)"
    assert resolved("flags.py:add", "train", "--strict").code == 2
    decision = resolved("python.py:add", "inference")
    assert decision["chosen"] and "python.py:2" in decision["because"] and "original stays" in decision["because"]
    assert resolved("python.py:add", "inference", "--strict").code == 6


def test_the_pack_shows_its_operators(twinkle):
    """They are read from the library; that is where a wrong name is found."""
    (twinkle.folder / "twinkle.toml").write_text(
        'presets = []\n[functions.silu]\ntarget_module = "m"\nfunc_impl = "op:twinkle_pack::silu"\n')
    assert twinkle("resolve", "-o", "map.json").code == 0
    mapping = json.loads((twinkle.folder / "map.json").read_text())
    assert not [one for one in mapping["decisions"] if one["what"].startswith("operators of")]  # none had to be asked for
    [kernel] = mapping["kernels"]
    mapped = {one["name"]: one["schema"] for one in kernel["operators"]}
    listed = twinkle("inspect", kernel["path"], "--json").json["operators"]
    assert mapped == {one["name"]: one["schema"] for one in listed}
    assert {"silu", "rms_norm", "layer_norm_backward", "apply_rotary"} <= set(mapped)
    loaded = twinkle("inspect", kernel["path"], "--load", "--json").json["loaded"]["operators"]
    assert {one["name"].split("::")[1] for one in loaded} == set(mapped)
    assert all(one["found_statically"] for one in loaded)


def test_a_scripted_function_in_a_trace(twinkle):
    """It stays a call there; the rest of a trace has none."""
    twinkle.model = Model().eval()
    scripted = torch.jit.script(add)

    class Traced(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(16, 16)

        def forward(self, x):
            return scripted(self.linear(x), x, 0.5)

    twinkle.model = Traced().eval()
    torch.jit.trace(twinkle.model, torch.randn(2, 5, 16)).save(twinkle.folder / "model.pt")
    (twinkle.folder / "fast.py").write_text(FAST)
    report = kernelized(twinkle, ADD.format("fast"))
    assert sites(report, "replaced") == ["forward:my_pkg.math_ops.add"]
    assert_same(twinkle)


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gated(torch.cat([x, x], -1))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return add(self.inner(x), x, 0.5)


class Mixers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.mixers = nn.ModuleList([Mixer(), Mixer()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        for mixer in self.mixers:
            x = x + mixer(x)
        return add(x, gated(torch.cat([x, x], -1)))


@pytest.mark.parametrize("spoilt", ["", " + 0.1"])
def test_calls_inside_of_a_replaced_module(twinkle, spoilt):
    """They are no sites where a layer computes them, and are some again where that layer is put back."""
    twinkle.model = Mixers().eval()
    torch.jit.script(twinkle.model).save(twinkle.folder / "model.pt")
    (twinkle.folder / "fast.py").write_text(FAST)
    (twinkle.folder / "kernel").mkdir()
    (twinkle.folder / "kernel/__init__.py").write_text("from . import layers\n")
    (twinkle.folder / "kernel/layers.py").write_text(f"""import torch
import torch.nn.functional as F
from torch import nn


class FastMixer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x) * x + 0.5 * x{spoilt}
""")
    layer = '[layers.FastMixer]\nrepo_path = "kernel"\nclasses = ["*.Mixer"]\n'
    report = kernelized(twinkle, layer + ADD.format("fast") + GATED)
    own = ["forward:my_pkg.math_ops.add", "forward:my_pkg.math_ops.gated"]
    mixers = ["mixers.0", "mixers.1"]
    inside = ["forward:my_pkg.math_ops.add", "inner.forward:my_pkg.math_ops.gated"]
    if spoilt:
        assert sites(report, "reverted") == mixers
        assert sites(report, "replaced") == sorted(own + [f"{mixer}.{name}" for mixer in mixers for name in inside])
    else:
        assert sites(report, "replaced") == own + mixers and len(report["sites"]) == 4
        because = [site["because"] for site in report["sites"] if site["site"] in mixers]
        assert all(text.endswith("".join(f", with its {name}" for name in inside)) for text in because), because
    assert all(site["max_error"] <= site["allowed_error"] for site in report["sites"] if site["status"] == "replaced")
    assert_same(twinkle)
