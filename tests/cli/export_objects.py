"""Exports models that hold objects of torch.classes, and runs them:

    export_objects.py LIBRARY FOLDER      (in a process of its own: the library stays loaded)

writes NAME.pt2, as exported and decomposed, and NAME.io.pt with what the exported program gives for each call.
"""

import pathlib
import sys
import warnings

import torch
from torch import nn
from torch._higher_order_ops.effects import _register_effectful_op
from torch._higher_order_ops.torchbind import enable_torchbind_tracing
from torch._library.effects import EffectType

warnings.simplefilter("ignore")
torch.set_num_threads(1)
library, folder = sys.argv[1], pathlib.Path(sys.argv[2])
torch.ops.load_library(library)


@torch._library.register_fake_class("objects::Scale")
class FakeScale:
    def __init__(self, factor, calls):
        self.factor, self.calls = factor, calls

    @classmethod
    def __obj_unflatten__(cls, flat):
        return cls(**dict(flat))

    def apply(self, x, more=0.0):
        return x * self.factor

    def both(self, x):
        return x * self.factor, x + self.factor

    def add(self, more):
        pass


@torch._library.register_fake_class("objects::Held")
class FakeHeld:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __obj_unflatten__(cls, flat):
        return cls(**dict(flat))

    def apply(self, x):
        return x * self.tensor


torch.library.register_fake("objects::through", lambda scale, x: torch.empty_like(x))
torch.library.register_fake("objects::noted", lambda x: torch.empty_like(x))
_register_effectful_op("objects::noted", EffectType.ORDERED)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = torch.classes.objects.Scale(torch.linspace(1, 2, 4), 2)

    def forward(self, x):
        return self.scale.apply(self.linear(x), 0.5)


class Methods(nn.Module):
    """An object of a layer, one of the model, and methods that change what the next call gives."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.other = torch.classes.objects.Scale(torch.linspace(1, 2, 4), 1)

    def forward(self, x):
        y = self.inner(x)
        self.other.add(3)
        return self.other.apply(y) + self.other.apply(y)


class Operators(nn.Module):
    """An operator that takes an object: equal calls, and one whose result is not used, change it, too."""

    def __init__(self):
        super().__init__()
        self.scale = torch.classes.objects.Scale(torch.linspace(1, 2, 4), 0)

    def forward(self, x):
        first = torch.ops.objects.through(self.scale, x)
        torch.ops.objects.through(self.scale, x)
        return first, torch.ops.objects.through(self.scale, x)


class Noted(nn.Module):
    """An operator whose effect only a token tells."""

    def forward(self, x):
        first = torch.ops.objects.noted(x)
        torch.ops.objects.noted(x)
        return first, torch.ops.objects.noted(x)


class States(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = torch.classes.objects.Held(torch.linspace(1, 2, 8)[::2])

    def forward(self, x):
        return self.held.apply(x)


class Several(nn.Module):
    """A method with two results, which PyTorch cannot decompose."""

    def __init__(self):
        super().__init__()
        self.scale = torch.classes.objects.Scale(torch.linspace(1, 2, 4), 2)

    def forward(self, x):
        first, second = self.scale.both(x)
        return first - second


class Layer(nn.Module):
    def forward(self, scale, x):
        return torch.ops.objects.through(scale, x)


class Given(nn.Module):
    """An object that is an input, used by the model and by a layer."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x, scale):
        return self.layer(scale, x) + scale.apply(x, 0.5)


def flat(value):
    return list(value) if isinstance(value, tuple) else [value]


def save(name, model, decomposed):
    torch.manual_seed(1)
    calls = [torch.randn(3, 4) for _ in range(3)]
    rows = ({0: torch.export.Dim.AUTO},) if name.startswith("methods") else None
    with enable_torchbind_tracing():
        program = torch.export.export(model, (calls[0],), dynamic_shapes=rows, strict=False)
        if decomposed:
            program = program.run_decompositions()
    torch.export.save(program, folder / f"{name}.pt2")
    assert ("with_effects" in str(program.graph)) == decomposed
    module = torch.export.load(folder / f"{name}.pt2").module()
    with torch.no_grad():
        torch.save([(x, flat(module(x))) for x in calls], folder / f"{name}.io.pt")


for name, make in {"methods": Methods, "operators": Operators, "noted": Noted, "states": States,
                   "several": Several}.items():
    torch.manual_seed(2)
    if name != "noted":  # without a token nobody knows of its effect
        save(name, make(), False)
    torch.manual_seed(2)
    if name != "several":
        save(f"{name}_decomposed", make(), True)

new_scale = lambda: torch.classes.objects.Scale(torch.linspace(1, 2, 4), 2)  # noqa: E731
calls, scale = [torch.randn(3, 4) for _ in range(3)], new_scale()
with enable_torchbind_tracing():
    program = torch.export.export(Given(), (calls[0], new_scale()), strict=False)
    torch.export.save(program, folder / "given.pt2")
    torch.export.save(program.run_decompositions(), folder / "given_decomposed.pt2")
torch.save([(x, flat(program.module()(x, scale))) for x in calls], folder / "given.io.pt")
