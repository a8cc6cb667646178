// Finds, in a model's text, the code that LibTorch runs while it reads the model.

#include "runtime/model/load_time_code.h"
#include "runtime/model/io_operators.h"
#include "runtime/scripted.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

LoadTimeCode examined(const std::string& text) {
    return load_time_code({{"__torch__.pkg", text}});
}

// A class whose __setstate__ does this.
std::string with_state(const std::string& statement, const std::string& rest = "") {
    return "class Table(Module):\n  __parameters__ = []\n  x : Tensor\n"
           "  def __setstate__(self: __torch__.pkg.Table,\n    state: Tensor) -> NoneType:\n"
           "    " +
           statement + "\n    self.x = state\n    return None\n" + rest;
}

std::string problem(const std::string& statement, const std::string& rest = "") {
    return examined(with_state(statement, rest)).problem.value_or("");
}

}  // namespace

TEST_CASE("code that nothing runs when a model is read may do what it likes") {
    const auto found = examined(
        "class Net(Module):\n  training : bool\n  kind : Final[int] = 3\n"
        "  def forward(self: __torch__.pkg.Net,\n    x: Tensor,\n    y: int=4) -> Tensor:\n"
        "    torch.save(x, \"/x\")\n    return x\n");
    CHECK_FALSE(found.runs);
    CHECK_FALSE(found.problem);
}

TEST_CASE("state may be computed") {
    CHECK(examined(with_state("pass")).runs);
    for (const char* statement :
         {"pass", "y = torch.add(state, 1)", "y = ops.quantized.linear_prepack(state, None)",
          "y = torch.format(\"{}\", 1)", "y = (state).to(torch.device(\"cpu\"))",
          "y = torch.split(\"a b\", \" \")"}) {
        INFO(statement);
        CHECK(problem(statement).empty());
    }
}

TEST_CASE("operators that do more are named, whatever they hide behind") {
    CHECK(problem("torch.save(state, \"/x\")") ==
          "__setstate__ of pkg.Table calls aten::save, which writes a file");
    for (const char* statement :
         {"t = torch\n    t.save(state, \"/x\")", "o = ops\n    o.aten.save(state, \"/x\")",
          "g = getattr\n    g(torch, \"save\")(state, \"/x\")", "getattr(state, \"save\")(\"/x\")",
          "(state).save(\"/x\")", "y = [torch.from_file(\"/x\") for i in [1]]",
          "y = ops.c10d.barrier(state)", "y = ops.acme.anything(state)", "torch._print(\"x\")",
          "y = rpc_async(\"worker\", state)", "y = fork(torch.save, state)",
          "y = __torch__.torch.classes._nnapi.Compilation.__new__(state)"}) {
        INFO(statement);
        CHECK_FALSE(problem(statement).empty());
    }
}

TEST_CASE("calls are followed by their names") {
    const std::string helper = "def helper(x: Tensor) -> NoneType:\n  torch.save(x, \"/x\")\n";
    CHECK(problem("y = __torch__.pkg.helper(state)", helper) ==
          "helper of pkg calls aten::save, which writes a file");
    CHECK(problem("pass", helper).empty());
    CHECK_FALSE(problem("y = (self).step(state)",
                        "class Other(Module):\n  def step(self: __torch__.pkg.Other,\n"
                        "    x: Tensor) -> NoneType:\n    torch.save(x, \"/x\")\n    return None\n")
                    .empty());
    // The code does not name the methods that operators call.
    CHECK_FALSE(problem("pass",
                        "class Other:\n  def __add__(self: __torch__.pkg.Other,\n"
                        "    x: Tensor) -> NoneType:\n    torch.save(x, \"/x\")\n    return None\n")
                    .empty());
}

TEST_CASE("defaults and constants are evaluated when a model is read") {
    CHECK(examined("def f(x: NoneType=torch.save(1, \"/x\")) -> int:\n  return 1\n").problem);
    CHECK(examined("class A(Module):\n  x : Final[int] = ops.acme.touch(1)\n").problem);
    CHECK(examined("class A(NamedTuple):\n  x : Tensor = torch.from_file(\"/x\")\n").problem);
    CHECK_FALSE(examined("class A(Module):\n  x : Final[int] = 3\n").runs);
    CHECK_FALSE(examined("def f(x: float=1.5, y: List[int]=[1, -2]) -> int:\n  return 1\n").runs);
}

TEST_CASE("text operators of LibTorch are known, and new ones are not trusted") {
    CHECK_FALSE(unfit_for_loading("aten::format"));
    CHECK_FALSE(unfit_for_loading("aten::add"));
    CHECK(unfit_for_loading("aten::_print"));
    CHECK(unfit_for_loading("aten::save"));
    CHECK(io_of_operator("c10d::anything"));
    CHECK_FALSE(io_of_operator("aten::saved"));
    CHECK(io_of_class("dist_rpc.WorkerInfo"));
}

TEST_CASE("operators of a loaded model are found in all that it could call") {
    auto module = tests::module_of("Host",
                                   "def forward(self, x):\n    return self.far(x)\n"
                                   "def far(self, x):\n    torch.save(x, \"/x\")\n    return x\n");
    const auto uses = io_of(module);
    REQUIRE(uses.size() == 1);
    CHECK(uses[0].name == "aten::save");
    CHECK(uses[0].does == "writes a file");
    CHECK_THROWS(require_no_io(module, "model.pt"));
    CHECK(io_of(tests::module_of("Host", "def forward(self, x):\n    return x + 1\n")).empty());
}
