// Inputs in other sizes: which dimensions vary together, and that values are taken from the given
// ones.

#include "runtime/verify/size_variants.h"

#include <algorithm>
#include <set>

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime;

namespace {

// The names of the variants, each once.
std::vector<std::string> names(const Inputs& given) {
    std::vector<std::string> found;
    for (const SizeVariant& variant : size_variants(given)) {
        if (std::find(found.begin(), found.end(), variant.name()) == found.end()) {
            found.push_back(variant.name());
        }
    }
    return found;
}

Inputs first_of(const Inputs& given, const std::string& name) {
    for (const SizeVariant& variant : size_variants(given)) {
        if (variant.name() == name) {
            return variant.of(given);
        }
    }
    FAIL("there is no variant " << name);
    return {};
}

at::Tensor tensor(const Inputs& inputs, std::size_t index) {
    return inputs.positional.at(index).toTensor();
}

}  // namespace

TEST_CASE("one row of token ids is tried in other batches and lengths") {
    const Inputs given{{at::arange(10, 18).reshape({1, 8})}, {}};
    CHECK(names(given) == std::vector<std::string>{"length 1", "length 2", "length 3", "length 7",
                                                   "batch 2", "batch 3", "batch 2, length 3"});
    const at::Tensor longer = tensor(first_of(given, "batch 3"), 0);
    CHECK(longer.sizes() == at::IntArrayRef({3, 8}));
    CHECK(longer.ge(10).logical_and(longer.lt(18)).all().item<bool>());
    // A kernel that reads the first row for all of them must give another result.
    CHECK_FALSE(longer[0].equal(longer[1]));
    CHECK_FALSE(longer[1].equal(longer[2]));
    CHECK(tensor(first_of(given, "length 3"), 0).equal(at::arange(10, 13).reshape({1, 3})));
    CHECK(shapes_text(first_of(given, "batch 2, length 3")) == "int64[2,3]");
}

TEST_CASE("sizes that are given are not tried again, and others grow from one") {
    CHECK(names({{at::zeros({2, 3}, at::kLong)}, {}}) ==
          std::vector<std::string>{"length 1", "length 2", "length 5", "batch 1", "batch 3",
                                   "batch 3, length 2"});
    const Inputs one{{at::full({1, 1}, 4, at::kLong)}, {}};
    CHECK(tensor(first_of(one, "length 5"), 0).equal(at::full({1, 5}, 4, at::kLong)));
}

TEST_CASE("what has the same size changes with it, and what has another does not") {
    const std::int64_t length = 6;
    Inputs given{{at::arange(length).reshape({1, length})}, {}};
    given.named["mask"] = at::ones({1, 1, length, length}, at::kBool).tril();
    given.named["positions"] = at::arange(length);
    given.named["hidden"] = at::rand({1, length, 64});
    given.named["scale"] = at::scalar_tensor(2.0);
    given.named["vocabulary"] = at::rand({32, 64});
    const Inputs changed = first_of(given, "batch 2, length 3");
    const auto sizes = [&](const char* name) {
        return changed.named.at(name).toTensor().sizes().vec();
    };
    CHECK(sizes("mask") == std::vector<std::int64_t>{2, 1, 3, 3});
    CHECK(sizes("positions") == std::vector<std::int64_t>{3});
    CHECK(sizes("hidden") == std::vector<std::int64_t>{2, 3, 64});
    CHECK(sizes("scale").empty());
    CHECK(sizes("vocabulary") == std::vector<std::int64_t>{32, 64});
    // A causal mask stays one in the first row.
    CHECK(changed.named.at("mask").toTensor()[0][0].equal(at::ones({3, 3}, at::kBool).tril()));
}

TEST_CASE("tensors in tuples and lists change, too") {
    const at::Tensor cache = at::rand({1, 4, 9, 16});
    const Inputs given{{at::zeros({1, 9}, at::kLong), c10::ivalue::Tuple::create({cache, cache}),
                        std::vector<at::Tensor>{cache}},
                       {}};
    const Inputs changed = first_of(given, "length 2");
    CHECK(shapes_text(changed) ==
          "int64[1,2];float32[1,4,2,16];float32[1,4,2,16];float32[1,4,2,16]");
}

TEST_CASE("what is as wide as it is long may be meant by its second dimension alone") {
    const Inputs given{{at::rand({1, 8, 8})}, {}};
    std::set<std::string> shapes;
    for (const SizeVariant& variant : size_variants(given)) {
        if (variant.name() == "length 3") {
            shapes.insert(shapes_text(variant.of(given)));
        }
    }
    CHECK(shapes == std::set<std::string>{"float32[1,3,3]", "float32[1,3,8]"});
}

TEST_CASE("no row of a mask comes to hide everything") {
    // Padded on the left: only the last places are not hidden.
    Inputs given{{at::arange(8).reshape({1, 8})}, {}};
    const at::Tensor mask = at::tensor({0, 0, 0, 0, 1, 1, 1, 1}, at::kLong).reshape({1, 8});
    given.named["mask"] = mask;
    Inputs changed = first_of(given, "length 2");
    CHECK(changed.named.at("mask").toTensor().equal(at::ones({1, 2}, at::kLong)));
    CHECK(tensor(changed, 0).equal(at::tensor({6, 7}, at::kLong).reshape({1, 2})));
    // The same as an additive mask.
    given.named["mask"] =
        at::zeros({1, 1, 1, 8}).masked_fill(mask.reshape({1, 1, 1, 8}) == 0, -3.4e38);
    changed = first_of(given, "length 2");
    CHECK(changed.named.at("mask").toTensor().eq(0).all().item<bool>());
    // Hidden at both ends.
    given.named["mask"] = at::tensor({0, 1, 1, 1, 1, 1, 1, 0}, at::kLong).reshape({1, 8});
    const auto found = names(given);
    CHECK(std::find(found.begin(), found.end(), "length 1") == found.end());
    CHECK(std::find(found.begin(), found.end(), "length 2") != found.end());
}

TEST_CASE("long inputs are not tried in full length again") {
    const Inputs given{{at::zeros({1, 4096}, at::kLong)}, {}};
    for (const SizeVariant& variant : size_variants(given)) {
        if (variant.name() != "batch 2" &&
            variant.name() != "batch 3") {  // no length can vary in it
            CHECK(tensor(variant.of(given), 0).numel() <= 64);
        }
    }
    CHECK(size_variants(given).size() <= 12);
}

TEST_CASE("packed sequences change with their offsets") {
    const at::Tensor offsets = at::tensor({0, 5, 9, 9, 20}, at::kInt);
    const at::Tensor rows = at::arange(40).reshape({20, 2}).to(at::kFloat);
    const Inputs given{{rows, offsets, at::arange(20).reshape({1, 20}), 11, at::rand({3, 7})}, {}};
    CHECK(names(given) == std::vector<std::string>{"length 1", "length 2", "length 3", "length 9",
                                                   "batch 1", "batch 2", "batch 3",
                                                   "batch 2, length 3"});
    Inputs changed = first_of(given, "batch 2");
    CHECK(tensor(changed, 0).equal(rows.slice(0, 0, 9)));
    CHECK(tensor(changed, 1).equal(at::tensor({0, 5, 9}, at::kInt)));
    CHECK(tensor(changed, 2).equal(at::arange(9).reshape({1, 9})));
    CHECK(tensor(changed, 4).sizes() == at::IntArrayRef({3, 7}));
    changed = first_of(given, "length 3");
    CHECK(tensor(changed, 1).equal(at::tensor({0, 3, 6, 6, 9}, at::kInt)));
    CHECK(tensor(changed, 0)
              .equal(rows.index_select(0, at::tensor({0, 1, 2, 5, 6, 7, 9, 10, 11}, at::kLong))));
}

TEST_CASE("packed sequences that come again begin one row later") {
    const Inputs given{{at::arange(4).reshape({4, 1}), at::tensor({0, 4}, at::kLong)}, {}};
    const Inputs changed = first_of(given, "batch 2");
    CHECK(tensor(changed, 0).flatten().equal(at::tensor({0, 1, 2, 3, 1, 2, 3, 0}, at::kLong)));
    CHECK(tensor(changed, 1).equal(at::tensor({0, 4, 8}, at::kLong)));
}

TEST_CASE("packed queries and keys each have their offsets") {
    const Inputs given{{at::rand({6, 2}), at::tensor({0, 1, 6}, at::kInt), at::rand({9, 2}),
                        at::tensor({0, 7, 9}, at::kInt), at::rand({2, 5})},
                       {}};
    CHECK(shapes_text(first_of(given, "batch 1")) ==
          "float32[1,2];int32[2];float32[7,2];int32[2];float32[1,5]");
    // What has as many rows as there are sequences may be something else.
    std::set<std::string> shapes;
    for (const SizeVariant& variant : size_variants(given)) {
        shapes.insert(shapes_text(variant.of(given)));
    }
    CHECK(shapes.contains("float32[1,2];int32[2];float32[7,2];int32[2];float32[2,5]"));
    // Two that cut the same rows otherwise cannot both be right in another size.
    CHECK(size_variants(
              {{at::rand({6, 2}), at::tensor({0, 1, 6}, at::kInt), at::tensor({0, 2, 6}, at::kInt)},
               {}})
              .empty());
}

TEST_CASE("positions and counts are no offsets") {
    const Inputs positions{{at::rand({1, 8, 9, 16}), at::arange(9)}, {}};
    CHECK(shapes_text(first_of(positions, "length 3")) == "float32[1,3,9,16];int64[9]");
    const Inputs nowhere{{at::zeros({1, 8}, at::kLong), at::tensor({0, 3, 7}, at::kLong)}, {}};
    CHECK(shapes_text(first_of(nowhere, "batch 2")) == "int64[2,8];int64[3]");
}

TEST_CASE("what has no dimension has no other size") {
    CHECK(size_variants({}).empty());
    CHECK(size_variants({{at::scalar_tensor(1.0), 3, c10::IValue()}, {}}).empty());
    CHECK(size_variants({{at::zeros({0, 4})}, {}}).empty());
    CHECK(names({{at::zeros({4})}, {}}) ==
          std::vector<std::string>{"batch 1", "batch 2", "batch 3"});
}
