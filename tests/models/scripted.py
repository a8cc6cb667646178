"""Scripted models with what people put into modules: hooks, interfaces, containers, other methods, attributes of
every type. All take a float tensor [*, *, 64] (inputs/hidden.pt); their norms are RMSNorm or end in Norm.

What torch.jit.script cannot compile (a lambda, **kwargs) is not here: it never gets into a saved model.
"""

import pathlib
from typing import Dict, Final, List, NamedTuple, Optional, Tuple

import torch
from inputs import HIDDEN
from tiny_llama.model import RMSNorm, SwiGLUMLP
from torch import nn


def normalized(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


class Block(nn.Module):
    def __init__(self, eps: float = 1e-3):
        super().__init__()
        self.norm = RMSNorm(64, eps)
        self.mlp = SwiGLUMLP(64, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))


# Several types of one class ------------------------------------------------------------------------------------------


class ConstantNorm(nn.Module):
    """Epsilon is a constant, so that every value of it is a type of its own."""

    variance_epsilon: Final[float]

    def __init__(self, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.variance_epsilon = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return normalized(x, self.weight, self.variance_epsilon)


class SeveralTypes(nn.Module):
    """Types that differ by a constant, or by the class of a submodule; two instances share one of them."""

    def __init__(self):
        super().__init__()
        self.small = ConstantNorm(1e-6)
        self.large = ConstantNorm(1e-1)
        self.large_too = ConstantNorm(1e-1)
        self.silu = SwiGLUMLP(64, 96)
        self.gelu = SwiGLUMLP(64, 96)
        self.gelu.act_fn = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.large(self.small(x)) + self.large_too(x)
        return self.gelu(self.silu(x) + x)


class OtherRMSNorm(nn.Module):
    """Saved as RMSNorm, but of another module, and zero-centred."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64))
        self.variance_epsilon = 1e-3

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return normalized(hidden_states, 1.0 + self.weight, self.variance_epsilon)


OtherRMSNorm.__name__ = OtherRMSNorm.__qualname__ = "RMSNorm"


class OneNameTwoClasses(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = RMSNorm(64, 1e-3)
        self.other = OtherRMSNorm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(x))


# Methods -------------------------------------------------------------------------------------------------------------


class MethodsNorm(nn.Module):
    """Methods besides forward; one of them has the name that a trace gives to a second call."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.variance_epsilon = 1e-3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return normalized(x, self.weight, self.variance_epsilon)

    @torch.jit.export
    def forward1(self, x: torch.Tensor) -> torch.Tensor:
        return normalized(x, self.weight, self.variance_epsilon) * 3.0

    @torch.jit.export
    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(self.forward(x))


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = MethodsNorm()
        self.scale = 0.5

    @property
    def doubled(self) -> float:
        return self.scale * 2.0

    @doubled.setter
    def doubled(self, value: float):
        self.scale = value / 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + self.norm.forward1(x) + self.norm.twice(x) * self.doubled

    @torch.jit.export
    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class Counting(nn.Module):
    """A forward that changes its module as well: what no kernel does."""

    def __init__(self):
        super().__init__()
        self.norm = CountingNorm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class CountingNorm(nn.Module):
    calls: int

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.variance_epsilon = 1e-3
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return normalized(x, self.weight, self.variance_epsilon)


class Overloaded(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RMSNorm(64, 1e-3)

    @torch.jit._overload_method
    def apply_norm(self, x: torch.Tensor) -> torch.Tensor:
        pass

    @torch.jit._overload_method
    def apply_norm(self, x: List[torch.Tensor]) -> torch.Tensor:  # noqa: F811
        pass

    def apply_norm(self, x):  # noqa: F811
        return self.norm(x) if isinstance(x, torch.Tensor) else self.norm(x[0]) + self.norm(x[1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.apply_norm(x) + self.apply_norm([x, x * x])


# Interfaces ----------------------------------------------------------------------------------------------------------


@torch.jit.interface
class NormInterface(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        pass


def applied(norm: NormInterface, x: torch.Tensor) -> torch.Tensor:
    return norm.forward(x)


class Interfaces(nn.Module):
    """An attribute that is an interface, a list indexed by a number of run time, a function that takes a module."""

    chosen: NormInterface

    def __init__(self):
        super().__init__()
        self.chosen = RMSNorm(64, 1e-6)
        self.norms = nn.ModuleList([RMSNorm(64, 1e-3), RMSNorm(64, 1e-2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(2):
            norm: NormInterface = self.norms[i]
            x = x + norm.forward(x)
        return applied(self.chosen, x)


class Choice(nn.Module):
    """One instance or the other, as one value: they must have one class."""

    def __init__(self):
        super().__init__()
        self.a = RMSNorm(64, 1e-3)
        self.b = RMSNorm(64, 1e-2)
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.a if x.shape[0] > 1 else self.b
        return self.block(norm.forward(x))


# Containers ----------------------------------------------------------------------------------------------------------


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block(1e-2), Block()])
        self.named = nn.ModuleDict({"first": RMSNorm(64, 1e-3), "second": SwiGLUMLP(64, 96)})
        self.chain = nn.Sequential(RMSNorm(64, 1e-3), nn.Sequential(SwiGLUMLP(64, 96), RMSNorm(64, 1e-2)), nn.Identity())
        self.nested = nn.ModuleList([nn.ModuleList([RMSNorm(64, 1e-3)]), nn.ModuleList([RMSNorm(64, 1e-2)])])
        self.mixed = nn.ModuleList([RMSNorm(64, 1e-3), ConstantNorm(1e-3), nn.Linear(64, 64)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) * (1.0 + i)
        x = self.layers[-1](self.layers[0].norm(x))
        for name, module in self.named.items():
            x = x + module(x)
        x = self.chain(x + self.named["first"](x))
        for inner in self.nested:
            for norm in inner:
                x = x + norm(x)
        for module in self.mixed:
            x = module(x)
        return x


# Hooks ---------------------------------------------------------------------------------------------------------------


def add_one(self, inputs: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
    return (inputs[0] + 1.0,)


def double(self, inputs: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output * 2.0


def add_norm(self, inputs: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    """A hook of a block that calls a layer itself."""
    return output + self.norm(inputs[0])


class Hooks(nn.Module):
    """On sites and on what holds them. The norms of `first` and `second` share a class, hooks included."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block(1e-2)
        for block in (self.first, self.second):
            block.norm.register_forward_pre_hook(add_one)
            block.norm.register_forward_hook(double)
            block.register_forward_hook(add_norm)
        self.last = RMSNorm(64, 1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.second(self.first(x)))


class InnerHooks(nn.Module):
    """The projections of an MLP have hooks, which a layer that calls them would skip."""

    def __init__(self):
        super().__init__()
        self.block = Block()
        self.block.mlp.up_proj.register_forward_hook(double)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


# Attributes ----------------------------------------------------------------------------------------------------------


class Range(NamedTuple):
    low: float
    high: float


@torch.jit.script
class Scale:
    def __init__(self, factor: float):
        self.factor = factor

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class AttributesNorm(nn.Module):
    names: Dict[str, int]
    maybe: Optional[torch.Tensor]
    pair: Tuple[int, str]
    limits: Range
    order: Final[int]

    def __init__(self, order: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.register_buffer("table", torch.arange(64, dtype=torch.float32))
        self.register_buffer("temporary", torch.ones(64), persistent=False)
        self.variance_epsilon = 1e-3
        self.numbers = [1, 2, 3]
        self.names = {"a": 1}
        self.maybe = None
        self.pair = (1, "x")
        self.limits = Range(-2.0, 2.0)
        self.scale = Scale(1.0)
        self.flag = True
        self.text = "text"
        self.dtype = torch.float32
        self.device = torch.device("cpu")
        self.order = order

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = normalized(x, self.weight, self.variance_epsilon)
        if self.maybe is not None or not self.flag or self.order > 99 or self.text != "text":
            y = y * self.limits.high * self.numbers[0]
        return self.scale.apply(y.to(self.device, self.dtype))


class Attributes(nn.Module):
    norm: Optional[nn.Module]

    def __init__(self):
        super().__init__()
        self.one, self.same, self.other = AttributesNorm(1), AttributesNorm(1), AttributesNorm(2)
        self.present: Optional[nn.Module] = RMSNorm(64, 1e-3)
        self.absent: Optional[nn.Module] = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.other(self.same(self.one(x)) + x)
        if self.present is not None:
            x = self.present(x)
        if self.absent is not None:
            x = self.absent(x)
        return x


# Scripted in traced, and the reverse ---------------------------------------------------------------------------------


class Mixed(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner
        self.norm = RMSNorm(64, 1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(self.norm(x))


class Forks(nn.Module):
    """Layers that run in other threads of TorchScript."""

    def __init__(self):
        super().__init__()
        self.a, self.b = RMSNorm(64, 1e-3), RMSNorm(64, 1e-2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.jit.fork(self.a, x)
        second = torch.jit.fork(self.b, x + 1.0)
        return torch.jit.wait(first) + torch.jit.wait(second)


def strengthened(model: nn.Module) -> nn.Module:
    """Weights of a size at which every layer matters; those of the norms away from one."""
    generator = torch.Generator().manual_seed(31)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = noise * 0.3 if parameter.dim() > 1 else 1.0 + 0.4 * noise
    return model.eval()


MODELS = {
    "several_types": SeveralTypes, "one_name_two_classes": OneNameTwoClasses, "methods": Methods, "counting": Counting,
    "overloaded": Overloaded, "interfaces": Interfaces, "choice": Choice, "containers": Containers, "hooks": Hooks,
    "inner_hooks": InnerHooks, "attributes": Attributes, "forks": Forks,
}


def make(folder: pathlib.Path, save) -> None:
    for name, build in MODELS.items():
        model = strengthened(build())
        save(torch.jit.script(model), folder / f"scripted_{name}.pt", model, HIDDEN, HIDDEN[:1, :5])
    inner = strengthened(Block())
    outer = strengthened(Mixed(torch.jit.script(inner)))
    traced = torch.jit.trace(outer, (HIDDEN,), check_trace=False)
    save(traced, folder / "scripted_in_traced.pt", outer, HIDDEN, HIDDEN[:1, :5])
    outer = strengthened(Mixed(torch.jit.trace(inner, (HIDDEN,), check_trace=False)))
    save(torch.jit.script(outer), folder / "traced_in_scripted.pt", outer, HIDDEN, HIDDEN[:1, :5])
