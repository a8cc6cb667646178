#include "base/text.h"
#include "twinkle/error.h"
#include "twinkle/kernelize.h"

#include <array>

namespace twinkle {

namespace {

constexpr std::array<std::pair<Fallback, const char*>, 6> names = {{
    {Fallback::no_layer, "no-layer"},
    {Fallback::no_device, "no-device"},
    {Fallback::no_compatible_properties, "no-compatible-properties"},
    {Fallback::no_compatible_mode, "no-compatible-mode"},
    {Fallback::cannot_compile, "cannot-compile"},
    {Fallback::cannot_load, "cannot-load"},
}};

}  // namespace

const char* fallback_name(Fallback fallback) {
    for (const auto& [value, name] : names) {
        if (value == fallback) {
            return name;
        }
    }
    return "";
}

FallbackSet default_fallbacks() {
    FallbackSet set;
    for (const auto& [value, name] : names) {
        set.insert(value);
    }
    set.erase(Fallback::cannot_load);
    return set;
}

FallbackSet parse_fallbacks(const std::vector<std::string>& words) {
    FallbackSet set;
    for (const std::string& word : words) {
        const auto named = std::find_if(names.begin(), names.end(),
                                        [&](const auto& one) { return word == one.second; });
        if (word == "true") {
            set.merge(default_fallbacks());
        } else if (word == "all") {
            set.merge(default_fallbacks());
            set.insert(Fallback::cannot_load);
        } else if (named != names.end()) {
            set.insert(named->first);
        } else if (word != "false") {
            std::vector<std::string> known{"true", "all", "false"};
            for (const auto& [value, name] : names) {
                known.emplace_back(name);
            }
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
