#include "kernel/layers.h"

#include "base/temp_folder.h"
#include "catch.h"

#include <string>
#include <vector>

using namespace twinkle::kernel;

namespace {

std::vector<std::string> names(const LayerList& list) {
    std::vector<std::string> out;
    for (const auto& layer : list.layers) out.push_back(layer.name);
    return out;
}

std::vector<std::string> messages(const std::vector<Problem>& problems) {
    std::vector<std::string> out;
    for (const auto& problem : problems) out.push_back(problem.message());
    return out;
}

LayerSource only_layer(const std::string& source) {
    const auto list = read_layers({{"layers.py", source}});
    REQUIRE(messages(list.problems).empty());
    REQUIRE(list.layers.size() == 1);
    return list.layers[0];
}

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("a layer is read with its flags, parameters and what it uses of its host") {
    const auto layer = only_layer(R"(
import torch
import torch.nn as nn
from ._ops import ops

class RMSNorm(nn.Module):
    """Normalizes."""
    weight: torch.Tensor
    variance_epsilon: float
    can_torch_compile: bool = True
    has_backward = False

    def forward(self, x: torch.Tensor, residual: "torch.Tensor | None" = None, *rest,
                eps: dict[str,
                          int] = {}, **kwargs) -> torch.Tensor:
        y = self.gate.proj(x, bias=None)
        self.cache = self.variance_epsilon
        return ops.rms_norm(y, self.weight, self.variance_epsilon)
)");
    CHECK(layer.name == "RMSNorm");
    CHECK(layer.file == "layers.py");
    CHECK(layer.line == 6);
    CHECK_FALSE(layer.has_backward);
    CHECK(layer.can_torch_compile);
    CHECK(messages(layer.problems).empty());
    REQUIRE(layer.parameters.size() == 5);
    CHECK(layer.parameters[0].name == "x");
    CHECK(layer.parameters[0].annotation == "torch.Tensor");
    CHECK_FALSE(layer.parameters[0].has_default);
    CHECK(layer.parameters[1].annotation == "\"torch.Tensor | None\"");
    CHECK(layer.parameters[1].default_text == "None");
    CHECK(layer.parameters[2].kind == ParameterKind::var_positional);
    CHECK(layer.parameters[3].kind == ParameterKind::keyword_only);
    CHECK(layer.parameters[3].annotation == "dict[str, int]");
    CHECK(layer.parameters[4].kind == ParameterKind::var_keyword);
    CHECK(layer.returns == "torch.Tensor");
    CHECK(layer.host_attributes == Messages{"gate", "variance_epsilon", "weight"});
    CHECK(layer.host_writes == Messages{"cache"});
    REQUIRE(layer.host_calls.size() == 1);
    CHECK(layer.host_calls[0].path == "gate.proj");
    CHECK(layer.host_calls[0].arguments == 2);
    CHECK(layer.host_calls[0].line == 16);
}

TEST_CASE("flags default to a backward and no compile") {
    const auto layer = only_layer(
        "from torch.nn import Module as M\nclass A(M):\n    def forward(self, x): return x\n");
    CHECK(layer.has_backward);
    CHECK_FALSE(layer.can_torch_compile);
}

TEST_CASE("every rule that a layer breaks is named with its line") {
    const auto layer = only_layer(R"(import torch
class A(torch.nn.Module):
    scale = 2
    has_backward = not True
    def __init__(self): pass
    async def more(self): pass
    for i in x: pass
    class B: pass
    @staticmethod
    def forward(x): return x
)");
    const std::string rest =
        "; a layer has no members besides forward, prepare, precision, extra_repr and its two "
        "flags";
    CHECK(
        messages(layer.problems) ==
        Messages{"layers.py:3: defines scale" + rest,
                 "layers.py:4: has_backward must be True or False, so that it is known without "
                 "running it",
                 "layers.py:5: defines __init__" + rest,
                 "layers.py:6: has a statement in its body that cannot be read without running it",
                 "layers.py:7: has a statement in its body that cannot be read without running it",
                 "layers.py:8: has a statement in its body that cannot be read without running it",
                 "layers.py:10: forward must be a method with self"});
    CHECK(messages(only_layer("import torch\nclass A(torch.nn.Module): pass\n").problems) ==
          Messages{"layers.py:2: A defines no forward"});
    CHECK(messages(only_layer("class A:\n    def forward(self, x): return x\n").problems) ==
          Messages{"layers.py:1: A does not subclass torch.nn.Module"});
}

TEST_CASE("nn.Module is found through every kind of alias") {
    for (const std::string header :
         {"import torch\nclass A(torch.nn.Module):", "import torch.nn\nclass A(torch.nn.Module):",
          "from torch import nn as n\nclass A(n.Module):",
          "import torch.nn.modules.module as m\nclass A(m.Module):",
          "from torch import nn\nBase = nn.Module\nclass A(Base):",
          "try:\n    from torch import nn\nexcept ImportError:\n    nn = None\nclass A(nn.Module):",
          "from .compat import nn\nclass A(nn.Module):",
          "from .compat import *\nclass A(nn.Module):",
          "from . import compat\nclass A(compat.nn.Module):"}) {
        INFO(header);
        const auto list =
            read_layers({{"layers.py", header + "\n    def forward(self, x): return x\n"},
                         {"compat.py", "import torch.nn as nn\n"}});
        REQUIRE(list.layers.size() == 1);
        CHECK(messages(list.layers[0].problems).empty());
    }
}

TEST_CASE("layers are followed through the modules of the package") {
    const auto list = read_layers(
        {{"__init__.py", "from . import layers\n"},
         {"layers/__init__.py",
          "from .norm import RMSNorm as Norm, helper\nfrom .act import *\nfrom ..shared import S\n"
          "from torch.nn import Linear\nfrom . import norm\n"},
         {"layers/norm.py",
          "from torch import nn\nclass RMSNorm(nn.Module):\n"
          "    def forward(self, x): return x\ndef helper(): pass\n"},
         {"layers/act.py",
          "from .base import Base\nclass Silu(Base):\n    can_torch_compile = True\n"
          "class _Hidden(Base): pass\n"},
         {"layers/base.py",
          "from torch import nn\nclass Base(nn.Module):\n"
          "    def forward(self, x): return self.w\n"},
         {"shared.py",
          "import torch\nclass S(torch.autograd.Function):\n"
          "    @staticmethod\n    def forward(ctx, x): return x\n"}});
    CHECK(messages(list.problems).empty());
    CHECK(names(list) == Messages{"Base", "Norm", "Silu"});
    CHECK(list.find("Norm")->file == "layers/norm.py");
    CHECK(list.find("Silu")->can_torch_compile);
    CHECK(list.find("Silu")->host_attributes == Messages{"w"});
    CHECK(messages(list.find("Silu")->problems).empty());
    CHECK(list.find("S") == nullptr);
    CHECK(list.find("Nothing") == nullptr);
}

TEST_CASE("names stand for what Python takes them for") {
    const std::string layer = "class L(nn.Module):\n    def forward(self, x):\n        return x\n";
    const std::string imports = "import torch\nfrom torch import nn\n";
    // A package comes before a module of its name.
    CHECK(names(read_layers({{"layers.py", imports + "class A(nn.Module):\n    pass\n"},
                             {"layers/__init__.py", imports + layer}})) ==
          std::vector<std::string>{"L"});
    // a, b = c, d and a: int = 1 bind names, too.
    const std::string bound =
        "import torch\nModule, size = torch.nn.Module, 4\nBase: type = Module\n";
    CHECK(only_layer(bound + "class L(Base):\n    def forward(self, x):\n        return x\n")
              .problems.empty());
    // Above the package there is nothing.
    CHECK(messages(read_layers({{"layers.py", "from ..other import A\n"}}).problems) ==
          Messages{"layers.py:1: imports from a module that the package does not have: ..other"});
}

TEST_CASE("what cannot be read is reported, the rest is read") {
    const auto list = read_layers({{"layers.py",
                                    "from .broken import A\nfrom .missing import B\nfrom ._ops "
                                    "import ops\nfrom torch import nn\nclass C(nn.Module):\n"
                                    "    def forward(self, x): return x\n"},
                                   {"broken.py", "class A(:\n"}});
    CHECK(names(list) == Messages{"C"});
    CHECK(messages(list.problems) ==
          Messages{"layers.py:2: imports from a module that the package does not have: .missing",
                   "broken.py:1: invalid syntax: unexpected ':'"});
    CHECK(read_layers({{"__init__.py", ""}}).layers.empty());
    CHECK(messages(read_layers({{"layers.py", "x = ("}}).problems) ==
          Messages{"layers.py:1: '(' was never closed"});
}

TEST_CASE("circles of imports, aliases and classes end") {
    CHECK(read_layers({{"layers.py", "from .a import X\nfrom .a import *\nclass Y(X): pass\n"},
                       {"a.py", "from .layers import X\nfrom .layers import *\n"}})
              .layers.empty());
    CHECK(read_layers({{"layers.py", "A = B\nB = A\nclass C(A): pass\nclass D(D): pass\n"}})
              .layers.empty());
    PackageSources many;
    std::string all;
    for (int i = 0; i < 60; ++i) all += "from .m" + std::to_string(i) + " import *\n";
    for (int i = 0; i < 60; ++i) many["m" + std::to_string(i) + ".py"] = all + "class A(B): pass\n";
    many["layers.py"] = all;
    CHECK(read_layers(many).layers.empty());
}

TEST_CASE("functions are those that __init__ offers") {
    const auto list = read_functions(
        {{"__init__.py",
          "from .ops import rotary as apply, _hidden\nfrom torch import relu\nimport torch\n"
          "from . import layers\n\n@torch.compile\ndef own(x, /, scale: float = 1.0) -> None: "
          "pass\n"
          "def _private(): pass\nclass C: pass\nalias = own\nif torch.x:\n    def late(): pass\n"},
         {"layers.py", "def not_offered(): pass\n"},
         {"ops.py", "def rotary(q, k): pass\ndef _hidden(): pass\n"}});
    CHECK(messages(list.problems).empty());
    std::vector<std::string> found;
    for (const auto& f : list.functions) {
        found.push_back(f.name + "=" + f.file + ":" + f.symbol + "/" +
                        std::to_string(f.parameters.size()));
    }
    CHECK(found == Messages{"alias=__init__.py:own/2", "apply=ops.py:rotary/2",
                            "late=__init__.py:late/0", "own=__init__.py:own/2"});
    const auto& own = list.functions.back();
    CHECK(own.decorators == Messages{"torch.compile"});
    CHECK(own.returns == "None");
    CHECK(own.parameters[0].kind == ParameterKind::positional_only);
    CHECK(own.parameters[1].default_text == "1.0");
}

TEST_CASE("a package is read from its folder") {
    const twinkle::test::TempFolder folder;
    folder.write("__init__.py", "");
    folder.write("layers/__init__.py", "x = 1\n");
    folder.write("data.bin", "x");
    const auto package = read_package(folder.path());
    CHECK(package == PackageSources{{"__init__.py", ""}, {"layers/__init__.py", "x = 1\n"}});
}

TEST_CASE("the bundled pack keeps the rules") {
    const std::string kernels = TWINKLE_SOURCE_DIR "/kernels";
    auto package = read_package(kernels + "/twinkle-pack/python");
    // Which the build has a copy of (kernels/package.py).
    const std::string copied = "written_attention.py";
    package[copied] = read_package(kernels + "/presets").at(copied);
    const auto list = read_layers(package);
    CHECK(messages(list.problems).empty());
    CHECK_FALSE(list.layers.empty());
    for (const auto& layer : list.layers) CHECK(messages(layer.problems).empty());
    CHECK(messages(read_functions(package).problems).empty());
}
