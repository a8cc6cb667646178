// Operators that packages of AOTInductor compute: which calls reach the code, and how. The code is
// fake_package.c.

#include "runtime/kernels/package_operators.h"

#include <torch/script.h>

#include <dlfcn.h>

#include <atomic>
#include <sstream>
#include <thread>

// After LibTorch.
#include "catch.h"
#include "torchscript.h"

using namespace twinkle;
using namespace twinkle::runtime;

namespace {

void* fake_library() {
    static void* library = ::dlopen(TWINKLE_FAKE_PACKAGE, RTLD_NOW | RTLD_LOCAL);
    INFO(::dlerror());
    REQUIRE(library != nullptr);
    return library;
}

OpenedPackage package(const std::string& factor, const std::string& sizes = R"(["rows", 8])",
                      const std::string& op = "twice(Tensor x, Tensor y, float factor) -> Tensor") {
    return {kernel::parse_compiled_operator(R"({"operator": ")" + op +
                                            R"(", "constants": {"factor": )" + factor +
                                            R"(}, "sizes": {"rows": [1, 100]},
                "inputs": [{"dtype": "float32", "sizes": )" +
                                            sizes + R"(},
                           {"dtype": "float32", "sizes": ["rows"]}]})"),
            "cpu", std::make_shared<PackageCode>(fake_library(), "fake.pt2")};
}

// Registered once for the process.
void provide() {
    static const bool once = [] {
        register_packages("pt2_test",
                          {package("2.0"), package("3.0"), package("2.0", R"([4, "rows", 8])")});
        return true;
    }();
    (void)once;
}

at::Tensor call(const at::Tensor& x, const at::Tensor& y, double factor = 2) {
    provide();
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("pt2_test::twice", "");
    torch::jit::Stack stack{x, y, factor};
    op.callBoxed(&stack);
    REQUIRE(stack.size() == 1);
    return stack.front().toTensor();
}

at::Tensor wish(std::int64_t rows, float value = 0) {
    return torch::full({rows}, value);
}

std::string refusal(const at::Tensor& x, const at::Tensor& y, double factor = 2) {
    try {
        call(x, y, factor);
    } catch (const c10::Error& error) {
        return error.what_without_backtrace();
    }
    return "";
}

void call_instead_of_matmul(torch::jit::Graph& graph) {
    for (torch::jit::Node* node : graph.nodes()) {
        if (node->kind() == c10::Symbol::fromQualString("aten::matmul")) {
            const torch::jit::WithInsertPoint here(node);
            torch::jit::Node* call = graph.insertNode(
                graph.create(c10::Symbol::fromQualString("pt2_test::twice"),
                             {node->input(0), node->input(1), graph.insertConstant(2.0)}));
            node->output()->replaceAllUsesWith(call->output());
            node->destroy();
            return;
        }
    }
}

bool has(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a call reaches the package that was compiled for it", "[packages]") {
    const auto x = torch::randn({5, 8});
    CHECK(torch::equal(call(x, wish(5)), 2 * x));
    CHECK(torch::equal(call(x, wish(5), 3), 2 * x));
    const auto deep = torch::randn({4, 7, 8});
    CHECK(torch::equal(call(deep, wish(7)), 2 * deep));
    CHECK(torch::equal(call(torch::randn({1, 8}).fill_(1), wish(1)), torch::full({1, 8}, 2.0F)));
}

TEST_CASE("inputs of other strides, offsets and signs reach it as it was compiled for",
          "[packages]") {
    const auto x = torch::randn({8, 5});
    CHECK(torch::equal(call(x.t(), wish(5)), 2 * x.t()));
    const auto flat = torch::randn({41});
    CHECK(torch::equal(call(flat.slice(0, 1).reshape({5, 8}), wish(5)),
                       2 * flat.slice(0, 1).reshape({5, 8})));
    const auto negative = torch::_neg_view(torch::randn({5, 8}));
    CHECK(torch::equal(call(negative, wish(5)), 2 * negative));
}

TEST_CASE("what no package was compiled for is refused with what there is", "[packages]") {
    const std::string sizes = refusal(torch::randn({5, 9}), wish(5));
    CHECK(has(sizes, "float32[rows: 1 to 100, 8], float32[rows: 1 to 100], factor = 2.0"));
    CHECK(has(sizes, "it was called with (float32[5, 9] on cpu"));
    CHECK(has(refusal(torch::randn({101, 8}), wish(101)), "compiled for"));
    CHECK(has(refusal(torch::randn({0, 8}), wish(0)), "compiled for"));
    CHECK(has(refusal(torch::randn({5, 8}), wish(6)), "compiled for"));  // one name, two sizes
    CHECK(has(refusal(torch::randn({5, 8}, torch::kDouble), wish(5)), "float64[5, 8]"));
    CHECK(has(refusal(torch::randn({8}), wish(5)), "compiled for"));
    CHECK(has(refusal(torch::randn({5, 8}), wish(5), 2.5), "2.5"));
    CHECK(has(refusal(torch::randn({5, 8}).to_sparse(), wish(5)), "sparse") == false);
    CHECK(!refusal(torch::randn({5, 8}).to_sparse(), wish(5)).empty());
}

TEST_CASE("its failure says why, and the next call works", "[packages]") {
    const auto x = torch::randn({5, 8});
    CHECK(has(refusal(x, wish(5, 2)), "fake.pt2 fails: as it was asked to"));
    CHECK(torch::equal(call(x, wish(5)), 2 * x));
}

TEST_CASE("a result that is an input becomes a tensor of its own", "[packages]") {
    const auto x = torch::randn({5, 8});
    const auto result = call(x, wish(5, 1));
    CHECK(torch::equal(result, x));
    CHECK_FALSE(result.is_alias_of(x));
}

TEST_CASE("metadata that do not fit the code are refused at the first call", "[packages]") {
    register_packages("pt2_wrong",
                      {package("2.0", R"(["rows", 8])",
                               "two(Tensor x, Tensor y, float factor) -> (Tensor, Tensor)")});
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("pt2_wrong::two", "");
    torch::jit::Stack stack{torch::randn({5, 8}), wish(5), 2.0};
    CHECK_THROWS_WITH(op.callBoxed(&stack), ContainsSubstring("its metadata say 2 and 2"));
}

TEST_CASE("many threads share one opened package", "[packages]") {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&wrong] {
            for (int k = 0; k < 200; ++k) {
                const auto x = torch::randn({1 + k % 50, 8});
                wrong += torch::equal(call(x, wish(x.size(0))), 2 * x) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    const auto created =
        reinterpret_cast<int (*)()>(::dlsym(fake_library(), "fake_package_created"));
    CHECK(created() <= 4);  // one for each PackageCode that was called
}

TEST_CASE("graphs with such a call are saved, loaded and frozen", "[packages]") {
    provide();
    auto module = tests::module_of("Twice", R"(
def forward(self, x):
    return torch.relu(torch.matmul(x, self.weight)) + 1
)");
    call_instead_of_matmul(*module.get_method("forward").graph());
    module.setattr("weight", wish(4));
    module.eval();
    const auto x = torch::randn({4, 8});
    const auto expected = torch::relu(2 * x) + 1;
    std::stringstream file;
    module.save(file);
    auto loaded = torch::jit::load(file);
    loaded.eval();
    auto frozen = torch::jit::freeze(loaded);
    const torch::NoGradGuard no_grad;
    for (auto* one : {&module, &loaded, &frozen}) {
        for (int run = 0; run < 3; ++run) {
            CHECK(torch::equal(one->forward({x}).toTensor(), expected));
        }
    }
}
