#pragma once
// What LibTorch runs of a model's code while it only reads the model: __setstate__ of its objects,
// __getstate__ when they are saved again, and the expressions of defaults and constants.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct LoadTimeCode {
    bool runs = false;  // there is any that could take time
    // What of it is not allowed: "__setstate__ of pkg.Table calls aten::save, which writes a file".
    std::optional<std::string> problem;
};

// A part of the code, as LibTorch would look for it.
struct SavedSource {
    std::string module;  // "__torch__.pkg.mod"
    std::string_view text;
};

// Reads the code with LibTorch's own parser, so that nothing is understood otherwise than it will
// be. Methods are followed by their names alone, whatever they are called on. Throws what the
// parser throws.
LoadTimeCode load_time_code(const std::vector<SavedSource>& code);

}  // namespace twinkle::runtime
