#include "runtime/selection/modes.h"

#include "base/text.h"
#include "project/modes.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

std::string normalized_mode(std::string_view mode) {
    if (const auto known = project::parse_mode(mode)) {
        return *known;
    }
    throw Error(ErrorCode::malformed,
                {.what = "unknown mode " + base::printable(mode),
                 .where = "",
                 .why = "a mode is inference or training, with or without +compile",
                 .hint = ""});
}

std::vector<std::string> search_order(std::string_view mode) {
    if (mode == "inference") {
        return {"inference", "inference+compile", "training", "training+compile", "fallback"};
    }
    if (mode == "training") {
        return {"training", "training+compile", "fallback"};
    }
    if (mode == "inference+compile") {
        return {"inference+compile", "training+compile", "fallback"};
    }
    return {"training+compile", "fallback"};
}

}  // namespace twinkle::runtime
