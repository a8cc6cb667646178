#include "runtime/replay/replay_settings.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace twinkle::runtime {

namespace {

std::atomic<bool> left_off{false};

[[noreturn]] void refuse(const std::string& word) {
    throw Error(
        ErrorCode::malformed,
        {.what = "TWINKLE_GRAPHS says nothing known",
         .where = base::printable(word),
         .why = {},
         .hint = "off, on, or settings for each model: max_graphs=32,max_bytes=2000000000,join=1"});
}

std::size_t number(std::string_view text, const std::string& word) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        refuse(word);
    }
    return value;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

ReplaySettings settings_of_process() {
    try {
        return parse_replay_settings(variable("TWINKLE_GRAPHS"),
                                     variable("TWINKLE_GRAPHS_STATISTICS"));
    } catch (const Error& error) {
        std::fprintf(stderr, "twinkle: %s\n", Error::format(error.details()).c_str());
        return {.on = false, .statistics = false, .limits = {}};
    }
}

}  // namespace

ReplaySettings parse_replay_settings(const std::string& graphs, const std::string& statistics) {
    ReplaySettings settings;
    settings.statistics = !statistics.empty() && statistics != "0";
    for (const std::string& word : base::split(graphs, ',')) {
        const std::string_view text = word;
        constexpr std::string_view max_graphs = "max_graphs=", max_bytes = "max_bytes=",
                                   join = "join=";
        if (text == "off" || text == "0") {
            settings.on = false;
        } else if (text.starts_with(max_graphs)) {
            settings.limits.max_graphs = number(text.substr(max_graphs.size()), word);
        } else if (text.starts_with(max_bytes)) {
            settings.limits.max_bytes = number(text.substr(max_bytes.size()), word);
        } else if (text.starts_with(join)) {
            settings.limits.join = number(text.substr(join.size()), word) != 0;
        } else if (!text.empty() && text != "on" && text != "1") {
            refuse(word);
        }
    }
    return settings;
}

const ReplaySettings& replay_settings() {
    static const ReplaySettings of_process = settings_of_process();
    static const ReplaySettings none{.on = false, .statistics = false, .limits = {}};
    return left_off ? none : of_process;
}

void leave_graphs_off() {
    left_off = true;
}

}  // namespace twinkle::runtime
