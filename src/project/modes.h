#pragma once
// The modes that a layer can be registered for.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::project {

// "inference", "training" ("train"), each with "+compile"; "compile" = "inference+compile";
// "fallback". None: no such mode.
std::optional<std::string> parse_layer_mode(std::string_view text);

inline constexpr std::string_view layer_mode_names =
    "inference, training, inference+compile, training+compile, fallback";

}  // namespace twinkle::project
