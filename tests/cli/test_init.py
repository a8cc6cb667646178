"""twinkle init: a manifest to start from."""

import subprocess
import sys

import pytest
from kernels_for_tests import EXAMPLES, needs_runtime


def test_a_first_manifest_is_one_that_twinkle_reads(twinkle):
    done = twinkle("init", "--json")
    assert done.code == 0, done.err
    assert done.json["schema"] == "twinkle.init/1" and done.json["classes"] == []
    text = (twinkle.folder / "twinkle.toml").read_text()
    assert text.startswith("# ") and "[kernels]" in text
    resolved = twinkle("resolve", "-o", "twinkle.map.json", "--json")
    assert resolved.code == 0, resolved.err


def test_every_commented_line_is_right(twinkle):
    """What is proposed in comments is read without an error, once the # is away."""
    assert twinkle("init").code == 0
    manifest = twinkle.folder / "twinkle.toml"
    lines = []
    for line in manifest.read_text().splitlines():
        bare = line.removeprefix("# ")
        is_code = bare.startswith("[") or " = " in bare.split("#")[0]
        lines.append(bare if line.startswith("# ") and is_code else line)
    (twinkle.folder / "kernels/my_kernels").mkdir(parents=True)
    manifest.write_text("\n".join(lines))
    done = twinkle("resolve", "--offline", "-o", "twinkle.map.json")
    # It is read to the end: what is missing is the kernel.
    assert done.code == 3 and "kernels-community/activation" in done.err, done.err


def test_a_manifest_is_not_overwritten_but_by_force(twinkle):
    manifest = twinkle.folder / "twinkle.toml"
    manifest.write_text("# mine\n")
    done = twinkle("init")
    assert done.code == 2 and "--force" in done.err
    assert manifest.read_text() == "# mine\n"
    assert twinkle("init", "--force").code == 0
    assert manifest.read_text() != "# mine\n"
    manifest.unlink()
    manifest.symlink_to("elsewhere.toml")
    assert twinkle("init").code == 2 and not (twinkle.folder / "elsewhere.toml").exists()
    assert twinkle("--project", "none", "init").code == 3


@needs_runtime
@pytest.mark.parametrize("model, bound", [("traced.pt", True), ("scripted.pt", False)])
def test_the_classes_of_a_model(twinkle, model, bound):
    done = twinkle("init", EXAMPLES / model, "--json")
    assert done.code == 0, done.err
    assert {(found["layer"], found["bound"]) for found in done.json["classes"]} == {
        ("RMSNorm", bound), ("SwiGLUMLP", bound), ("Linear", True)}
    text = (twinkle.folder / "twinkle.toml").read_text()
    if bound:
        assert "LlamaRMSNorm (1 instance): twinkle-pack: RMSNorm" in text
    else:
        # Names prove nothing: proposed, and right when somebody says so.
        assert '# classes = ["tiny_llama.model.RMSNorm"]' in text
        (twinkle.folder / "twinkle.toml").write_text(
            text.replace("# [layers.RMSNorm]", "[layers.RMSNorm]")
                .replace('# classes = ["tiny_llama.model.RMSNorm"]', 'classes = ["tiny_llama.model.RMSNorm"]'))
        report = twinkle("kernelize", EXAMPLES / model, "-o", "fast.pt", "--json")
        assert report.code == 0 and report.json["replaced"] == 20, report.err  # formulas too, by the preset


@needs_runtime
def test_a_project_that_has_nothing_yet(twinkle):
    (twinkle.folder / "new").mkdir()
    done = twinkle("init", EXAMPLES / "traced.pt", "--project", "new", "--json")
    assert done.code == 0, done.err
    assert {found["layer"] for found in done.json["classes"]} == {"Linear", "RMSNorm", "SwiGLUMLP"}
    assert (twinkle.folder / "new/twinkle.toml").exists() and not (twinkle.folder / "twinkle.toml").exists()


@needs_runtime
def test_a_model_that_is_none_writes_nothing(twinkle):
    (twinkle.folder / "model.pt").write_text("no model")
    assert twinkle("init", "model.pt").code == 2
    assert twinkle("init", "none.pt").code == 3
    assert not (twinkle.folder / "twinkle.toml").exists()


FUNCTIONS = """import torch
from torch import nn
from torch.nn import functional as F


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.stack([F.silu(first), second]).prod(0)  # no formula of a preset


def rms_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def other(x: torch.Tensor) -> torch.Tensor:
    return x + 1.0


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(other(silu_and_mul(x)) + silu_and_mul(x), 1e-6)


for function in (silu_and_mul, rms_norm, other):
    function.__module__ = "my_pkg.ops"
torch.jit.script(Model().eval()).save("model.pt")
"""


@pytest.fixture
def with_functions(twinkle):
    (twinkle.folder / "make.py").write_text(FUNCTIONS)
    subprocess.run([sys.executable, "-W", "ignore", "make.py"], cwd=twinkle.folder, check=True)
    return twinkle


@needs_runtime
def test_the_functions_of_a_model(with_functions):
    """What a kernel has by that name, and the call fits; as inspect and check show it, too."""
    twinkle = with_functions
    done = twinkle("init", "model.pt", "--json")
    assert done.code == 0, done.err
    assert done.json["functions"] == [
        {"function": "my_pkg.ops.silu_and_mul", "kernel": "twinkle-pack: silu_and_mul", "calls": 2, "bound": False}]
    text = (twinkle.folder / "twinkle.toml").read_text()
    assert "rms_norm" not in text  # its second parameter is a weight, the model's an epsilon
    proposal = ('# [functions.silu_and_mul]   # 2 calls\n# target_module = "my_pkg.ops"\n'
                '# func_name = "silu_and_mul"\n')
    assert proposal in text
    shown = twinkle("inspect", "model.pt").out
    assert proposal.replace("# [", "[").replace("\n# ", "\n") in shown
    (twinkle.folder / "twinkle.toml").write_text(text.replace(proposal, proposal.replace("# [", "[").replace("\n# ", "\n")))
    report = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--json", "--inputs", "float32[3,32]", "--verify",
                     "--device", "cpu")
    assert report.code == 0 and report.json["replaced"] == 2, report.err


@needs_runtime
def test_check_says_which_functions_fit(with_functions):
    twinkle = with_functions
    (twinkle.folder / "kernel").mkdir()
    (twinkle.folder / "kernel/__init__.py").write_text(
        "import torch\n\n\ndef silu_and_mul(x):\n    return torch.nn.functional.silu(x)\n\n\n"
        "def rms_norm(x, weight, eps):\n    return x\n\n\ndef unused(x):\n    return x\n")

    def functions(code):
        done = twinkle("check", "kernel", "--model", "model.pt", "--json")
        assert done.code == code, done.err
        fits = {(one["function"], one["of"]): one for one in done.json["model"] if one["kind"] == "function"}
        return fits, [one for one in done.json["findings"] if one["rule"] == "function/model"]

    fits, findings = functions(0)
    fast = fits["silu_and_mul", "my_pkg.ops.silu_and_mul"]
    assert (fast["sites"], fast["fits"], fast["by_name"]) == (2, 2, True)
    norm = fits["rms_norm", "my_pkg.ops.rms_norm"]
    assert norm["fits"] == 0 and "parameter weight" in norm["because"]
    assert ("unused", None) in fits
    assert [finding["severity"] for finding in findings] == ["note"]
    (twinkle.folder / "twinkle.toml").write_text(
        '[functions.other]\ntarget_module = "my_pkg.ops"\nrepo_path = "kernel"\nfunc_name = "rms_norm"\n')
    fits, findings = functions(4)
    assert not fits["rms_norm", "my_pkg.ops.other"]["by_name"]
    error = next(finding for finding in findings if finding["severity"] == "error")
    assert "calls of my_pkg.ops.other: the call has nothing for its parameter weight" in error["text"]
    assert "function/model" in twinkle("check", "kernel", "--model", "model.pt").out
    (twinkle.folder / "twinkle.toml").write_text("[layers\n")
    unread = twinkle("check", "kernel", "--model", "model.pt")
    assert unread.code == 0 and "not checked: not valid TOML (twinkle.toml:1" in unread.err, unread.err
