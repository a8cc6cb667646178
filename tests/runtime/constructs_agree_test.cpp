// `inspect` and `resolve` judge a source without LibTorch (src/kernel) as compiling it does
// (src/runtime/source), construct by construct.

#include "kernel/layers.h"
#include "kernel/verdict.h"
#include "runtime/layer_source.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;

namespace {

const std::string head = R"(import torch
import torch.nn as nn
import torch.nn.functional as F
import dataclasses
from typing import NamedTuple
SIZES = [2, 4]
@dataclasses.dataclass
class Packed:
    weight: torch.Tensor
class Pair(NamedTuple):
    left: torch.Tensor
class Plain:
    pass
def doubled(x, by=2):
    return x * by
def endless(x):
    return endless(x)
class Layer(nn.Module):
    def forward(self, x, **kwargs):
)";

}  // namespace

TEST_CASE("inspect and compile agree about every construct") {
    const std::map<std::string, bool> bodies = {
        {"return x.view(*x.shape)", true},
        {"return x.view((*x.shape[:-1], 4))", true},
        {"return doubled(x, **kwargs)", true},
        {"with torch.no_grad():\n    return x", true},
        {"import math\nreturn x * math.pi", true},
        {"return x.view(SIZES)", true},
        {"sizes = {i: i for i in [1, 2]}\nreturn x * sizes[1]", true},
        {"assert x.dim() == 2, f'{{}} {x.dim()}'\nreturn x", true},
        {"n = 5\nn //= 2\nreturn x * n", true},
        {"return Packed(x).weight", true},
        {"return Pair(x).left", true},
        {"return F.relu(x) if 1 < x.dim() < 3 else -x", true},
        {"if x.dim() not in [1, None]:\n    raise ValueError('a') from None\nreturn x", true},
        {"a, *b = (x, x)\nreturn b[0]", true},
        {"del x\nreturn self.eps", true},
        {"for i in range(2):\n    x = x + i\nreturn x", true},
        {"while x.dim() < 2:\n    x = x.unsqueeze(0)\nreturn x", true},
        {"ys = [y + 1 for y in [x]]\nreturn ys[0]", true},
        {"with torch.autocast('cpu'):\n    return x", false},
        {"try:\n    return x\nexcept ValueError:\n    return x", false},
        {"f = lambda y: y\nreturn f(x)", false},
        {"def inner(y):\n    return y\nreturn inner(x)", false},
        {"class A:\n    pass\nreturn x", false},
        {"if (n := 1):\n    pass\nreturn x", false},
        {"return {x}", false},
        {"return doubled(x, **{'by': 2})", false},
        {"return [y for y in x if y > 0]", false},
        {"for i in range(2):\n    pass\nelse:\n    pass\nreturn x", false},
        {"while x.dim() > 9:\n    pass\nelse:\n    pass\nreturn x", false},
        {"raise", false},
        {"global SIZES\nreturn x", false},
        {"yield x", false},
        {"match x:\n    case _:\n        return x", false},
        {"return x * 1j", false},
        {"return type(x)", false},
        {"return super().forward(x)", false},
        {"return Plain()", false},
        {"return endless(x)", false},
        {"return torch.linalg.norm(x) + torch.special.expit(x)", true},
        {"return F.silu(torch.nn.functional.gelu(x))", true},
        {"return x if torch.cuda.is_available() else -x", true},
        {"return x * torch.cuda.device_count()", true},
        {"return torch.ops.aten.relu.default(x) + torch.ops.aten.relu(x)", true},
        {"return torch.fft.fft(x)", false},
        {"return x * torch.distributed.get_rank()", false},
        {"return torch.cuda.synchronize()", false},
        {"x.grad //= 2\nreturn x", false},
        {"return 1 < x.add_(1) < 2", false}};
    for (const auto& [body, compiles] : bodies) {
        std::string text = head;
        std::istringstream lines(body);
        for (std::string line; std::getline(lines, line);) {
            text += "        " + line + "\n";
        }
        const tests::Sources sources = {{"__init__.py", ""}, {"layers.py", text}};
        const auto compiled =
            tests::compile_onto(tests::host_module(), sources, {c10::TensorType::get()});
        const auto list = kernel::read_layers(sources);
        const auto* layer = list.find("Layer");
        REQUIRE(layer != nullptr);
        const auto verdict = kernel::judge(*layer, {});
        INFO(body << "\ncompile: " << (compiled.method ? "" : compiled.method.error())
                  << "\ninspect: " << kernel::verdict_text(verdict));
        CHECK(compiled.method.has_value() == compiles);
        CHECK((verdict.usable == kernel::Usability::without_python) == compiles);
    }
}
