#pragma once
// The code of a model that LibTorch runs merely to read it: __setstate__ of its objects,
// __getstate__ when they are saved again, and the expressions of defaults and constants.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct LoadTimeCode {
    bool runs = false;  // some of it could take time
    // A forbidden use in it: "__setstate__ of pkg.Table calls aten::save, which writes a file".
    std::optional<std::string> problem;
};

// A part of the code, under the name by which LibTorch looks it up.
struct SavedSource {
    std::string module;  // "__torch__.pkg.mod"
    std::string_view text;
};

// Reads the code with LibTorch's own parser, so that it cannot be understood differently when it
// runs. Methods are followed by name alone, whatever they are called on. Throws what the parser
// throws.
LoadTimeCode load_time_code(const std::vector<SavedSource>& code);

}  // namespace twinkle::runtime
