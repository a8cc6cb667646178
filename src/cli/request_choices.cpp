#include "cli/request_choices.h"

#include <algorithm>

#include "base/text.h"
#include "project/fallback_names.h"
#include "project/modes.h"
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

const std::vector<std::string>& dtype_names() {
    static const std::vector<std::string> names = {"bfloat16", "float16", "float32"};
    return names;
}

std::string checked_mode(const std::string& text) {
    const auto mode = project::parse_mode(text);
    if (!mode) {
        cannot_be("--mode", text, project::mode_names());
    }
    return *mode;
}

std::vector<std::string> checked_fallbacks(const std::string& text) {
    if (std::ranges::count(project::fallback_sets, text) != 0) {
        return {text};
    }
    auto words = base::split(text, ',');
    for (const auto& word : words) {
        if (std::ranges::count(project::fallback_names, word) == 0) {
            cannot_be("--fallback", word, project::fallback_words());
        }
    }
    return words;
}

std::string checked_dtype(const std::string& text) {
    if (std::ranges::count(dtype_names(), text) == 0) {
        cannot_be("--dtype", text, dtype_names());
    }
    return text;
}

std::string checked_device(const std::string& text) {
    const auto colon = text.find(':');
    const auto index = colon == std::string::npos ? "0" : text.substr(colon + 1);
    const bool number = !index.empty() && index.size() <= 3 &&
                        index.find_first_not_of("0123456789") == std::string::npos &&
                        std::stoi(index) < 128;  // LibTorch's are 8 bits, with a sign
    if (!number || !target::parse_device(text.substr(0, colon))) {
        throw Error(ErrorCode::malformed, {.what = "--device cannot be '" + text + "'",
                                           .where = {},
                                           .why = "the devices are " + target::device_names() +
                                                  ", also with a number: cuda:1",
                                           .hint = {}});
    }
    return text;
}

void add_choice_of_sites(protocol::Request& request, const Arguments& arguments) {
    request.allow_io = arguments.flag("allow-io");
    request.only = arguments.list("only");
    request.exclude = arguments.list("exclude");
    if (const auto mode = arguments.text("mode")) {
        request.mode = checked_mode(*mode);
    }
    if (const auto device = arguments.text("device")) {
        request.device = checked_device(*device);
    }
}

}  // namespace twinkle::cli
