#include "fuzz/mutated_layers.h"

#include "fuzz/source_mutator.h"
#include "runtime/layer_source.h"

#include <array>
#include <chrono>

namespace twinkle::fuzz {

namespace {

const std::array<std::string, 6> seeds = {
    R"(import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from typing import Optional
from . import helpers
from .helpers import *

EPS = 1e-6 * 2
SIZES = (1, 2)

class Layer(nn.Module):
    weight: torch.Tensor
    def forward(self, x: torch.Tensor, y: Optional[torch.Tensor] = None, *args, k: float = 2, **kwargs):
        """Adds."""
        n = kwargs.pop("n", None)
        if y is not None and y.dim() == 2:
            x = x + y
        assert x.dim() > 0, f"got {x.dim()} of {{}}"
        shape = x.shape[:-1] + (-1,)
        return helpers.scale(x.view(shape), by=k) * self.weight + EPS
)",
    R"(import torch
from torch import nn
from .helpers import Packed, scale, by_mode, endless
class Layer(nn.Module):
    def forward(self, x):
        p = Packed(x, by=2.0)
        a, *rest = (p.weight, x, x + 1)
        parts = [part * 2 for part in rest]
        for i, part in enumerate(parts):
            a = a + part * i
        if hasattr(self, "gate") and a.shape[0] not in (5, 6):
            a = self.gate(a)
        elif getattr(self, "bias", None) is None:
            a = -a
        else:
            raise ValueError(f"bad {a.shape!r:>10}") from None
        return by_mode(a, mode="relu") ** 2
)",
    R"(import torch
class Layer(torch.nn.Module):
    def forward(self, x):
        q, k = torch.split(torch.cat([x, x], dim=-1), self.splits + [6], dim=-1)[:2]
        with torch.no_grad():
            q = torch.nn.functional.embedding(torch.tensor([0, 1]), x)
        while q.dim() < 3:
            q = q.unsqueeze(0)
            if q.dim() == 7:
                break
        out = torch.empty_like(x)
        torch.ops.aten.add(out, x, alpha=1)
        sizes = {"a": 1, "b": 2}
        return q[..., :2].reshape(*x.shape[:0], -1), sizes["a"] if x is None else 3
)",
    R"(from .helpers import of_module, cached
import torch.nn as nn
class Base(nn.Module):
    def forward(self, x):
        for expert in self.experts:
            x = expert(x)
        y = None
        if x.dim() == 2:
            y = x
        n = 7
        n //= 2
        return of_module(self, cached(x)) if y is None else x * n
class Layer(Base):
    has_backward = False
)",
    R"(import torch
import torch.nn as nn
from torch.nn import functional as F
from .nothing import other
from kernels import get_kernel_dep
dep = get_kernel_dep("a/b")
A = B
B = A
try:
    C = 1
except ImportError:
    C = 2
class Layer(nn.Module):
    def forward(self, x):
        z: list[torch.Tensor] = []
        z.append(F.silu(x))
        s = f"{self.name}b" + str(1)
        t = (x, x.shape, [1, 2.0, "a"][0], {1: 2}, -x, ~x.bool(), not x.any(), x if s == "b" else x)
        del s
        return z[0] @ x.t() if len(z) == 1 and 0 < x.dim() < 3 else torch.softmax(x, dim=-1)
)",
    R"(class Layer:
    def forward(self, x):
        return ((((((((x + 1) * 2) - 3) / 4) % 5) // 6) * [x][0]) + (lambda: 1)()) if x else {x}
)"};

const std::string helpers = R"(
import functools
from dataclasses import dataclass
import torch
@dataclass
class Packed:
    weight: torch.Tensor
    by: float = 1.0
def scale(x, by=2):
    return inner(x) * by
def inner(x):
    return x
def endless(x):
    return endless(x)
def by_mode(x, mode="silu"):
    if mode == "silu":
        return torch.nn.functional.silu(x)
    return torch.relu(x)
def of_module(m, x):
    return m.gate(x) * m.eps
@functools.lru_cache
def cached(x):
    return x + 1
)";

}  // namespace

MutationResult compile_mutated_layer(std::uint32_t number) {
    Random random(number);
    std::string source = seeds[number % seeds.size()];
    std::string also = helpers;
    for (std::size_t changes = 1 + below(random, 4); changes > 0 && !source.empty(); --changes) {
        change(source, random);
    }
    if (below(random, 4) == 0) {
        change(also, random);
    }
    MutationResult result;
    result.source = source;
    auto module = tests::host_module();
    const auto before = tests::method_names(module);
    const auto attributes = module.type()->numAttributes();
    const auto start = std::chrono::steady_clock::now();
    try {
        const auto compiled = tests::compile_onto(
            module, {{"__init__.py", ""}, {"helpers.py", also}, {"layers.py", source}},
            {c10::TensorType::get()});
        result.compiled = compiled.method.has_value();
        result.reason = compiled.method ? "" : compiled.method.error();
    } catch (const std::exception& error) {
        result.problem = std::string("an exception: ") + error.what();
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!result.compiled &&
        (tests::method_names(module) != before || module.type()->numAttributes() != attributes)) {
        result.problem = "the class has changed";
    }
    if (!result.compiled && result.problem.empty() && result.reason.empty()) {
        result.problem = "a refusal without a reason";
    }
    try {
        std::stringstream file;
        module.save(file);
    } catch (const std::exception& error) {
        result.problem = std::string("the model cannot be saved: ") + error.what();
    }
    return result;
}

}  // namespace twinkle::fuzz
