"""Convolutions as sites, with what follows them: traced, scripted and frozen, of other sizes than they were traced with,
and what keeps them from being one."""

import re
import zipfile

import pytest
from kernels_for_tests import needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

INPUT = "float32[2,3,20,22]"
MANIFEST = 'presets = ["convolutions"]\n'


class Layer(nn.Module):
    """A convolution, its normalization, an activation."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, act=None):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.act = act if act is not None else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.bn(self.conv(x)))


class Residual(nn.Module):
    """As in ResNet: the addition and the activation write in place."""

    def __init__(self, width: int, shortcut: bool = False):
        super().__init__()
        self.first, self.second = Layer(width, width, act=nn.ReLU(inplace=True)), Layer(width, width)
        self.shortcut = Layer(width, width, 1) if shortcut else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(x))
        y += self.shortcut(x)
        return self.relu(y)


class Inverted(nn.Module):
    """As in MobileNetV2."""

    def __init__(self, width: int):
        super().__init__()
        self.up, self.deep = Layer(width, 2 * width, 1, act=nn.ReLU6()), Layer(2 * width, 2 * width, groups=2 * width,
                                                                              act=nn.ReLU6(inplace=True))
        self.down = Layer(2 * width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.deep(self.up(x)))


class Detector(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.one, self.two = Layer(width, width, act=nn.SiLU(inplace=True)), Layer(width, width, act=nn.SiLU(inplace=True))
        self.plain = nn.Conv2d(width, 7, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.two(self.one(x))
        return self.plain(y).view(x.size(0), -1)  # of a result in the plain layout


class Others(nn.Module):
    """Activations without normalization."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.a(x))
        x = F.hardswish(self.b(x))
        return F.relu(self.c(x) + x)


def settled(model: nn.Module) -> nn.Module:
    """With statistics and weights that are not those of a new model."""
    torch.manual_seed(3)
    for one in model.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2)
            nn.init.normal_(one.weight)
            nn.init.normal_(one.bias)
    return model.eval()


def saved(twinkle, model: nn.Module, how: str, inputs=(2, 3, 20, 22), dtype=torch.float32):
    model = settled(model).to(dtype)
    made = torch.jit.script(model) if how == "scripted" else torch.jit.trace(
        model, torch.randn(inputs, dtype=dtype), check_trace=False)
    if how == "frozen":
        made = torch.jit.freeze(made)
    made.save(twinkle.folder / "model.pt")
    return made


def kernelized(twinkle, *options, manifest=MANIFEST, inputs=INPUT):
    if manifest:
        (twinkle.folder / "twinkle.toml").write_text(manifest)
    done = twinkle("kernelize", "model.pt", "--inputs", inputs, "-o", "fast.pt", "--json", "--no-measure", *options)
    assert done.code == 0, done.err
    return done.json


def replaced(report):
    """How many sites of each pattern."""
    counts = {}
    for site in report["sites"]:
        assert site["status"] == "replaced", site
        name = site["of"].rsplit(".", 1)[-1]
        counts[name] = counts.get(name, 0) + 1
    return counts


RESNET = {"conv2d_relu": 5, "conv2d_batch_norm": 1, "max_pool2d": 1}
# Frozen, a normalization is part of its convolution's weights.
FROZEN_RESNET = {"conv2d_relu": 5, "conv2d": 1, "max_pool2d": 1}


def resnet() -> nn.Module:
    return nn.Sequential(Layer(3, 8, 7, 2, act=nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1), Residual(8),
                         Residual(8, shortcut=True))


@pytest.mark.parametrize("how", ["traced", "scripted", "frozen"])
def test_residual_blocks(twinkle, how):
    saved(twinkle, resnet(), how)
    assert replaced(kernelized(twinkle)) == (FROZEN_RESNET if how == "frozen" else RESNET)


@pytest.mark.parametrize(("model", "expected"), [
    (lambda: nn.Sequential(nn.Conv2d(3, 8, 1), Inverted(8)),
     {"conv2d": 1, "conv2d_relu6": 2, "conv2d_add": 1}),
    (lambda: nn.Sequential(Layer(3, 8, act=nn.SiLU()), Detector(8)),
     {"conv2d_silu": 2, "conv2d_silu_add": 1, "conv2d": 1}),
    (Others, {"conv2d_gelu": 1, "conv2d_hardswish": 1, "conv2d_relu": 1})])
@pytest.mark.parametrize("how", ["traced", "scripted"])
def test_activations_and_where_the_residual_is_added(twinkle, model, expected, how):
    saved(twinkle, model(), how)
    assert replaced(kernelized(twinkle)) == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(twinkle, dtype):
    saved(twinkle, resnet(), "traced", dtype=getattr(torch, dtype))
    assert replaced(kernelized(twinkle, inputs=f"{dtype}[2,3,20,22]")) == RESNET


def test_scripted(twinkle):
    saved(twinkle, Others(), "scripted")
    assert replaced(kernelized(twinkle)) == {"conv2d_gelu": 1, "conv2d_hardswish": 1, "conv2d_relu": 1}


def code_of(twinkle, name="fast.pt") -> str:
    with zipfile.ZipFile(twinkle.folder / name) as archive:
        return "\n".join(archive.read(one).decode() for one in archive.namelist() if one.endswith(".py"))


def test_nothing_is_left_of_a_scripted_normalization(twinkle):
    """What would count its batches in training, and the convolution itself, which that looks at."""
    original = saved(twinkle, Layer(3, 8, act=nn.ReLU()), "scripted")
    assert replaced(kernelized(twinkle)) == {"conv2d_relu": 1}
    forward = code_of(twinkle).split("class Layer(Module):")[1].split("\nclass ")[0].split("def forward")[1]
    assert "num_batches_tracked" not in forward and "conv2d(" not in forward.replace("fused_conv2d(", "")
    x = torch.randn(2, 3, 20, 22)
    assert torch.allclose(outputs(twinkle, x), original(x), atol=1e-4)


def test_the_check_of_a_scripted_normalization_stays(twinkle):
    """It asks for the dimensions of what the convolution gives, which nothing computes any more."""
    saved(twinkle, Layer(3, 20, act=nn.ReLU()), "scripted")
    assert replaced(kernelized(twinkle)) == {"conv2d_relu": 1}
    done = twinkle("run", "fast.pt", "--inputs", "float32[3,20,22]", "-o", "outputs.pt")
    assert done.code != 0 and "expected 4D input (got 3D input)" in done.err


class Flagged(nn.Module):
    """What is behind the convolutions depends on a flag."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor, flag: bool) -> torch.Tensor:
        a, b = self.a(x), self.b(x)
        return F.relu(a if flag else b)


class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.flagged = Flagged()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.flagged(x, True)


class Both(Once):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.flagged(x, True) - self.flagged(x, False)


@pytest.mark.parametrize(("model", "joined"), [(Once, 1), (Both, 0)])
def test_a_flag_that_callers_pass(twinkle, model, joined):
    original = saved(twinkle, model(), "scripted")
    report = kernelized(twinkle)
    assert len([site for site in report["sites"] if site["of"] == "conv2d_relu" and site["status"] == "replaced"]) == joined
    x = torch.randn(2, 3, 20, 22)
    assert torch.allclose(outputs(twinkle, x), original(x), atol=1e-4)


@pytest.mark.parametrize("why", ["mode", "layer"])
def test_a_scripted_model_that_may_train_keeps_what_training_does(twinkle, why):
    model = settled(nn.Sequential(Layer(3, 8, act=nn.ReLU()), nn.Dropout()))
    if why == "layer":
        model[1].train()
    torch.jit.script(model).save(twinkle.folder / "model.pt")
    (twinkle.folder / "twinkle.toml").write_text(MANIFEST)
    done = twinkle("kernelize", "model.pt", "--inputs", INPUT, "-o", "fast.pt", "--json", "--no-measure", "--no-verify",
                   "--mode", "training" if why == "mode" else "inference")
    assert done.code in (0, 1), done.err
    assert not [one for one in done.json["sites"] if one["of"].endswith(("relu", "batch_norm"))]


def test_without_a_manifest(twinkle):
    saved(twinkle, resnet(), "traced")
    report = kernelized(twinkle, manifest=None)
    assert {"conv2d_relu", "conv2d_batch_norm"} <= set(replaced(report))


def outputs(twinkle, inputs: torch.Tensor):
    torch.save([inputs], twinkle.folder / "inputs.pt")
    done = twinkle("run", "fast.pt", "--inputs", "inputs.pt", "-o", "outputs.pt")
    assert done.code == 0, done.err
    return torch.load(twinkle.folder / "outputs.pt", weights_only=True)


def test_chains_run_with_channels_last(twinkle):
    """Inside of a chain, whose end is made contiguous."""
    saved(twinkle, nn.Sequential(Layer(3, 8, act=nn.ReLU()), Layer(8, 8, 1), Layer(8, 8, act=nn.SiLU())), "traced")
    kernelized(twinkle)
    with zipfile.ZipFile(twinkle.folder / "fast.pt") as archive:
        code = "\n".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(".py"))
    calls = re.findall(r"twinkle_functions\S* *\n|_\d+ = _\d+\(x, weight.*?\)\n", code)
    layouts = sorted(re.findall(r", (\d), \)\n", "".join(calls)))
    assert layouts == ["1", "1", "2"], code


class Viewed(nn.Module):
    """`view` refuses what is not contiguous; so does memory that an operator unknown to us reads."""

    def __init__(self, how: str):
        super().__init__()
        self.a, self.b, self.how = Layer(3, 16, act=nn.ReLU()), Layer(16, 16, act=nn.ReLU()), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.b(self.a(x))
        if self.how == "viewed":
            return y.view(y.size(0), -1)
        if self.how == "both":
            return torch.cat([y.view(y.size(0), -1), self.a(x).mean((2, 3))], 1)
        if self.how == "flattened":
            return y.flatten(2).view(y.size(0), -1)
        if self.how == "joined":
            return torch.cat([y, self.b(y)], 1).view(y.size(0), -1)
        if self.how == "strided":
            return y.as_strided((2, 8), (8, 1))
        return torch.fft.fft(y).real


@pytest.mark.parametrize("how", ["viewed", "both", "flattened", "joined", "strided", "unknown"])
def test_what_needs_contiguous_memory_gets_it(twinkle, how):
    original = saved(twinkle, Viewed(how), "traced")
    kernelized(twinkle)
    x = torch.randn(2, 3, 20, 22)
    result, expected = outputs(twinkle, x), original(x)
    assert result.stride() == expected.stride()
    assert torch.allclose(result, expected, atol=1e-4)


class Several(nn.Module):
    """Images at several places of the output, one of them also used on the way; and one that is no image."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Layer(3, 16, act=nn.ReLU()), Layer(16, 16, act=nn.SiLU()), Layer(16, 8, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor], torch.Tensor, torch.Tensor]:
        y = self.a(x)
        z = self.b(y)
        return y, (z, self.c(z)), 2 * self.c(z), z.mean((2, 3))


class Named(Several):
    """The same in a list and a dictionary, which cannot be traced."""

    def forward(self, x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        y = self.a(x)
        z = self.b(y)
        return {"images": [z, self.c(z)], "mean": [z.mean((2, 3))]}


def tensors(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in (value.values() if isinstance(value, dict) else value) for one in tensors(part)]


@pytest.mark.parametrize("model", [resnet, lambda: nn.Sequential(nn.Conv2d(3, 8, 1), Inverted(8)), Others, Several,
                                   lambda: nn.Sequential(Layer(3, 8, act=nn.ReLU()), Layer(8, 8, 1))])
@pytest.mark.parametrize("how", ["traced", "scripted", "frozen"])
@pytest.mark.parametrize("weights", [torch.contiguous_format, torch.channels_last])
def test_layouts_stay_what_they_were(twinkle, model, how, weights):
    """Outputs are channels-last where the images or the weights were, as PyTorch has it."""
    same_layouts(twinkle, model, how, weights)


def test_layouts_in_lists_and_dictionaries(twinkle):
    same_layouts(twinkle, Named, "scripted", torch.contiguous_format)


def same_layouts(twinkle, model, how, weights):
    original = saved(twinkle, model().to(memory_format=weights), how)
    kernelized(twinkle)
    x = torch.randn(2, 3, 20, 22)
    for inputs in (x, x.contiguous(memory_format=torch.channels_last)):
        for result, expected in zip(tensors(outputs(twinkle, inputs)), tensors(original(inputs)), strict=True):
            assert result.stride() == expected.stride()
            assert torch.allclose(result, expected, atol=1e-4, rtol=1e-4)


def test_a_long_way_between_convolutions(twinkle):
    """What uses a result is followed for some thousand operators, not until the stack overflows."""
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Layer(3, 8), Layer(8, 8, act=nn.ReLU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            for _ in range(5_000):
                y = y * 1.0001
            return self.b(y).view(-1)

    original = saved(twinkle, Long(), "traced")
    kernelized(twinkle)
    x = torch.randn(1, 3, 8, 8)
    assert torch.allclose(outputs(twinkle, x), original(x), atol=1e-3)


class Seen(nn.Module):
    """What is written in place is seen by somebody else."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        z = y.flatten(1)
        y = F.relu(y, inplace=True)
        return y.mean((2, 3)) + z.sum(1, keepdim=True)


@pytest.mark.parametrize("how", ["traced", "scripted", "frozen"])
def test_what_others_see_is_written_in_place(twinkle, how):
    saved(twinkle, Seen(), how)
    assert replaced(kernelized(twinkle)) == {"conv2d": 1}


class Widened(nn.Module):
    """x += y keeps the dtype of x."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        y += x.float()
        return F.relu(y)


def test_an_addition_in_place_keeps_the_dtype(twinkle):
    saved(twinkle, Widened(), "traced", dtype=torch.bfloat16)
    assert replaced(kernelized(twinkle, inputs="bfloat16[2,3,20,22]")) == {"conv2d": 1}


class OtherKinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.back = nn.Conv1d(3, 4, 3), nn.ConvTranspose2d(3, 4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(x.flatten(2)).sum() + self.back(x)


def test_convolutions_of_other_kinds_are_left_alone(twinkle):
    saved(twinkle, OtherKinds(), "traced")
    assert kernelized(twinkle)["sites"] == []


def test_statistics_of_the_batch_are_left_alone(twinkle):
    model = settled(Layer(3, 8, act=nn.ReLU()))
    model.bn.track_running_stats, model.bn.running_mean, model.bn.running_var = False, None, None
    torch.jit.trace(model, torch.randn(2, 3, 20, 22), check_trace=False).save(twinkle.folder / "model.pt")
    assert replaced(kernelized(twinkle)) == {"conv2d": 1}
