// Descriptions of files that are not loaded.

#include "runtime/graph/class_name.h"
#include "runtime/inspect/saved_code.h"
#include "runtime/model/other_file.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime;

TEST_CASE("mangling is taken out of any text") {
    CHECK(without_mangling("List[__torch__.pkg.___torch_mangle_12.Name]") == "List[pkg.Name]");
    CHECK(without_mangling("(__torch__.a.B self, Tensor x)") == "(a.B self, Tensor x)");
    CHECK(without_mangling("a__torch__.b ___torch_mangle_.c ___torch_mangle_3") ==
          "a__torch__.b ___torch_mangle_.c ___torch_mangle_3");
    CHECK(without_mangling("").empty());
}

TEST_CASE("the code of a saved model is read as text") {
    const std::vector<CodeFile> files = {
        {"code/__torch__/pkg/mod.py",
         "class Norm(Module):\n"
         "  __parameters__ = [\"weight\", ]\n"
         "  weight : Tensor\n"
         "  eps : Final[float] = 9.9999999999999995e-07\n"
         "  def forward(self: __torch__.pkg.mod.Norm,\n"
         "    x: Tensor,\n"
         "    scale: float=2.) -> Tuple[Tensor, __torch__.pkg.___torch_mangle_1.Pair]:\n"
         "    _0 = ops.rms.norm(x, self.weight)  # ops.comment.no(x)\n"
         "    _1 = ops.rms.norm.out(x, \"ops.text.no(x)\")\n"
         "    return torch.silu(torch.add(_0, _1))\n"
         "def helper(x: Tensor) -> Tensor:\n"
         "  return x\n"},
        {"code/__torch__/pkg/mod/___torch_mangle_1.py",
         "class Norm(Module):\n"
         "  state : __torch__.torch.classes.ours.State\n"
         "  def forward(self, x: Tensor) -> Tensor:\n"
         "    return __torch__.pkg.mod.helper(x, )\n"},
        {"code/__torch__/broken.py", "def f(:\n  return ops.other.op(1)\n"},
    };
    const SavedCode code = read_saved_code(files);
    REQUIRE(code.classes.size() == 1);
    const SavedClass& norm = code.classes.at("pkg.mod.Norm");
    CHECK(norm.count == 2);
    CHECK(norm.base == "Module");
    CHECK(norm.attributes.at("weight") == "Tensor");
    CHECK(norm.attributes.at("eps") == "Final[float] = 9.9999999999999995e-07");
    REQUIRE(norm.methods.size() == 1);
    CHECK(norm.methods.front().signature ==
          "forward(self, x: Tensor, scale: float = 2.) -> Tuple[Tensor, pkg.Pair]");
    CHECK(code.operators ==
          std::map<std::string, std::size_t>{
              {"rms::norm", 2}, {"other::op", 1}, {"aten::silu", 1}, {"aten::add", 1}});
    CHECK(code.foreign_classes == std::map<std::string, std::size_t>{{"ours.State", 1}});
    CHECK(code.functions.at("pkg.mod.helper") == "helper(x: Tensor) -> Tensor");
    CHECK(code.called_functions == std::map<std::string, std::size_t>{{"pkg.mod.helper", 1}});
    REQUIRE(code.unreadable.size() == 1);
    CHECK(code.unreadable.front().find("broken.py:1") != std::string::npos);
}

TEST_CASE("names in saved code that are none") {
    const auto operators = [](const std::string& text) {
        return read_saved_code({{"code/a.py", text}}).operators;
    };
    CHECK(operators("ops.a..b() ops..a() ops. ops.a torch.() torch.a.b() x.ops.a.b() 'ops.a.b")
              .empty());
    CHECK(operators("ops." + std::string(1000, 'a') + ".b()").empty());
    CHECK(operators("\"\\\"ops.a.b()\"").empty());
    CHECK(operators("\"").empty());
    CHECK(operators("ops.a.b(ops.a.c())").size() == 2);
}

TEST_CASE("a pickle says what it holds without being unpickled") {
    const std::string header = "\x80\x02";
    CHECK(describe_pickle(header + "ccollections\nOrderedDict\nq\x01)Rq\x02.").find("state_dict") !=
          std::string::npos);
    CHECK(describe_pickle(header + "cpkg.mod\nNet\nq\x01)\x81.").find("pkg.mod.Net") !=
          std::string::npos);
    const std::string by_stack = header +
                                 "\x8c\x03"
                                 "pkg"
                                 "\x8c\x03"
                                 "Net"
                                 "\x93.";
    CHECK(describe_pickle(by_stack).find("pkg.Net") != std::string::npos);
    for (const char* broken : {"", "\x80", "c", "cpkg\n", "X\xff\xff\xff\xff", "\x8d"}) {
        CHECK(!describe_pickle(broken).empty());
    }
}

TEST_CASE("files that are no archives") {
    CHECK(describe_file("", 0) == "the file is empty");
    CHECK(describe_file("GGUF\x03", 100).find("GGUF") != std::string::npos);
    CHECK(describe_file("text", 4) == "it is no zip archive");
}
