#pragma once
// LibTorch's reader trusts pickles: it recurses into whatever they nest, and allocates whatever
// counts they name. So each is checked first.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

// Rejects what no writer of a model produces: an opcode that TorchScript does not use, one without
// its operands, lengths and numbers beyond the data, values that hold themselves, values nested
// deeper than sane ones. Returns nothing if the pickle can be read. Time and memory are linear.
// Storages are listed in `storages`; without it, a pickle that should have none is checked faster.
// Names of classes and functions go to `globals` ("__torch__.pkg.Net").
struct PickledStorage {
    std::string key;          // the name of its record
    std::uint64_t bytes = 0;  // that LibTorch will read from it
};
std::optional<std::string> invalid_pickle(std::string_view data,
                                          std::vector<PickledStorage>* storages = nullptr,
                                          std::vector<std::string>* globals = nullptr);

}  // namespace twinkle::runtime
