// Runs every operator of the bundled pack without LibTorch and writes the bytes of its results, so
// that two builds for different CPUs can be compared (script/compat --aarch64):
//
//   other_cpu            each result with its operator and dtype before it, to standard output
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "operator.h"

namespace {

using namespace twinkle_pack;

constexpr int64_t rows = 3, columns = 70;  // no multiple of a vector's width

template <typename Number>
void put(Number number, void* at) {
    std::memcpy(at, &number, sizeof number);
}

uint32_t float_bits(double value) {
    uint32_t bits = 0;
    put(static_cast<float>(value), &bits);
    return bits;
}

// Truncates, and has no subnormal numbers: these inputs need no more.
uint16_t half_bits(double value) {
    if (std::abs(value) < 1.0 / 16384) return 0;
    const uint32_t bits = float_bits(value);
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112U << 10)));
}

void store(double value, DType dtype, void* at) {
    switch (dtype) {
        case DType::float64: put(value, at); break;
        case DType::float32: put(static_cast<float>(value), at); break;
        case DType::float16: put(half_bits(value), at); break;
        case DType::bfloat16: put(static_cast<uint16_t>(float_bits(value) >> 16), at);
    }
}

struct Tensor {
    std::vector<int64_t> sizes, strides;
    std::vector<char> bytes;

    Tensor(std::vector<int64_t> shape, DType dtype, int seed) : sizes(std::move(shape)) {
        int64_t count = 1;
        strides.resize(sizes.size());
        for (size_t d = sizes.size(); d-- > 0; count *= sizes[d]) strides[d] = count;
        const auto size = static_cast<size_t>(element_size(dtype));
        bytes.resize(static_cast<size_t>(count) * size);
        unsigned state = static_cast<unsigned>(seed) * 2654435761U + 1;
        for (int64_t i = 0; i < count; ++i) {
            state = state * 1664525U + 1013904223U;
            store((state >> 8) / double(1 << 21) - 4, dtype,
                  bytes.data() + static_cast<size_t>(i) * size);
        }
    }

    View view(DType dtype) const {
        return {bytes.data(), scalar_type_of(dtype), static_cast<int64_t>(sizes.size()),
                sizes.data(), strides.data()};
    }
};

// "Tensor? weight" of the schema's argument at `position` gives "weight".
std::string argument_name(const Operator& op, int position) {
    std::string_view schema = op.schema;
    schema.remove_prefix(schema.find('(') + 1);
    for (int i = 0; i < position; ++i) schema.remove_prefix(schema.find(',') + 2);
    schema.remove_prefix(schema.find(' ') + 1);
    return std::string(schema.substr(0, schema.find_first_of(",=)")));
}

std::vector<int64_t> shape_of(const Operator& op, const std::string& argument) {
    const bool halves = std::string_view(op.name).find("_and_") != std::string_view::npos;
    if (argument == "weight" || argument == "bias") return {columns};
    if (argument == "cos" || argument == "sin") return {rows, columns - 6};
    if (argument == "grad" && halves) return {rows, columns / 2};
    return {rows, columns};
}

void in_order(int64_t end, int64_t, void (*body)(int64_t, int64_t, void*), void* context) {
    body(0, end, context);
}

void run(const Operator& op, DType dtype) {
    std::vector<Tensor> tensors;
    tensors.reserve(most_tensors);
    Inputs inputs;
    int position = 0, number = 0;
    for (const char* kind = op.arguments; *kind; ++kind, ++position) {
        if (std::string_view("wgr").find(*kind) != std::string_view::npos) break;  // by rule
        const auto name = argument_name(op, position);
        if (*kind == 't' || *kind == 'o') {
            tensors.emplace_back(shape_of(op, name), dtype, position);
            inputs.tensors[tensors.size() - 1] = tensors.back().view(dtype);
        } else {
            inputs.numbers[number++] = name == "eps" ? 1e-6 : 0;
        }
    }
    Plan plan;
    op.plan(op.name, inputs, plan);
    std::vector<std::vector<char>> results;
    void* data[most_results] = {};
    for (int i = 0; i < plan.result_count; ++i) {
        int64_t bytes = element_size(plan.results[i].dtype);
        for (int64_t d = 0; d < plan.results[i].dims; ++d) bytes *= plan.results[i].sizes[d];
        results.emplace_back(static_cast<size_t>(bytes));
    }
    for (size_t i = 0; i < results.size(); ++i) data[i] = results[i].data();
    op.compute(inputs, plan, data, {in_order, 1});
    for (const auto& result : results) {
        std::printf("%s %s %zu\n", op.name, dtype_name(scalar_type_of(dtype)).c_str(),
                    result.size());
        std::fwrite(result.data(), 1, result.size(), stdout);
        std::putchar('\n');
    }
}

// gelu in float64 is the C library's erf, whose last bit differs from CPU to CPU.
bool is_comparable(const Operator& op, DType dtype) {
    const std::string_view name = op.name;
    const bool has_erf = name == "gelu" || name == "gelu_backward" ||
                         name.starts_with("gelu_mul") || name.starts_with("gelu_and_mul");
    return dtype != DType::float64 || !has_erf;
}

}  // namespace

int main() try {
    for (int i = 0; i < operator_count; ++i) {
        const Operator& op = operators()[i];
        if (op.composition.products > 0) continue;  // of LibTorch's operators, on such a CPU
        if (std::string_view(op.name).starts_with("linear_int")) continue;  // takes integers
        for (int dtype = 0; dtype < dtype_count; ++dtype) {
            if (is_comparable(op, static_cast<DType>(dtype))) run(op, static_cast<DType>(dtype));
        }
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
