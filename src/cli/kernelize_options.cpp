#include "cli/kernelize_options.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "target/backend.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

[[noreturn]] void cannot_be(const std::string& option, const std::string& value,
                            const std::vector<std::string>& known) {
    const auto near = base::nearest(value, known);
    throw Error(ErrorCode::malformed, {.what = option + " cannot be '" + value + "'",
                                       .where = {},
                                       .why = "it is one of " + base::join(known, ", "),
                                       .hint = near ? "did you mean '" + *near + "'?" : ""});
}

}  // namespace

std::string normalized_mode(const std::string& text) {
    static constexpr std::array<std::array<const char*, 2>, 7> modes = {{
        {"inference", "inference"},
        {"training", "training"},
        {"train", "training"},
        {"compile", "inference+compile"},
        {"inference+compile", "inference+compile"},
        {"training+compile", "training+compile"},
        {"train+compile", "training+compile"},
    }};
    for (const auto& [written, meant] : modes) {
        if (text == written) {
            return meant;
        }
    }
    cannot_be("--mode", text, {"inference", "training", "inference+compile", "training+compile"});
}

std::vector<std::string> fallback_words(const std::string& text) {
    const std::vector<std::string> sets = {"true", "all", "false"};
    if (std::find(sets.begin(), sets.end(), text) != sets.end()) {
        return {text};
    }
    const std::vector<std::string> names = {
        "no-layer",           "no-device",      "no-compatible-properties",
        "no-compatible-mode", "cannot-compile", "cannot-load"};
    auto words = base::split(text, ',');
    for (const auto& word : words) {
        if (std::find(names.begin(), names.end(), word) == names.end()) {
            auto known = sets;
            known.insert(known.end(), names.begin(), names.end());
            cannot_be("--fallback", word, known);
        }
    }
    return words;
}

std::string checked_device(const std::string& text) {
    const auto colon = text.find(':');
    const auto index = colon == std::string::npos ? "0" : text.substr(colon + 1);
    const bool number = !index.empty() && index.size() <= 3 &&
                        index.find_first_not_of("0123456789") == std::string::npos;
    if (!number || !target::parse_device(text.substr(0, colon))) {
        throw Error(ErrorCode::malformed, {.what = "--device cannot be '" + text + "'",
                                           .where = {},
                                           .why = "the devices are " + target::device_names() +
                                                  ", also with a number: cuda:1",
                                           .hint = {}});
    }
    return text;
}

}  // namespace twinkle::cli
