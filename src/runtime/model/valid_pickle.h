#pragma once
// LibTorch's reader of pickles trusts them: what they nest it follows by calling itself, what they
// number it makes room for. So they are walked through before.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

// What no writer of a model would write: an opcode that TorchScript does not use, one without its
// operands, lengths and numbers beyond the data, values that hold themselves, values nested more
// deeply than any sane ones. Nothing: the pickle can be read. Time and memory are linear.
// What it finds of storages goes to `storages`; without, a pickle that should have none is quicker.
// The names of classes and functions go to `globals` ("__torch__.pkg.Net").
struct PickledStorage {
    std::string key;          // the name of its record
    std::uint64_t bytes = 0;  // that LibTorch will read from it
};
std::optional<std::string> invalid_pickle(std::string_view data,
                                          std::vector<PickledStorage>* storages = nullptr,
                                          std::vector<std::string>* globals = nullptr);

}  // namespace twinkle::runtime
