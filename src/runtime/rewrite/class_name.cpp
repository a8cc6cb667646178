#include "runtime/rewrite/class_name.h"

#include "base/text.h"

namespace twinkle::runtime {

std::string unmangled(std::string_view qualified_name) {
    std::vector<std::string> kept;
    for (std::string& part : base::split(qualified_name, '.')) {
        const bool first = kept.empty() && part == "__torch__";
        if (!first && !part.starts_with("___torch_mangle_")) {
            kept.push_back(std::move(part));
        }
    }
    return base::join(kept, ".");
}

}  // namespace twinkle::runtime
