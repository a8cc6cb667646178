#pragma once
// Standard base64 with padding, the encoding of kernel digests.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::base {

std::string to_base64(std::string_view bytes);

// None unless it is exactly what to_base64 writes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace twinkle::base
