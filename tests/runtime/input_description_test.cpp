// Inputs in words: tensors, and tuples and lists of them.

#include "runtime/model/inputs.h"
#include "twinkle/error.h"

#include "error_code.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;
using tests::code_of;

TEST_CASE("tuples and lists of tensors are described and made") {
    const std::string text = "(float32[2,3];(int64[4];bool[]));[float16[1];float16[2]];int32[5]";
    const Inputs inputs = read_inputs(text);
    REQUIRE(inputs.positional.size() == 3);
    CHECK(inputs.positional[0].isTuple());
    CHECK(inputs.positional[1].isTensorList());
    CHECK(inputs.positional[1].toTensorVector().size() == 2);
    std::string again;
    for (const c10::IValue& value : inputs.positional) {
        again += (again.empty() ? "" : ";") + description_of(value).value();
    }
    CHECK(again == text);
}

TEST_CASE("a range belongs to its tensor, wherever that is") {
    const Inputs inputs = read_inputs("(int64[50]:3..5;[int64[50]:7..8]);float32[50]:2..3");
    const auto parts = inputs.positional[0].toTupleRef().elements().vec();
    CHECK(parts[0].toTensor().min().item<int>() >= 3);
    CHECK(parts[0].toTensor().max().item<int>() <= 4);
    CHECK(at::equal(parts[1].toTensorVector().at(0), at::full({50}, 7, at::kLong)));
    CHECK(inputs.positional[1].toTensor().min().item<double>() >= 2);
}

TEST_CASE("what is described is nested no more deeply than what is read") {
    const auto held = [](const c10::IValue& value) -> c10::IValue {
        return c10::ivalue::Tuple::create(std::vector<c10::IValue>{value});
    };
    c10::IValue tuples = at::ones({1});
    c10::IValue with_list = std::vector<at::Tensor>{at::ones({1})};
    for (int depth = 1; depth < deepest_input; ++depth) {
        tuples = held(tuples);
        with_list = held(with_list);
    }
    tuples = held(tuples);
    CHECK(description_of(tuples).value() == "((((((((float32[1]))))))))");
    CHECK(description_of(with_list).value() == "((((((([float32[1]])))))))");
    for (const c10::IValue& deepest : {tuples, with_list}) {
        CHECK(read_inputs(description_of(deepest).value()).positional.size() == 1);
        CHECK_FALSE(description_of(held(deepest)));
    }
}

TEST_CASE("what is no description is refused") {
    for (const char* wrong :
         {"float32[2", "(float32[2]", "float32[2])", "[float32[2]", "()[1]", "(;float32[2])",
          "[(float32[2])]", "float32[2];", "float32[2]]", "float32[2](", "[1]",
          "(((((((((float32[1])))))))))", "float32[2]:1", "(float32[2]:3..1)"}) {
        INFO(wrong);
        CHECK(code_of([&] { read_inputs(wrong); }) == ErrorCode::malformed);
    }
    CHECK_FALSE(description_of(1));
    CHECK_FALSE(description_of(c10::IValue()));
    CHECK_FALSE(description_of(c10::ivalue::Tuple::create({})));
    CHECK_FALSE(description_of(c10::ivalue::Tuple::create({at::ones({1}), 2})));
    CHECK_FALSE(description_of(std::vector<at::Tensor>()));
}
