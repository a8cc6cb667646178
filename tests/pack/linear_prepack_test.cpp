// Weights of linear layers that are laid out once: the same numbers, and results as good as from
// PyTorch's layout.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "linear_call.h"

using namespace pack;
using namespace pack::linear_layers;

namespace {

// Undefined: the operator leaves the weight as it is.
Tensor prepacked(const Tensor& weight, const std::string& op = "linear") {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
        (op_namespace() + "::" + op + "_prepack").c_str(), "");
    torch::jit::Stack stack{weight};
    handle.callBoxed(stack);
    return stack.at(0).isNone() ? Tensor() : stack.at(0).toTensor();
}

// As the pack's Python code has it.
Tensor plain(const Tensor& packed) {
    return packed.transpose(1, 2).reshape({packed.size(0) * packed.size(2), -1});
}

Tensor run(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
           const std::vector<c10::IValue>& numbers = {}) {
    return call("linear", {x, weight, bias}, numbers)[0];
}

// What this instruction set lays out.
std::vector<at::ScalarType> served() {
    std::vector<at::ScalarType> all;
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
        if (prepacked(at::ones({32, 64}, dtype)).defined()) all.push_back(dtype);
    return all;
}

}  // namespace

TEST_CASE("linear layers with prepacked weights are right", "[isa][cpu]") {
    at::manual_seed(61);
    // Depths of one sixteen of groups, of some chains, and more than there is room for at a time.
    const Size sizes[] = {{32, 32}, {96, 64}, {256, 2080}, {1120, 96}, {1056, 1120}, {5120, 64}};
    for (const auto dtype : served())
        for (const int64_t rows : {1, 2, 5, 11, 12, 13, 16, 25, 48, 64, 257, 300})
            for (const Size& size : sizes) {
                if (rows > 64 && size.columns > 1000 && rows != 257) continue;
                const Tensor x = random({rows, size.depth}, dtype), w = weight(size, dtype);
                const Tensor packed = prepacked(w), bias = random({size.columns}, dtype);
                REQUIRE(packed.defined());
                CHECK(packed.is_contiguous());
                CHECK(at::equal(plain(packed), w));
                for (const Tensor& one : {bias, Tensor()})
                    check_close(run(x, packed, one), layer(x, w, one),
                                layer(wide(x), wide(w), wide(one)));
            }
}

TEST_CASE("prepacked weights: activations, gates and several layers", "[isa][cpu]") {
    at::manual_seed(62);
    for (const auto dtype : served())
        for (const int64_t rows : {1, 7, 30, 300}) {
            const Size size{352, 160};
            const Tensor x = random({rows, size.depth}, dtype, 1);
            const Tensor w = weight(size, dtype), v = weight(size, dtype);
            const Tensor bias = random({size.columns}, dtype, 1);
            for (const Activation& activation : activations) {
                const std::string name = activation.name, op = "linear_" + name;
                const auto of = activation.of;
                INFO(name);
                check_close(call(op, {x, prepacked(w, op), bias})[0], of(layer(x, w, bias)),
                            of(layer(wide(x), wide(w), wide(bias))));
                if (name == "relu") continue;
                const auto gate = [&](auto as) {
                    return of(layer(as(x), as(w), Tensor())) * layer(as(x), as(v), as(bias));
                };
                const auto gated = [&](const Tensor& first, const Tensor& second) {
                    return call(op + "_mul", {x, first, Tensor(), second, bias})[0];
                };
                const Tensor first = prepacked(w, op + "_mul"), second = prepacked(v, op + "_mul");
                const Tensor original = gate([](const Tensor& one) { return one; });
                check_close(gated(first, second), original, gate(wide));
                // One of them may have to stay as it was.
                check_close(gated(first, v), original, gate(wide));
                check_close(gated(w, second), original, gate(wide));
            }
            const Tensor narrow = weight({size.depth, 33}, dtype);
            const Tensors three = call("linear3", {x, prepacked(w, "linear3"), bias, narrow,
                                                   Tensor(), prepacked(v, "linear3"), Tensor()});
            CHECK(at::equal(three[0], run(x, prepacked(w), bias)));
            check_close(three[1], layer(x, narrow, {}), layer(wide(x), wide(narrow), {}));
            CHECK(at::equal(three[2], run(x, prepacked(v))));
            const Tensors two = call("linear2", {x, w, Tensor(), prepacked(v, "linear2"), bias});
            check_close(two[0], layer(x, w, {}), layer(wide(x), wide(w), {}));
            CHECK(at::equal(two[1], run(x, prepacked(v), bias)));
        }
}

TEST_CASE("prepacked weights: any x, way and grain, any number of threads", "[isa][cpu]") {
    at::manual_seed(63);
    for (const auto dtype : served()) {
        const Tensor w = weight({128, 224}, dtype), packed = prepacked(w);
        const Tensor base = random({6, 5, 256}, dtype);
        for (const Tensor& x : {base.slice(2, 0, 128), base.transpose(0, 1).slice(2, 3, 131),
                                base.slice(2, 0, 256, 2), base[0][0].slice(0, 1, 129)}) {
            const Tensor result = run(x, packed);
            check_close(result, layer(x, w, {}), layer(wide(x), wide(w), {}));
            for (const int64_t way : {1, 2, 3, 7})
                for (const int64_t grain : {1, 1 << 20})
                    CHECK(at::equal(run(x, packed, {}, {way, grain}), result));
        }
        const Tensor bias = random({224, 2}, dtype).select(1, 0), part = base.slice(2, 0, 128);
        CHECK(at::equal(run(part, packed, bias), run(part, packed, bias.contiguous())));
        const Tensor none = run(base.slice(0, 0, 0).slice(2, 0, 128), packed);
        CHECK(none.sizes() == at::IntArrayRef({0, 5, 224}));
        const auto threads = at::get_num_threads();
        // Deep, too, with more columns than are summed up at a time, and with so few that rows are
        // divided.
        for (const auto& [size, rows] : std::vector<std::pair<Size, int64_t>>{
                 {{128, 224}, 257}, {{1056, 2176}, 257}, {{96, 32}, 520}, {{1024, 64}, 1043}}) {
            const Tensor x = random({rows, size.depth}, dtype);
            const Tensor panels = prepacked(weight(size, dtype));
            const Tensor gated =
                call("linear_silu_mul", {x, panels, Tensor(), panels, Tensor()})[0];
            const Tensor result = run(x, panels);
            for (const int count : {1, 7}) {
                at::set_num_threads(count);
                CHECK(at::equal(run(x, panels), result));
                CHECK(at::equal(call("linear_silu_mul", {x, panels, Tensor(), panels, Tensor()})[0],
                                gated));
            }
            at::set_num_threads(threads);
        }
    }
}

TEST_CASE("weights of linear layers that are not prepacked", "[isa][cpu]") {
    for (const auto dtype : served()) {
        const auto weight = [&](std::vector<int64_t> sizes) { return random(sizes, dtype, 1); };
        REQUIRE(prepacked(weight({32, 32})).defined());
        CHECK_FALSE(prepacked(weight({33, 32})).defined());  // no whole panel
        CHECK_FALSE(prepacked(weight({32, 40})).defined());  // no whole sixteen of groups
        CHECK_FALSE(prepacked(weight({0, 32})).defined());
        CHECK_FALSE(prepacked(weight({32, 0})).defined());
        CHECK_FALSE(prepacked(weight({32})).defined());
        CHECK_FALSE(prepacked(weight({2, 32, 32})).defined());
        CHECK_FALSE(prepacked(weight({1, 1, 32, 32})).defined());
        CHECK_FALSE(prepacked(weight({32, 32}).t()).defined());
        CHECK_FALSE(prepacked(weight({64, 32}).slice(0, 0, 64, 2)).defined());
        CHECK_FALSE(prepacked(weight({32, 32}).to(at::kDouble)).defined());
        CHECK_FALSE(prepacked(weight({32, 32}).to(at::kInt)).defined());
    }
}

// A model may be moved, or its dtype changed, after it was loaded; a file may hold anything.
TEST_CASE("panels that are not this CPU's are brought back into PyTorch's order", "[cpu]") {
    at::manual_seed(64);
    for (const auto dtype : dtypes()) {
        const Tensor w = weight({64, 96}, dtype), x = random({9, 64}, dtype);
        const auto panels = [&](int64_t columns, int64_t group) {
            return w.reshape({96 / columns, columns, 64 / group, group}).transpose(1, 2);
        };
        const Tensor bias = random({96}, dtype);
        const Tensor original = layer(x, w, bias), exact = layer(wide(x), wide(w), wide(bias));
        for (const int64_t columns : {1, 16, 32, 96})
            for (const int64_t group : {1, 2, 4, 64})
                for (const Tensor& other :
                     {panels(columns, group), panels(columns, group).contiguous()})
                    check_close(run(x, other, bias), original, exact);
        // Not where vectors begin.
        const Tensor packed = panels(32, dtype == at::kBFloat16 ? 2 : 1);
        const Tensor moved = at::empty({packed.numel() + 1}, packed.options()).slice(0, 1);
        check_close(run(x, moved.view(packed.sizes()).copy_(packed), bias), original, exact);
        check_close(call("linear3", {x, packed, bias, w, bias, packed, Tensor()})[0], original,
                    exact);
    }
}

TEST_CASE("panels that do not fit are refused", "[cpu]") {
    const Tensor x = at::ones({3, 32});
    CHECK(has(refusal([&] { run(x, at::ones({1, 64, 32, 1})); }),
              "linear: the weight is [1, 64, 32, 1], which does not fit x, [3, 32]"));
    CHECK(has(refusal([&] { run(x, at::ones({1, 32, 32, 1}), at::ones({31})); }),
              "the bias is [31], which does not fit the weight, [1, 32, 32, 1]"));
    CHECK(has(refusal([&] { run(x, at::ones({1, 32, 32})); }), "does not fit x"));
    CHECK(run(x, at::ones({0, 32, 32, 1})).sizes() == at::IntArrayRef({3, 0}));
    CHECK(run(x.slice(0, 0, 0), at::ones({1, 32, 32, 1})).sizes() == at::IntArrayRef({0, 32}));
    const auto meta = at::TensorOptions().device(at::kMeta);
    const Tensor result = run(at::empty({2, 3, 32}, meta), at::empty({3, 32, 32, 1}, meta));
    CHECK(result.sizes() == at::IntArrayRef({2, 3, 96}));
}
