#include "base/text.h"
#include "project/fallback_names.h"
#include "twinkle/error.h"
#include "twinkle/kernelize.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace twinkle {

namespace {

const auto& names = project::fallback_names;

Fallback value(std::size_t place) {
    return static_cast<Fallback>(place);
}

}  // namespace

const char* fallback_name(Fallback fallback) {
    const auto place = static_cast<std::size_t>(fallback);
    return place < names.size() ? names[place].c_str() : "";
}

FallbackSet default_fallbacks() {
    FallbackSet set;
    for (std::size_t i = 0; i < names.size(); ++i) {
        set.insert(value(i));
    }
    set.erase(Fallback::cannot_load);
    return set;
}

FallbackSet parse_fallbacks(const std::vector<std::string>& words) {
    FallbackSet set;
    for (const std::string& word : words) {
        const auto named = std::find(names.begin(), names.end(), word);
        if (word == "true") {
            set.merge(default_fallbacks());
        } else if (word == "all") {
            set.merge(default_fallbacks());
            set.insert(Fallback::cannot_load);
        } else if (named != names.end()) {
            set.insert(value(static_cast<std::size_t>(named - names.begin())));
        } else if (word != "false") {
            const auto known = project::fallback_words();
            const auto near = base::nearest(word, known);
            throw Error(ErrorCode::malformed, {.what = "unknown fallback " + base::printable(word),
                                               .where = "",
                                               .why = "known are " + base::join(known, ", "),
                                               .hint = near ? "did you mean " + *near + "?" : ""});
        }
    }
    return set;
}

}  // namespace twinkle
