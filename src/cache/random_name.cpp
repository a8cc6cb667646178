#include "cache/random_name.h"

#include <fmt/format.h>

#include <random>

namespace twinkle::cache {

std::string random_hex8() {
    std::random_device device;
    return fmt::format("{:08x}", device());
}

}  // namespace twinkle::cache
