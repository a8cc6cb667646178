#include "runtime/kernels/operator_facts.h"

#include "runtime/kernels/declared_operators.h"
#include "runtime/kernels/op_library.h"

#include <torch/library.h>
#include <torch/script.h>

#include "catch.h"

using namespace twinkle::runtime;

namespace {

at::Tensor same(const at::Tensor& x) {
    return x.clone();
}

TORCH_LIBRARY(twinkle_facts, library) {
    library.def("composite(Tensor x) -> Tensor", same);
    library.def("on_cpu(Tensor x, float eps=1e-05) -> Tensor");
    library.def("nowhere.to(Tensor x) -> Tensor");
    library.def("writes(Tensor! out, Tensor x) -> ()");
}
TORCH_LIBRARY_IMPL(twinkle_facts, CPU, library) {
    library.impl("on_cpu", [](const at::Tensor& x, double) { return x.clone(); });
    library.impl("writes", [](at::Tensor out, const at::Tensor& x) { out.copy_(x); });
}
TORCH_LIBRARY_IMPL(twinkle_facts, Autograd, library) {
    library.impl("on_cpu", [](const at::Tensor& x, double) { return x.clone(); });
}

OperatorFacts facts(const std::string& name) {
    for (const OperatorFacts& one : operators_of("twinkle_facts")) {
        if (one.name == name) {
            return one;
        }
    }
    FAIL("no operator " << name);
    return {};
}

}  // namespace

TEST_CASE("the dispatcher knows for which devices an operator has a kernel, and its gradients") {
    CHECK(operators_of("twinkle_facts").size() == 4);
    CHECK(operators_of("twinkle_no_such_namespace").empty());
    const OperatorFacts composite = facts("composite");
    CHECK((composite.cpu && composite.cuda && composite.autograd));
    const OperatorFacts on_cpu = facts("on_cpu");
    CHECK((on_cpu.cpu && on_cpu.autograd));
    const OperatorFacts nowhere = facts("nowhere.to");
    CHECK_FALSE((nowhere.cpu || nowhere.cuda || nowhere.autograd));
    const OperatorFacts writes = facts("writes");
    CHECK((writes.cpu && !writes.cuda && !writes.autograd));
}

TEST_CASE("what a child says of operators is read strictly") {
    for (const OperatorFacts& one : operators_of("twinkle_facts")) {
        const auto back = operator_facts(to_json(one));
        REQUIRE(back);
        CHECK(back->name == one.name);
        CHECK(back->schema == one.schema);
        CHECK(to_json(*back) == to_json(one));
    }
    auto json = to_json(facts("on_cpu"));
    json["name"] = "another";
    CHECK_FALSE(operator_facts(json));
    json = to_json(facts("on_cpu"));
    json["schema"] = "on_cpu(Tensor x";
    CHECK_FALSE(operator_facts(json));
    json["schema"] = std::string(1 << 20, '(');
    CHECK_FALSE(operator_facts(json));
    json["schema"] = 3;
    CHECK_FALSE(operator_facts(json));
    CHECK_FALSE(operator_facts("on_cpu"));
}

TEST_CASE("a declared operator has the facts that a child has said, and takes a namespace") {
    const twinkle::MappedKernel kernel = [] {
        twinkle::MappedKernel one;
        one.name = "declared";
        one.op_namespace = "twinkle_declared";
        return one;
    }();
    CHECK_FALSE(namespace_is_taken("twinkle_declared"));
    CHECK_FALSE(known_facts({"twinkle_declared::copy", ""}));
    OperatorFacts copy{"copy", "copy(Tensor x) -> Tensor", true, false, false};
    const auto declared = declare_tried(kernel, {}, {copy});
    CHECK(tried_kernel(declared->build_id) == declared);
    CHECK(namespace_is_taken("twinkle_declared"));
    CHECK_FALSE(has_declared_libraries());
    const auto known = known_facts({"twinkle_declared::copy", ""});
    REQUIRE(known);
    CHECK((known->cpu && !known->cuda));
    // For operators declared for another machine, nothing is known.
    twinkle::MappedKernel elsewhere = kernel;
    elsewhere.op_namespace = "twinkle_elsewhere";
    elsewhere.operators = {{"copy", "copy(Tensor x) -> Tensor"}};
    CHECK(declare_operators(elsewhere).empty());
    CHECK_FALSE(known_facts({"twinkle_elsewhere::copy", ""}));
}
