#include "kernel/verdict.h"

#include <algorithm>

#include "base/file.h"
#include "catch.h"
#include "kernel/constructs.h"

using namespace twinkle;
using namespace twinkle::kernel;

namespace {

const PackageSources package{{"__init__.py", R"(
from ._ops import ops
from . import layers
from .launch import fast_norm

def norm(x, eps: float = 1e-6, *, out=None):
    return ops.norm(x, eps)

def either(x, mode=None):
    if mode is not None:
        return fast_norm(x)
    return ops.norm(x, 1e-6)

def evaluated(x):
    return eval("x + 1")

def gathered(*args):
    return args[0]

def endless(x):
    return endless(x)

def rearranged(x):
    import math
    return x
)"},
                             {"launch.py", R"(
import torch
import triton
import triton.language as tl
import einops
import math

SIZES = [1, 2]

@triton.jit
def _norm(x, n: tl.constexpr):
    pass

def fast_norm(x):
    grid = (1,)
    _norm[grid](x, 4)
    return x

def rearrange(x):
    return einops.rearrange(x, "a b -> b a") * math.pi

def stream(x):
    return torch.cuda.current_stream()

def plain(x):
    assert isinstance(x, torch.Tensor), f"{x.shape[0]} rows"
    return torch.nn.functional.silu(x) * SIZES[0]
)"},
                             {"layers.py", R"(
import torch
from torch import nn
from ._ops import ops
from .launch import fast_norm, rearrange

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ops.norm(x, 1e-6)

    @staticmethod
    def backward(ctx, grad):
        grad = ops.norm_backward(grad, ctx.saved_tensors[0])
        try:
            return grad
        except RuntimeError:
            return -grad

class Half(Function):
    def backward(ctx, grad):
        return grad

class Bare(torch.autograd.Function):
    pass

class Norm(nn.Module):
    weight: torch.Tensor
    def forward(self, x):
        return ops.norm(x, self.eps) * self.weight

class Trained(nn.Module):
    def forward(self, x):
        return Function.apply(x)

class HalfTrained(nn.Module):
    def forward(self, x):
        return Half.apply(x)

class Untrained(nn.Module):
    def forward(self, x):
        return Bare.apply(x)

class Launched(nn.Module):
    def forward(self, x):
        return fast_norm(x)

class Tried(nn.Module):
    def forward(self, x):
        try:
            return ops.norm(x, 1e-6)
        except RuntimeError:
            return x

class WithMember(nn.Module):
    limit = 4
    def forward(self, x):
        return torch.ops.other.add(x, x)
)"}};

const FunctionSource& function(const FunctionList& list, std::string_view name) {
    const auto found = std::find_if(list.functions.begin(), list.functions.end(),
                                    [&](const auto& one) { return one.name == name; });
    REQUIRE(found != list.functions.end());
    return *found;
}

const LayerSource& layer(const LayerList& list, std::string_view name) {
    const auto* found = list.find(name);
    REQUIRE(found != nullptr);
    return *found;
}

// The verdict on a function of launch.py.
Verdict verdict_of(const std::string& name) {
    PackageSources sources = package;
    sources["__init__.py"] = "from .launch import " + name + "\n";
    return judge(function(read_functions(sources), name).usage, {});
}

}  // namespace

TEST_CASE("functions that need nothing but operators are usable") {
    const auto list = read_functions(package);
    const auto& norm = function(list, "norm");
    CHECK(norm.usage.operators == std::set<std::string>{"norm"});
    CHECK(norm.parameters.size() == 3);
    CHECK(judge(norm.usage, {}).usable == Usability::without_python);
    CHECK(verdict_of("plain").reasons.empty());  // a list as a constant of the module
    CHECK(judge(function(list, "rearranged").usage, {}).reasons.empty());
    // *args is empty if the site passes nothing for it.
    const auto gathered = judge(function(list, "gathered").usage, {});
    CHECK(gathered.usable == Usability::without_python);
    REQUIRE(gathered.reasons.size() == 1);
    CHECK(gathered.reasons[0].kind == ReasonKind::arguments);
}

TEST_CASE("what needs Python is told with file and line") {
    const auto list = read_functions(package);
    const auto first = [&](const std::string& name) {
        const auto verdict = judge(function(list, name).usage, {});
        CHECK(verdict.usable == Usability::needs_python);
        return verdict.reasons.at(0);
    };
    CHECK(first("fast_norm").kind == ReasonKind::triton);
    CHECK(first("fast_norm").message() == "launch.py:16: launches the Triton kernel _norm");
    CHECK(first("evaluated").kind == ReasonKind::dynamic);
    CHECK(first("endless").text.find("calls itself") != std::string::npos);
    CHECK(verdict_of("rearrange").reasons.at(0).kind == ReasonKind::package);
    CHECK(verdict_of("rearrange").reasons.size() == 1);
    CHECK(verdict_of("stream").reasons.at(0).kind == ReasonKind::torch_api);
}

TEST_CASE("what stands behind a condition speaks against nothing for certain") {
    const auto verdict = judge(function(read_functions(package), "either").usage, {});
    CHECK(verdict.usable == Usability::without_python);
    REQUIRE(verdict.reasons.size() == 1);
    CHECK_FALSE(verdict.reasons[0].certain);
}

TEST_CASE("layers: operators, autograd functions, constructs, rules") {
    const auto list = read_layers(package);
    const auto& norm = layer(list, "Norm");
    CHECK(norm.bases == std::vector<std::string>{"torch.nn.Module"});
    CHECK(norm.usage.operators == std::set<std::string>{"norm"});
    CHECK(judge(norm, {}).usable == Usability::without_python);
    CHECK(layer(list, "Trained").usage.applies_autograd_function);
    // Its forward compiles; the problems of its backward matter in training only.
    const auto trained = judge(layer(list, "Trained"), {});
    CHECK(layer(list, "Trained").usage.operators == std::set<std::string>{"norm", "norm_backward"});
    CHECK(trained.usable == Usability::without_python);
    REQUIRE_FALSE(trained.reasons.empty());
    CHECK_FALSE(trained.reasons[0].certain);
    CHECK(judge(layer(list, "HalfTrained"), {}).reasons.empty());
    CHECK(verdict_text(judge(layer(list, "Untrained"), {})) ==
          "needs Python: layers.py:43: the autograd.Function Bare has no forward");
    CHECK(judge(layer(list, "Launched"), {}).reasons.at(0).file == "launch.py");
    CHECK(verdict_text(judge(layer(list, "Tried"), {})) ==
          "needs Python: layers.py:51: Try has no counterpart in TorchScript");
    const auto broken = judge(layer(list, "WithMember"), {});
    CHECK(broken.usable == Usability::needs_python);
    CHECK(broken.reasons.at(0).kind == ReasonKind::rule);
    CHECK(layer(list, "WithMember").usage.foreign_operators == std::set<std::string>{"other::add"});
}

TEST_CASE("the operators of a built package are those of its own namespace") {
    PackageSources built = package;
    built["_ops.py"] = "import torch\nops = torch.ops._norm_1f\n";
    const auto& norm = layer(read_layers(built), "Norm");
    CHECK(norm.usage.operators == std::set<std::string>{"norm"});
    CHECK(norm.usage.foreign_operators.empty());
}

TEST_CASE("what a library needs of CPython") {
    binary::Library library;
    const auto names = std::make_shared<const std::string>("");
    const auto need = [&](std::string_view symbol) {
        library.symbols.symbols.push_back({symbol, "", false, false, false, false, true});
    };
    need("PyModule_Create2");
    need("memcpy");
    PythonNeeds stub;
    add_python_needs(stub, "a.so", library);
    CHECK(stub.stub);
    CHECK(stub.reasons.empty());
    CHECK(judge(Usage(), stub).usable == Usability::with_stub);

    for (const char* symbol : {"PyErr_Fetch", "PyObject_Call", "_Py_Dealloc", "Py_Initialize"}) {
        need(symbol);
    }
    need("_ZN8pybind116objectE");
    PythonNeeds python;
    add_python_needs(python, "a.so", library);
    REQUIRE(python.reasons.size() == 1);
    CHECK(python.reasons[0].message() ==
          "a.so: its library calls CPython: PyErr_Fetch, PyObject_Call, Py_Initialize and 1 more "
          "(pybind11)");
    CHECK(judge(Usage(), python).usable == Usability::needs_python);
}

TEST_CASE("the stub provides what verdicts count on") {
    const auto stub = base::read_file(
        std::string(TWINKLE_SOURCE_DIR) + "/src/runtime/python_stub/python_stub.c", "stub");
    for (const auto symbol : stub_symbols()) {
        CHECK(stub.find(std::string(symbol) + "(") != std::string::npos);
    }
}
