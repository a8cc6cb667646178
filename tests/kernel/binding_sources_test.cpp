#include "kernel/binding_sources.h"

#include "catch.h"

using namespace twinkle::kernel;

namespace {

std::vector<std::string> schemas(std::string_view source) {
    std::vector<std::string> found;
    for (const auto& op : operators_in_source(source)) {
        found.push_back(op.schema);
    }
    return found;
}

}  // namespace

TEST_CASE("operators are read from the C++ sources of bindings") {
    using Found = std::vector<std::string>;
    CHECK(schemas(R"src(
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  // ops.def("commented(Tensor x) -> Tensor");
  /* ops.def("also_commented(Tensor x) -> Tensor"); */
  ops.def("norm(Tensor! out, "  // what it writes
          "Tensor x, float eps) -> ()");
  ops.def(R"(raw.out(Tensor x,
      int n) -> Tensor)");
  ops.def("untyped", &untyped);
  ops.def("norm(int again) -> ()");
  const char quote = '"'; const int large = 1'000;
  ops.def("other::add(Tensor x) -> Tensor");
  ops.def("escaped(str mode=\"a\") -> Tensor");
}
)src") == Found{"escaped(str mode=\"a\") -> Tensor", "norm(Tensor! out, Tensor x, float eps) -> ()",
                "raw.out(Tensor x,\n      int n) -> Tensor"});
    for (const char* broken :
         {"", "\"", "R\"", "R\"(", "R\"x(", "/*", "//", "'", "\"\\", "\"a\n\""}) {
        CHECK(schemas(broken).empty());
    }
}
