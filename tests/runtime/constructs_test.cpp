// Every construct that layer sources use, one by one: compiled and run with the numbers compared,
// or refused with file, line and construct.

#include "runtime/layer_source.h"
#include "runtime/source/torch_version.h"

#include <torch/cuda.h>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;
using Catch::Matchers::StartsWith;
using tests::Sources;

namespace {

const std::string head = R"(
import functools
import math
import dataclasses
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Optional
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from . import from_init, helpers
from .helpers import *
from .helpers import NormError, scale as times

EPS = 1e-3
SCALE = 2.0 * math.sqrt(4.0)
SIZES = (2, 3)
NAMES = ["a", "silu"]
ALIAS = EPS
times_three = functools.partial(times, by=3)
add_to = functools.partial(torch.ops.aten.add, alpha=2)
times_alias = times_three
CIRCLE = ALSO_CIRCLE
ALSO_CIRCLE = CIRCLE
CACHE = {"a": 1}
CACHE["b"] = 2
if torch.cuda.is_available():
    EITHER = 1
else:
    EITHER = 2

class Style(IntEnum):
    PLAIN = 0
    TWICE = 2

@dataclass
class Packed:
    weight: Tensor
    by: float = 2.0
    extra: Optional[Tensor] = None

class Pair(NamedTuple):
    left: Tensor
    right: int

class Forwarding:
    """Asks another object."""
    def __init__(self, raw):
        self._raw = raw
    def __getattr__(self, name):
        return getattr(self._raw, name)
    def own(self):
        return 1

class Counting:
    def __init__(self, raw):
        self._raw = raw
    def __getattr__(self, name):
        helpers.scale(name)
        return getattr(self._raw, name)

forwarding = Forwarding(torch.ops.aten)
counting = Counting(torch.ops.aten)

class Layer(nn.Module):
    weight: torch.Tensor
    def extra_repr(self):
        return f"{tuple(self.weight.shape)}"
    def forward(self, )";

const std::string init = R"(
def from_init(x, by=2):
    return x * by
from .helpers import scale as exported
from .same_name import same_name
)";

const std::string helpers = R"(
import functools
import torch
from torch import Tensor
from . import circle
class NormError(ValueError):
    pass
def scale(x, by: float = 2):
    return x * by
def untyped(x, n, flag=False):
    return x * n if flag else x + n
def optional(x: Tensor, y: Tensor | None = None, *, k: float = 3):
    if y is not None and y.dim() == 2:
        x = x + y
    return x * k
def with_kwargs(x, **kwargs):
    a = kwargs.pop("a", 2)
    b = kwargs.get("b")
    if b is not None or kwargs or "c" in kwargs:
        return x
    return times_two(x, **kwargs) * a
def with_args(x, *args):
    return times_two(x, *args)
def sum_of(x, *args):
    if args:
        for y in args:
            x = x + y
    return x * len(args)
def none_or_more(x):
    return x + 1 if x is not None else None
def or_nothing(x, y=None):
    return x if y is None else x + y
def times_two(x):
    return x * 2
def of_module(module, x):
    return module.gate(x) * module.eps
def three(x):
    return x, x + 1, x + 2
def returns_by_flag(x, both: bool):
    if both:
        return x, x + 1
    return x
def by_mode(x, mode="silu"):
    if mode not in ("silu", "relu"):
        raise NormError(f"bad {mode!r}: {{braces}} {x.shape[0]:>4d}")
    if mode == "silu":
        return torch.nn.functional.silu(x)
    return torch.relu(x)
def endless(x):
    return endless(x)
def ping(x):
    return pong(x)
def pong(x):
    return ping(x)
@functools.lru_cache
def cached(x):
    return x + 5
@torch.compiler.disable(recursive=True)
def disabled(x):
    return x + 6
def wrap(f):
    return f
@wrap
def wrapped(x):
    return x
@torch.no_grad()
def without_grad(x):
    return x * 2
def round(x):
    return x + 100
def _hidden(x):
    return x
)";

Sources package_of(const std::string& forward) {
    return {{"__init__.py", init},
            {"helpers.py", helpers},
            {"same_name.py", "def same_name(x):\n    return x * 2\n"},
            {"circle.py", "from .circle2 import around\n"},
            {"circle2.py", "from .circle import around\n"},
            {"layers.py", head + forward}};
}

// `forward` begins with the parameters after self; the body is indented by eight.
std::string indented(const std::string& parameters, const std::string& body) {
    std::string text = parameters + "):\n";
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
        text += "        " + line + "\n";
    }
    return text;
}

const at::Tensor input = torch::arange(1, 9, torch::kFloat).reshape({2, 4});

c10::IValue run(const std::string& parameters, const std::string& body,
                const std::vector<c10::IValue>& more = {}) {
    std::vector<c10::IValue> values{input};
    values.insert(values.end(), more.begin(), more.end());
    std::vector<c10::TypePtr> types;
    for (const c10::IValue& value : values) {
        types.push_back(value.isTensor() ? c10::TypePtr(c10::TensorType::get()) : value.type());
    }
    auto compiled =
        tests::compile_onto(tests::host_module(), package_of(indented(parameters, body)), types);
    INFO(body);
    REQUIRE((compiled.method ? "" : compiled.method.error()) == "");
    // Saved and loaded, as the caller runs it.
    std::stringstream file;
    compiled.module.save(file);
    auto loaded = torch::jit::load(file);
    auto result = compiled.module.get_method("replaced")(values);
    const auto again = loaded.get_method("replaced")(values);
    if (result.isTensor()) {
        CHECK(torch::equal(result.toTensor(), again.toTensor()));
    }
    return result;
}

void same(const std::string& body, const at::Tensor& expected) {
    const at::Tensor actual = run("x", body).toTensor();
    INFO(body);
    CHECK(actual.dtype() == expected.dtype());
    CHECK(torch::allclose(actual, expected));
}

std::string refusal(const std::string& parameters, const std::string& body,
                    const std::vector<c10::TypePtr>& types = {c10::TensorType::get()}) {
    auto module = tests::host_module();
    const auto before = tests::method_names(module);
    const auto compiled =
        tests::compile_onto(module, package_of(indented(parameters, body)), types);
    INFO(body.substr(0, 200));
    REQUIRE_FALSE(compiled.method);
    CHECK(tests::method_names(module) == before);
    std::stringstream out;
    CHECK_NOTHROW(module.save(out));
    return compiled.method.error();
}

// The line of the first statement of forward.
const auto first_line = 1 + std::count(head.begin(), head.end(), '\n') + 1;

// `line` of the body; anywhere: any line, where the name comes from.
constexpr int anywhere = -1;
void refused(const std::string& body, const std::string& because, int line = 0) {
    const std::string reason = refusal("x", body);
    INFO(body << "\n" << reason);
    CHECK_THAT(reason, ContainsSubstring(".py:") || ContainsSubstring(".py: "));
    if (line != anywhere) {
        CHECK_THAT(reason, StartsWith("layers.py:" + std::to_string(first_line + line) + ": "));
    }
    CHECK_THAT(reason, ContainsSubstring(because));
}

void refused_in_helpers(const std::string& body, const std::string& because) {
    const std::string reason = refusal("x", body);
    INFO(body << "\n" << reason);
    CHECK_THAT(reason, StartsWith("helpers.py:"));
    CHECK_THAT(reason, ContainsSubstring(because));
}

}  // namespace

TEST_CASE("layer source: functions of sibling modules and of __init__") {
    const at::Tensor x = input;
    same("return from_init(x) + from_init(x, 3)", x * 5);
    same("return times(x)", x * 2);
    same("return times(x, by=4.0)", x * 4);
    same("return helpers.untyped(x, 2) + helpers.untyped(x, 2.5, flag=True)", x + 2 + x * 2.5);
    same("return untyped(x, n=2)", x + 2);
    same("from . import same_name\nreturn same_name(x)", x * 2);  // the function, not the module
    same("from . import exported\nreturn exported(x, 3)", x * 3);
    same("from .helpers import _hidden as local\nreturn local(x)", x);
    same("import math as m\nreturn x * m.pi", x * M_PI);
    same("return round(x)", x + 100);  // the package's own, not Python's
    same("return helpers.of_module(self, x)", x * 2 * 1e-6);
    refused("return helpers.nothing(x)", "the module helpers of the kernel has no nothing");
    refused("return around(x)", "undefined value around");
    refused("from .circle import around\nreturn around(x)", "lead in a circle", anywhere);
}

TEST_CASE("layer source: keyword and default arguments, *args and **kwargs") {
    const at::Tensor x = input;
    same("return optional(x)", x * 3);
    same("return optional(x, x, k=2)", (x + x) * 2);
    same("return optional(x, y=None)", x * 3);
    same("return with_kwargs(x)", x * 4);
    same("return with_args(x)", x * 2);
    CHECK(torch::equal(run("x, y=None, *args, scale: float = 2, **kwargs",
                           "return x * scale if y is None and not args else x")
                           .toTensor(),
                       x * 2));
    refused("return with_kwargs(x, a=3)", "has no parameter a; what goes into its **kwargs");
    same("return sum_of(x)", x * 0);
    same("return sum_of(x, x, 2)", (x + x + 2) * 2);
    refused("return with_args(x, x)", "takes 1 positional arguments, not 2", anywhere);
    refused("return times(x, nothing=3)", "scale has no parameter nothing");
    refused("return times(x, x=3)", "is given x twice");
    refused("return times(**{'x': x})", "a ** argument");
    CHECK_THAT(refusal("x, y", "return x"), ContainsSubstring("y of forward gets no value"));
    CHECK_THAT(refusal("x, **kwargs", "return kwargs"), ContainsSubstring("**kwargs used for"));
    CHECK_THAT(refusal("x, **kwargs", "return x * kwargs.pop('a')"),
               ContainsSubstring("**kwargs used for"));
}

TEST_CASE("layer source: types and annotations") {
    const at::Tensor x = input;
    same(
        "y: torch.Tensor | None = None\nif x.dim() == 2:\n    y = x + 1\n"
        "return x if y is None else y",
        x + 1);
    same("y = None\nif x.dim() == 2:\n    y = x + 1\nreturn x if y is None else y", x + 1);
    same(
        "y: Optional[Tensor] = x\nif x.dim() == 3:\n    y = None\n"
        "assert y is not None\nreturn y",
        x);
    same("sizes: tuple[int, int] = (2, 4)\nreturn x.view(sizes)", x);
    same("parts: list[Tensor] = []\nparts.append(x)\nreturn parts[0]", x);
    same("names: dict[str, Tensor] = {}\nnames['a'] = x\nreturn names['a']", x);
    same("factor: float = 2\nreturn x * factor", x * 2);
    same("what: 'Any' = x\nreturn what", x);
    same("if isinstance(x, torch.Tensor):\n    return x + 1\nreturn x", x + 1);
    same("s = x.shape\nif isinstance(s, (tuple, list)):\n    return x + 1\nreturn x", x + 1);
    CHECK(run("x, n: int, pair: tuple[int, float]", "a, b = pair\nreturn n + a",
              {std::int64_t{3}, c10::ivalue::Tuple::create({std::int64_t{2}, 0.5})})
              .toInt() == 5);
    refused("y: Something = None\nreturn x", "an annotation that is no type");
    refused("y = 1\nif x.dim() == 2:\n    y = 'a'\nreturn x", "previously had type int", 2);
    // None in the place of a tensor.
    refused("return torch.add(x, None)", "NoneType");
    refused("return F.linear(None, x)", "NoneType");
}

TEST_CASE("layer source: an int where a float is due") {
    const at::Tensor x = input;
    same("return F.layer_norm(x, (4,), self.weight, None, 0) + 0 * 1",
         torch::layer_norm(x, {4}, torch::ones({4}), {}, 0.0));
    same("return torch.ops.aten.layer_norm(x, [4], eps=1)", torch::layer_norm(x, {4}, {}, {}, 1.0));
    same("return torch.ops.aten.dropout(x, p=0, train=False)", x);
    same("return x.view(2 ** 1, 2 ** 2) * 2 ** 3", x * 8);
    same("return x ** 2", x.pow(2));
    same("a = 7\na //= 2\nreturn x * a", x * 3);
    refused("n = x.shape[0]\nreturn x.view(2, 2 ** n)", "to the power of an integer", 1);
}

TEST_CASE("layer source: unpacking, stars, sequences") {
    const at::Tensor x = input;
    same("b, d = x.shape\nreturn x * b + d", x * 2 + 4);
    same("a, *rest = three(x)\nreturn a + rest[1]", x + x + 2);
    same("(a, b), c = (x, x + 1), x + 2\nreturn a + b + c", x * 3 + 3);
    same("a, b = torch.split(x, self.splits, dim=-1)\nreturn torch.cat([b, a], -1)",
         torch::cat({x.slice(-1, 1, 4), x.slice(-1, 0, 1)}, -1));
    same("a, b = x.chunk(2, dim=-1)\nreturn a * b", x.slice(-1, 0, 2) * x.slice(-1, 2, 4));
    same("shape = x.shape[:-1]\nreturn x.view(*shape, -1, 2).flatten(1)", x);
    same("return x.reshape(*x.shape)", x);
    same("shape = (*x.shape[:-1], -1, 2)\nreturn x.view(shape).flatten(1)", x);
    same("shape = [*x.shape[:-1], 2, 2]\nreturn x.view(shape).flatten(1)", x);
    same("pair = (2, 4)\nreturn x.view(*pair)", x);
    same("args = (x, 3.0)\nreturn times(*args)", x * 3);
    same("return torch.zeros(*x.shape, dtype=x.dtype) + x", x);
    same("total = x\nfor i, part in enumerate([x, x]):\n    total = total + part * i\nreturn total",
         x * 2);
    same("ys = [y + 1 for y in three(x)[:2]]\nreturn ys[0] + ys[1]", x + x + 3);
    same("sizes = {i: i * 2 for i in [1, 2]}\nreturn x * sizes[2]", x * 4);
    same("return torch.stack([x, x]).sum(0)", x * 2);
    same("a = b = x + 1\nreturn a + b", (x + 1) * 2);
    same("del_me = x\ndel del_me\nreturn x", x);
    refused("parts = x.chunk(2)\nreturn torch.add(*parts)", "cannot", 1);
    refused("return x.view([i for i in x.shape if i > 1])", "a comprehension with a condition");
}

TEST_CASE("layer source: hasattr, getattr, host attributes, submodules") {
    const at::Tensor x = input;
    same("return x * getattr(self, 'nothing', 3.0) + getattr(self, 'eps', 5.0)", x * 3 + 1e-6);
    same("if hasattr(self, 'nothing'):\n    return self.nothing(x)\nreturn x", x);
    same("if x.dim() == 2 and hasattr(self, 'gate'):\n    x = self.gate(x)\nreturn x", x * 2);
    same("return x if getattr(self, 'bias', None) is None else x + 1", x);
    same("return x if getattr(self.gate, 'nothing', None) is None else x + 1", x);
    same("return x * self.gate.weight[0] * getattr(self.gate, 'eps', 1.0)", x * 1e-6);
    same("return x * self.splits[1] * self.pair[1]", x * 1.5);
    same("return x * 2 if self.name == 'silu' else x", x * 2);
    same("gate = self.gate\nreturn gate(x)", x * 2);
    same("return self.experts[1](x)", x * 3);
    same("for expert in self.experts:\n    x = expert(x)\nreturn x", x * 6);
    same("return self.helper(x)", x + 1);
    refused("return x * self.nothing", "has no attribute nothing");
    refused("self.seen = x\nreturn x", "assigns self.seen; layers keep no state");
    refused("self.gate.seen = x\nreturn x", "layers keep no state");
    refused("return x * sum([p for p in self.parameters()])", "has no attribute parameters");
    refused("return x if hasattr(x, 'scale') else x + 1", "hasattr");
}

TEST_CASE("layer source: an attribute that a trace may have lost is not taken for absent") {
    auto trace = torch::jit::Module("__torch__.tests.Traced");
    trace.register_parameter("weight", torch::ones({4}), false);
    trace.define("def forward(self, x):\n    return x\n");
    const auto attempt = [&](const std::string& body, const AttributeMap& supplied = {}) {
        auto compiled = tests::compile_onto(trace.clone(), package_of(indented("x", body)),
                                            {c10::TensorType::get()}, supplied);
        return compiled.method ? std::string("compiled") : compiled.method.error();
    };
    const std::string lost = "return x * getattr(self, 'eps', 1.0)";
    CHECK_THAT(attempt(lost), ContainsSubstring("whether the original had eps cannot be told"));
    CHECK(attempt(lost, {{"eps", 0.5}}) == "compiled");
    // Attributes declared as a tensor, and those that a trace keeps.
    CHECK(attempt("return x if getattr(self, 'weight', None) is None else x + self.weight") ==
          "compiled");
}

TEST_CASE("layer source: exceptions, messages, assertions") {
    const at::Tensor x = input;
    same(
        "if x.dim() != 2:\n    raise NormError(f'got {x.dim()} of {{2}}: {x.mean():.2f}')\n"
        "return x",
        x);
    same("if x.dim() != 2:\n    raise ValueError('a', x.dim()) from None\nreturn x", x);
    same("if x.dim() != 2:\n    raise ImportError\nreturn x", x);
    same("assert x.dim() == 2, f'{x.dim()=} is wrong'\nreturn x", x);
    same("assert x.dim() == 2, 'a' 'b'\nreturn x", x);
    same("return by_mode(x)", torch::silu(x));
    same("return by_mode(x, mode='relu')", torch::relu(x));
    same("n = 'a'\nkey = f'{n}b'\nreturn x + (1 if key == 'ab' else 2)", x + 1);
    refused("return x + len(f'{self.eps}')", "the text of a value of type float");
    refused("return x + len(f'{self.name!r}')", "a format specification of a value");
    refused("raise", "a raise without an exception");
    auto compiled = tests::compile_onto(
        tests::host_module(),
        package_of(indented("x", "raise NormError(f'{{}} of {x.dim()}')\nreturn x")),
        {c10::TensorType::get()});
    REQUIRE(compiled.method);
    try {
        compiled.module.get_method("replaced")({input});
        FAIL("nothing was raised");
    } catch (const std::exception& error) {
        CHECK_THAT(std::string(error.what()), ContainsSubstring("NormError: {} of 2"));
    }
}

TEST_CASE("layer source: conditions that are known decide what is compiled") {
    const at::Tensor x = input;
    same("if 'a' not in ['b', 'silu'] and 1 < x.dim() <= 2:\n    x = x + 1\nreturn x", x + 1);
    same("if x.dim() not in (3, 4):\n    x = x + 1\nreturn x", x + 1);
    same("return returns_by_flag(x, False) + returns_by_flag(x, both=True)[1]", x + x + 1);
    same("mode = 'relu'\nif mode == 'silu':\n    return nothing(x)\nreturn x", x);
    same("y = None\nif y is not None and y.stride(0) == 1:\n    return y\nreturn x", x);
    same("name = None or 'silu'\nreturn by_mode(x, name)", torch::silu(x));
    CHECK(torch::equal(run("x, y=None, z=None",
                           "if y is None:\n    y = x + 1\n"
                           "return y if z is None else y + z")
                           .toTensor(),
                       x + 1));
    CHECK(torch::equal(run("x, y=None",
                           "for i in range(2):\n    if y is None:\n        y = x\n"
                           "    else:\n        y = y + i\nreturn x if y is None else y")
                           .toTensor(),
                       x + 1));
    CHECK(torch::equal(run("x, n: int = None",
                           "if x.dim() == 2:\n    n = 3\n"
                           "return x * n if n is not None else x")
                           .toTensor(),
                       x * 3));
    // The site passes None: the parameter stays, and conditions on it are decided.
    CHECK(torch::equal(run("x, z", "if z is not None and z.stride(0) == 1:\n    return z\nreturn x",
                           {c10::IValue()})
                           .toTensor(),
                       x));
    CHECK(torch::equal(run("x, z", "if x.dim() == 2:\n    z = x + 1\nreturn x if z is None else z",
                           {c10::IValue()})
                           .toTensor(),
                       x + 1));
    refused("n = x.shape[0] or 4\nreturn x * n", "`and` or `or` of a value of type int");
}

TEST_CASE("layer source: a comprehension that is unpacked gives each value its own type") {
    const at::Tensor x = input;
    same("y = None\na, b = [none_or_more(z) for z in (x, y)]\nreturn a if b is None else b", x + 1);
    same("a, b = (or_nothing(x, z) for z in [None, x])\nreturn a + b", x * 3);
    same("[a, b] = [times(z) for z in (x, x)]\nreturn a + b", x * 4);
    same("n = 3\na, b = [z * n for z in (x, 2)]\nreturn a * b", x * 18);
    // Its variable is not the outer one of the same name.
    same("z = None\na, b = [y + 1 for y in (x, x)]\nreturn a if z is None else x", x + 1);
    same("x, y = [x + 1 for x in (x, x)]\nreturn x + y", x * 2 + 2);
    same("z = None\nparts = [z + 1 for z in [x, x]]\nreturn parts[0] + parts[1]", x * 2 + 2);
    same("z = 'a'\nparts = {z: x for z in ['b', 'c']}\nreturn parts['b']", x);
    CHECK(torch::equal(run("x, y: Optional[Tensor]",
                           "a, b = [none_or_more(z) for z in (x, y)]\n"
                           "return a if b is None else a + b",
                           {c10::IValue()})
                           .toTensor(),
                       x + 1));
}

TEST_CASE("layer source: texts, tuples and lists are true where they have elements") {
    const at::Tensor x = input;
    same("return x + 1 if self.name else x", x + 1);
    same("return x if not self.name else x * 2", x * 2);
    same("pair = (x, x)\nif pair:\n    return x + 1\nreturn x", x + 1);
    same("empty = ()\nassert not empty\nreturn x", x);
    same("sizes = x.shape[2:]\nwhile sizes:\n    return x\nreturn x + 1", x + 1);
    same("parts: list[Tensor] = []\nif parts or self.splits:\n    return x + 1\nreturn x", x + 1);
    same("names: dict[str, Tensor] = {}\nreturn x if names else x + 1", x + 1);
    same("if self.pair and x.dim():\n    return x + 1\nreturn x", x + 1);
}

TEST_CASE("layer source: a torch.Size is no list") {
    const at::Tensor x = input;
    same("return x + 1 if x.shape == [2, 4] else x", x);
    same("return x + 1 if x.shape != [2, 4] else x", x + 1);
    same("return x + 1 if x.shape == (2, 4) else x", x + 1);
    same("s = x.size()\nreturn x + 1 if s == x.shape and s[1:] == (4,) else x", x + 1);
    same("return x + 1 if list(x.shape) == [2, 4] else x", x + 1);
    same("return x + 1 if self.splits == [1, 3] else x", x + 1);
    same("n = 4\nreturn x + 1 if n == x.shape[1] else x", x + 1);
    same("return x + 1 if x.dtype == self.weight.dtype else x", x + 1);
    CHECK_THAT(refusal("x, sizes: list[int]", "return x if x.shape == sizes else x + 1",
                       {c10::TensorType::get(), c10::ListType::ofInts()}),
               ContainsSubstring("one may be a torch.Size"));
}

TEST_CASE("layer source: texts that are used are those of Python") {
    const auto text = [](const std::string& body) {
        return run("x", "return " + body).toStringRef();
    };
    CHECK(text("str(1.0)") == "1.0");
    CHECK(text("f'{1e-05} {1e16} {0.1} {-0.0} {123456789.125} {True} {7}'") ==
          "1e-05 1e+16 0.1 -0.0 123456789.125 True 7");
    CHECK(text("'{}-{}'.format(2.5, 'a')") == "2.5-a");
    CHECK(text("f'{3:04d}|{3.14159:8.2f}|{\"ab\":>4}|{\"ab\":*^6}|{255:x}|{1234567:,}'") ==
          "0003|    3.14|  ab|**ab**|ff|1,234,567");
    CHECK(text("f'{0.5:%}|{-3:+d}|{12.5:e}|{1.5!s:>5}'") == "50.000000%|-3|1.250000e+01|  1.5");
    CHECK(text("f'{1e400} {-1e400:.1f} {1e400:+07e} {None!s:>5}'") == "inf -inf +000inf  None");
    refused("return x if str(self.eps) == '1' else x", "the text of a value of type float");
    refused("return x if f'{self.eps:.2f}' == '1' else x", "not known while compiling");
    refused("return x if '%d' % x.dim() == '2' else x", "a % format outside of a message");
    refused("return x if '{:d}'.format(2) == '2' else x", "more than {} for each value");
    refused("return x if f'{1:{2}}' == '1' else x", "a format specification that is computed");
    same("if x.dim() == 9:\n    raise ValueError('%d' % x.dim())\nreturn x", input);
}

TEST_CASE("layer source: functions under other names, partial, and objects that pass on") {
    const at::Tensor x = input;
    same("g = times\nreturn g(x, 5)", x * 5);
    same("norm = torch.ops.aten.add\nreturn norm(x, x)", x * 2);
    same("return times_three(x) + times_alias(x, by=2)", x * 5);
    same("return add_to(x, x) + add_to(x, x, alpha=1)", x * 5);
    same("g = functools.partial(times, x)\nreturn g() + g(by=3)", x * 5);
    same("from functools import partial as p\ng = p(p(or_nothing, x), y=x)\nreturn g()", x * 2);
    same("return forwarding.add(x, x)", x * 2);
    refused("return forwarding.own() * x", "own of the object of the Python class Forwarding");
    refused("return counting.add(x, x)", "does more than ask another object", anywhere);
    refused("g = functools.partial(x, 1)\nreturn g()", "partial");
    std::string nested = "or_nothing, x";
    for (int depth = 0; depth < 60; ++depth) {
        nested = "p(" + nested + (depth == 59 ? ", y=x)" : ")");
    }
    same("from functools import partial as p\ng = " + nested + "\nreturn g()", x * 2);
}

TEST_CASE("layer source: what torch is and which devices there are") {
    const at::Tensor x = input;
    // This build is for no backend in particular, so it is LibTorch's own.
    const bool cuda = torch_cuda_version("").has_value();
    same("return x + 1 if torch.version.cuda is None else x", cuda ? x : x + 1);
    same("return x + torch.cuda.device_count()",
         x + static_cast<std::int64_t>(torch::cuda::device_count()));
    same("return x + 1 if torch.cuda.is_available() else x",
         torch::cuda::is_available() ? x + 1 : x);
    CHECK(torch_cuda_version("torch213-cxx11-cu130-x86_64-linux") == "13.0");
    CHECK(torch_cuda_version("torch26-cxx98-cu118-x86_64-linux") == "11.8");
    CHECK_FALSE(torch_cuda_version("torch213-cxx11-cpu-x86_64-linux"));
    CHECK_FALSE(torch_cuda_version("torch213-cxx11-rocm64-x86_64-linux"));
}

TEST_CASE("layer source: classes and module constants") {
    const at::Tensor x = input;
    same("return x * EPS * ALIAS", x * 1e-6);
    same("return x * SCALE", x * 4);
    same("a, b = SIZES\nreturn x * a + SIZES[1]", x * 2 + 3);
    same("return x + 1 if self.name in NAMES else x", x + 1);
    same("p = Packed(weight=x)\nreturn p.weight * p.by if p.extra is None else x", x * 2);
    same("p = Packed(x, extra=x)\nreturn p.weight if p.extra is None else x + 1", x + 1);
    same("p = Pair(x, 3)\nreturn p.left * p.right + p[1]", x * 3 + 3);
    same("return x * Style.TWICE + int(Style.PLAIN)", x * 2);
    refused("return x * CIRCLE", "leads back to itself", anywhere);
    refused("return x * CACHE['a']", "is a module variable that changes", anywhere);
    refused("return x * EITHER", "depends on what is run", anywhere);
    refused("p = Packed(by=2.0)\nreturn x", "weight of Packed gets no value");
    refused("l = Layer()\nreturn x", "makes an object of the Python class Layer");
}

TEST_CASE("layer source: torch.nn.functional computes what Python's does") {
    const at::Tensor x = input;
    same("return F.silu(x) + F.gelu(x, approximate='tanh') + F.relu(x, inplace=False)",
         torch::silu(x) + torch::gelu(x, "tanh") + x);
    same("return nn.functional.softmax(x, dim=-1, dtype=torch.float64)",
         torch::softmax(x, -1, torch::kDouble));
    same("return F.linear(x, x)", torch::linear(x, x));
    same("return F.dropout(x, p=0.5, training=False)", x);
    same("return F.embedding(torch.tensor([1, 0]), x)", torch::embedding(x, torch::tensor({1, 0})));
    same("return F.batch_norm(x, torch.zeros(4), torch.ones(4), self.weight * 2, eps=1)",
         x * 2 / std::sqrt(2.0));
    same("return F.normalize(x, dim=-1)", x / x.norm(2, -1, true));
    same("return F.pad(x, (0, 1), value=3.0)[..., :4]", x);
    same("return F.rms_norm(x, (4,), self.weight, 1e-6)",
         x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-6));
    refused("return F.interpolate(x, scale_factor=2)", "interpolate has no meaning");
    refused("return torch.cuda.synchronize()", "torch.cuda.synchronize has no meaning");
}

TEST_CASE("layer source: decorators and contexts") {
    const at::Tensor x = input;
    same("return cached(x) + disabled(x)", x + x + 11);
    same("with torch.autograd.profiler.record_function('a'):\n    y = x + 1\nreturn y", x + 1);
    refused_in_helpers("return wrapped(x)", "a decorator of wrapped that may change");
    refused("with torch.autocast('cpu'):\n    return x", "With has no counterpart");
    refused("with open('a') as f:\n    return x", "With has no counterpart");
    const auto requires_grad = [&](const std::string& body) {
        auto compiled = tests::compile_onto(tests::host_module(), package_of(indented("x", body)),
                                            {c10::TensorType::get()});
        INFO(body);
        REQUIRE((compiled.method ? "" : compiled.method.error()) == "");
        auto leaf = input.clone().set_requires_grad(true);
        const bool result =
            compiled.module.get_method("replaced")({leaf}).toTensor().requires_grad();
        CHECK(at::GradMode::is_enabled());
        return result;
    };
    CHECK(requires_grad("return x * 2"));
    CHECK_FALSE(requires_grad("with torch.no_grad():\n    y = x * 2\nreturn y"));
    CHECK_FALSE(requires_grad("with torch.no_grad():\n    return x * 2"));
    CHECK(
        requires_grad("with torch.no_grad():\n    with torch.enable_grad():\n        y = x * 2\n"
                      "return y"));
    CHECK_FALSE(requires_grad("return without_grad(x)"));
}

TEST_CASE("layer source: what has no counterpart is refused by name") {
    refused("try:\n    return x\nexcept ValueError:\n    return -x", "Try has no counterpart");
    refused("f = lambda y: y\nreturn f(x)", "Lambda has no counterpart");
    refused("def inner(y):\n    return y\nreturn inner(x)", "FunctionDef has no counterpart");
    refused("if (n := x.dim()) > 2:\n    return x\nreturn x", "NamedExpr has no counterpart");
    refused("return x if x.dim() in {1, 2} else x", "Set has no counterpart");
    refused("return x * len(type(x))", "the built-in type has no counterpart");
    refused("return super().forward(x)", "the built-in super has no counterpart");
    refused("return x * x.data_ptr()", "data_ptr");
    refused("match x:\n    case _:\n        return x", "Match has no counterpart");
    refused("yield x", "Yield has no counterpart");
    refused("global EPS\nreturn x", "Global has no counterpart");
    refused("for i in range(3):\n    pass\nelse:\n    return x\nreturn x", "for … else");
    refused("return x * 10000000000000000000000", "a constant that TorchScript does not have");
    refused("return times", "cannot be used as a value");
    refused("return torch.ops.nowhere.nothing(x)", "the operator nowhere::nothing is not there");
}

TEST_CASE("layer source: recursion, nesting and size end with a clear refusal") {
    refused_in_helpers("return endless(x)", "called recursively");
    refused_in_helpers("return ping(x)", "called recursively");
    const auto nested = [](std::size_t depth) {
        return "return x * (" + std::string(depth, '(') + "1" + std::string(depth, ')') + ")";
    };
    CHECK_THAT(refusal("x", nested(5000)), ContainsSubstring("layers.py:"));
    std::string minus = "return " + std::string(900, '-') + "x";
    CHECK_THAT(refusal("x", minus), ContainsSubstring("nested"));
    std::string sum = "return x";
    for (int i = 0; i < 900; ++i) {
        sum += " + x";
    }
    CHECK_THAT(refusal("x", sum), ContainsSubstring("nested too deeply"));
    std::string flags = "return x if x.dim() == 1";
    for (int i = 0; i < 5000; ++i) {
        flags += " or x.dim() == 1";
    }
    CHECK_THAT(refusal("x", flags + " else x"), ContainsSubstring("more than 100 operands"));
    std::string long_body;
    for (int i = 0; i < 20000; ++i) {
        long_body += "x = x + 1\n";
    }
    CHECK_THAT(refusal("x", long_body + "return x"), ContainsSubstring("too large"));
    // Types that double with every call.
    std::string growing;
    for (int i = 0; i < 20; ++i) {
        growing += "def f" + std::to_string(i) + "(x):\n    return f" + std::to_string(i + 1) +
                   "((x, x))\n";
    }
    auto sources = package_of(indented("x", "from .growing import f0\nreturn f0(x)"));
    sources["growing.py"] = growing + "def f20(x):\n    return 1\n";
    const auto compiled =
        tests::compile_onto(tests::host_module(), sources, {c10::TensorType::get()});
    REQUIRE_FALSE(compiled.method);
    CHECK_THAT(compiled.method.error(), ContainsSubstring("too many parts"));
}

TEST_CASE("layer source: a failure in a function leaves no trace for the next attempt") {
    auto module = tests::host_module();
    const auto package = std::make_shared<KernelPackage>(package_of(
        indented("x", "return helpers.wrapped(x)") +
        "class Second(nn.Module):\n    def forward(self, x):\n        return wrapped(x)\n"
        "class Third(nn.Module):\n    def forward(self, x):\n        return times(x)\n"
        "class Fourth(Third):\n    pass\n"));
    const auto compilation =
        std::make_shared<Compilation>(package, module.type()->compilation_unit());
    const auto attempt = [&](const std::string& layer, const std::string& method) {
        auto made =
            compile_layer(*compilation, layer, module.type(), method,
                          tests::signature_of(*package, layer, {c10::TensorType::get()}), {});
        return made ? std::string("compiled") : made.error();
    };
    const std::string first = attempt("Layer", "a");
    CHECK(attempt("Layer", "a") == first);
    CHECK(attempt("Second", "b") == first);
    CHECK(attempt("Third", "c") == "compiled");
    CHECK(attempt("Fourth", "d") == "compiled");
}

TEST_CASE("layer source: get_kernel_dep is the package that the mapping has") {
    const Sources sources = {
        {"__init__.py", ""},
        {"layers.py",
         "import torch.nn as nn\nfrom kernels import get_kernel_dep\n"
         "other = get_kernel_dep(\"org/other\")\nfetched = 1\n"
         "class Layer(nn.Module):\n    def forward(self, x):\n        return other.twice(x)\n"}};
    const auto package = std::make_shared<KernelPackage>(sources);
    const auto attempt = [&](Compilation::Dependencies dependencies) {
        auto module = tests::host_module();
        const auto compilation =
            std::make_shared<Compilation>(package, module.type()->compilation_unit());
        compilation->set_dependencies(std::move(dependencies));
        auto made =
            compile_layer(*compilation, "Layer", module.type(), "replaced",
                          tests::signature_of(*package, "Layer", {c10::TensorType::get()}), {});
        return std::pair(module, made ? std::string("compiled") : made.error());
    };
    CHECK(attempt(nullptr).second ==
          "layers.py:3: get_kernel_dep(\"org/other\"): the mapping has "
          "no such kernel for this device");
    auto [module, result] = attempt([](const std::string& repo) {
        CHECK(repo == "org/other");
        return std::make_shared<KernelPackage>(
            Sources{{"__init__.py", "from .math import twice\n"},
                    {"math.py", "def twice(x, by=2):\n    return x * by\n"}});
    });
    REQUIRE(result == "compiled");
    CHECK(torch::equal(module.get_method("replaced")({input}).toTensor(), input * 2));
}
