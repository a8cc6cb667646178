"""kernelize --mode training: layers that are autograd.Functions train, in real models, before and after they are
saved; a gradient that is wrong is found by --verify and its site put back."""

import subprocess
import sys

import pytest
from kernels_for_tests import EXAMPLES, NORM, PREFIX, RUNTIMES, models, needs_runtime, python_kernel

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
INPUTS = EXAMPLES / "inputs_other.pt"
PATIENCE = {"TWINKLE_SANDBOX_SECONDS": "60"}  # nothing hangs here, whatever the machine is doing beside

NORM_FUNCTION = """import torch
from torch import nn
from torch.autograd.function import once_differentiable


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
        normal = (x.float() * scale).to(x.dtype)
        ctx.save_for_backward(x, weight, scale)
        return weight * normal

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, scale = ctx.saved_tensors
        wide = x.float()
        normal = wide * scale
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            inner = grad.float() * weight.float()
            grad_x = (scale * (inner - normal * (inner * normal).mean(-1, keepdim=True))).to(x.dtype)
        if ctx.needs_input_grad[1]:
            grad_weight = (grad.float() * normal).flatten(0, -2).sum(0).to(weight.dtype)
        return grad_x, grad_weight, None


class RMSNorm(nn.Module):
    has_backward = True
    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return RMSNormFunction.apply(hidden_states, self.weight, self.variance_epsilon)
"""


def train(twinkle, model, *more, code=0):
    done = twinkle("kernelize", model, "--mode", "training", "--inputs", INPUTS, "--verify", "--json", "-o", "fast.pt",
                   *more, env=PATIENCE)
    assert done.code == code, done.err
    return done


def gradients(model):
    """Of every parameter, as a training program gets them."""
    for parameter in model.parameters():
        parameter.grad = None
        parameter.requires_grad_(True)
    output = model(*torch.load(INPUTS))
    output = output[0] if isinstance(output, tuple) else output
    output.square().sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.fixture
def example_map(twinkle):
    assert twinkle("resolve", "--project", EXAMPLES, "-o", "map.json").code == 0
    return twinkle.folder / "map.json"


@pytest.mark.parametrize("name", ["scripted", "traced"])
def test_the_bundled_kernels_train(twinkle, example_map, name):
    report = train(twinkle, EXAMPLES / f"{name}.pt", "--map", example_map).json
    assert report["mode"] == "training" and report["replaced"] == 7, report
    # Any program that has loaded libtwinkle and the kernel can train it.
    program = f"""
import torch
torch.ops.load_library({str(RUNTIMES[0].parent / "libtwinkle.so")!r})
torch.ops.load_library({str(next((PREFIX / "lib/twinkle/kernels/twinkle-pack").rglob("_twinkle_pack_*.so")))!r})
model = torch.jit.load("fast.pt")
inputs = torch.load({str(INPUTS)!r})
for parameter in model.parameters():
    parameter.requires_grad_(True)
output = model(*inputs)
output = output[0] if isinstance(output, tuple) else output
output.square().sum().backward()
torch.save({{name: parameter.grad for name, parameter in model.named_parameters()}}, "gradients.pt")
"""
    subprocess.run([sys.executable, "-c", program], cwd=twinkle.folder, check=True)
    found = torch.load(twinkle.folder / "gradients.pt")
    expected = gradients(torch.jit.load(EXAMPLES / f"{name}.pt"))
    assert found.keys() == expected.keys()
    for parameter, gradient in expected.items():
        assert (found[parameter] - gradient).norm() < 1e-5 * gradient.norm(), parameter


def test_a_function_of_a_python_package_trains(twinkle):
    python_kernel(twinkle.folder, NORM_FUNCTION)
    report = train(twinkle, EXAMPLES / "scripted.pt").json
    assert report["replaced"] == 5 and report["reverted"] == 0


@pytest.mark.parametrize("right, wrong, what", [
    ("(inner - normal *", "(inner + normal *", "input 1"),
    (".sum(0)", ".mean(0)", "parameter weight"),
    ("if ctx.needs_input_grad[1]:", "if False:", "parameter weight"),
])
def test_a_wrong_gradient_is_put_back_and_named(twinkle, right, wrong, what):
    assert right in NORM_FUNCTION
    python_kernel(twinkle.folder, NORM_FUNCTION.replace(right, wrong))
    report = train(twinkle, EXAMPLES / "scripted.pt").json
    assert report["reverted"] == 5 and report["replaced"] == 0
    for site in report["sites"]:
        assert "gradient" in site["because"] and what in site["because"], site
    # For inference its values are right.
    assert twinkle("kernelize", EXAMPLES / "scripted.pt", "--inputs", INPUTS, "--verify", "--json", "--mode",
                   "inference", "-o", "inferred.pt", env=PATIENCE).json["replaced"] == 5
    strict = train(twinkle, EXAMPLES / "scripted.pt", "--strict", code=4)
    assert strict.error["code"] == "verification" and what in strict.error["why"]


def test_a_model_in_training_is_kernelized_for_training(twinkle, example_map, models):
    report = twinkle("kernelize", models / "in_training.pt", "--map", example_map, "--json", "-o", "t.pt").json
    assert report["mode"] == "training" and report["replaced"] > 0, report


def test_who_forgot_eval_is_told(twinkle, models):
    command = ("kernelize", models / "in_training.pt", "-o", "t.pt", "--no-measure")
    assert "the model is saved in training mode" in twinkle(*command).err
    assert "in training mode" not in twinkle(*command, "--mode", "training").err
    # No error is small enough: the whole model is refused, and the hint says that gradients count.
    nothing_passes = (*command, "--inputs", "float32[2,64]", "--tolerance", "0.001")
    failed = twinkle(*nothing_passes, "--json", env=PATIENCE)
    assert failed.code == 4 and "--mode inference" in failed.error["hint"], failed.err
    failed = twinkle(*nothing_passes, "--mode", "inference", "--json", env=PATIENCE)
    assert failed.code == 4 and "--only or --exclude" in failed.error["hint"], failed.err
