"""Functions whose calls a trace inlines, what may stand for them, right and wrong, and models that call them."""

import importlib.util

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

OPS = """import torch


def mix(x, y):
    return x - 0.5 * y


def scaled(x, scale=2.0, shift=0.5):
    return x * scale + shift


def normalize(x, weight, eps=1e-6):
    h = x.float()
    return weight * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps))


def min_max(x):
    return x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)


def normalize_range(x):
    low, high = min_max(x)
    return (x - low) / (high - low + 1e-3)


def swap(x, y):
    return torch.sin(y), torch.cos(x)


def bumped(x):
    return x.clone().add_(1.0)


def dropped(x):
    return torch.dropout(x, 0.5, True) * 2


def applied(x, module):
    return module(x) * 2


def act(x):
    return x * torch.sigmoid(1.702 * x)


def pick(x, dim=-1):
    return torch.softmax(x * 0.5, dim)


def longer(x, more=False):
    x = x * 2.0
    if more:
        x = x.tanh()
    return x + 1.0


def halves(x):
    return list(x.chunk(2, -1))


def waves(x, y):
    return [torch.sin(x), torch.cos(y), x * y]


def grouped(x, weight):
    return torch.sigmoid(torch._grouped_mm(x, weight))


@torch.jit.script
def by_one(x):
    return x * torch.ones([1], dtype=torch.float32, device=x.device)


def helped(x):
    return torch.sin(by_one(x * 2.0))
"""

FAST = """import torch


def mix(x, y):
    return torch.add(x, y, alpha=-0.5)


def exchanged(y, x):
    return torch.add(y, x, alpha=-0.5)


def wrong_mix(x, y):
    return torch.add(x, y, alpha=-0.4)


def scaled(x, scale=2.0, shift=0.5):
    return torch.add(torch.mul(x, scale), shift)


def normalize(weight, x, eps=1e-5):
    return x * weight / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def min_max(x):
    return -(-x).amax(-1, keepdim=True), -(-x).amin(-1, keepdim=True)


def half_wrong(x):
    return -(-x).amax(-1, keepdim=True), x.amax(-1, keepdim=True) + 0.01


def normalize_range(x):
    low = x.amin(-1, keepdim=True)
    return (x - low) / (x.amax(-1, keepdim=True) - low + 1e-3)


def swap(a, b):
    return torch.cos(b), torch.sin(a)


def bumped(x):
    return x + 1.0


def dropped(x):
    return x * 2


def mix_into(out, x, y):
    torch.add(x, y, alpha=-0.5, out=out)


def act(x):
    return torch.sigmoid(1.702 * x) * x


def pick(x, dim: int = -1):
    return torch.softmax(0.5 * x, dim)


def longer(x, more: bool = False):
    return (x + x).tanh() + 1.0 if more else x + x + 1.0


def shorter(x, more: bool = False):
    return x + x + 1.0


def longer_still(x, more: bool = False):
    return x + x + 1.5


def halves(x):
    return [x[..., :8], x[..., 8:]]


def halves_as_a_tuple(x):
    return x[..., :8], x[..., 8:]


def halves_exchanged(x):
    return [x[..., 8:], x[..., :8]]


def wrong_halves(x):
    return [x[..., :8], x[..., 8:] * 1.01]


def waves(y, x):
    return [torch.cos(y), torch.sin(x), y * x]


def two_waves(x, y):
    return [torch.sin(x), torch.cos(y)]


def waves_as_a_tuple(x, y):
    return x * y, torch.sin(x), torch.cos(y)


def by_batch(x, weight):
    return torch.sigmoid(torch.bmm(x, weight))


def helped(x):
    return torch.sin(x * 2.0)
"""


@pytest.fixture
def shop(twinkle):
    """Two modules with functions of one name, as files: a trace knows nothing else of a function."""
    twinkle.env["OMP_NUM_THREADS"] = "1"
    modules = []
    for package, text in (("shop", OPS), ("other", OPS.replace("x - 0.5 * y", "x * y"))):
        path = twinkle.folder / package / "ops.py"
        path.parent.mkdir()
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(package + "_ops", path)
        modules.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(modules[-1])
    twinkle.ops, twinkle.other = modules
    (twinkle.folder / "fast.py").write_text(FAST)
    return twinkle


def functions(**names):
    return "presets = []\n" + "".join(
        f'[functions.{name}]\ntarget_module = "shop.ops"\nfunc_impl = "fast.py:{impl}"\n' for name, impl in names.items())


def traced(shop, body, frozen=False):
    """A model of `body`, which gets the functions, a linear layer's result and the input."""
    class Traced(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.linear = nn.Linear(16, 16)
            self.weight = nn.Parameter(torch.rand(16) + 0.5)

        def forward(self, x):
            return body(shop.ops, self.linear(x), x, self)

    shop.model = Traced().eval()
    made = torch.jit.trace(shop.model, torch.randn(2, 5, 16), check_trace=False)
    (torch.jit.freeze(made) if frozen else made).save(shop.folder / "model.pt")


def kernelized(shop, manifest, *more, model="model.pt", to="fast.pt"):
    (shop.folder / "twinkle.toml").write_text(manifest)
    done = shop("kernelize", model, "-o", to, "--inputs", "float32[2,5,16]", "--verify", "--json", *more)
    assert done.code == 0, done.err
    return done.json


def named(report, status="replaced"):
    return [site["site"].split(":")[1].removeprefix("shop.ops.") for site in report["sites"] if site["status"] == status]


def assert_same(shop):
    """In a fresh process, at another shape."""
    x = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(8))
    torch.save((x,), shop.folder / "in.pt")
    done = shop("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    with torch.no_grad():
        expected = shop.model(x)
    result = torch.load(shop.folder / "out.pt", weights_only=True)
    assert (result - expected).norm() < 1e-5 * expected.norm()
