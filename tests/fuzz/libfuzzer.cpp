// One target in libFuzzer's interface: TWINKLE_FUZZ_TARGET names it, TWINKLE_FUZZ_JSON says that
// its input is JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "json_mutator.h"
#include "kernel_targets.h"
#include "targets.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    twinkle::fuzz::TWINKLE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}

#ifdef TWINKLE_FUZZ_JSON
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
    std::mt19937 random(seed);
    if (random() % 4 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const auto mutate = [&](std::string_view bytes) {
        std::string buffer(bytes);
        const std::size_t before = buffer.size();
        buffer.resize(before + 64);
        buffer.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(buffer.data()), before,
                                       buffer.size()));
        return buffer;
    };
    const std::string changed =
        twinkle::fuzz::mutate_json({reinterpret_cast<const char*>(data), size}, random, mutate);
    const std::size_t kept = std::min(changed.size(), max_size);
    std::memcpy(data, changed.data(), kept);
    return kept;
}
#endif
