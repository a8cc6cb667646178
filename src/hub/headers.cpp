#include "hub/headers.h"

#include "base/number.h"

#include <curl/curl.h>

#include <algorithm>

namespace twinkle::hub {
namespace {

constexpr std::string_view blank = " \t";
constexpr std::chrono::seconds longest_wait{1 << 30};  // anything beyond is "never"

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return result;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(blank);
    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Cuts off the front of `text` up to `separator`, outside of quotes.
std::string_view take_until(std::string_view& text, char separator) {
    bool quoted = false;
    std::size_t end = 0;
    for (; end < text.size() && (quoted || text[end] != separator); ++end) {
        if (text[end] == '"') {
            quoted = !quoted;
        }
    }
    const auto taken = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    return trimmed(taken);
}

// name=value or name="value".
std::pair<std::string, std::string> parameter(std::string_view text) {
    const auto equal = text.find('=');
    if (equal == std::string_view::npos) {
        return {lower(trimmed(text)), ""};
    }
    auto value = trimmed(text.substr(equal + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
    }
    return {lower(trimmed(text.substr(0, equal))), std::string(value)};
}

// rel="prev next" has two relations.
bool has_relation(std::string_view relations, std::string_view wanted) {
    while (!relations.empty()) {
        if (lower(take_until(relations, ' ')) == wanted) {
            return true;
        }
    }
    return false;
}

}  // namespace

void Headers::add(std::string_view name, std::string_view value) {
    fields_.emplace_back(lower(trimmed(name)), trimmed(value));
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
    const std::string wanted = lower(name);
    const auto found = std::find_if(fields_.begin(), fields_.end(),
                                    [&](const auto& field) { return field.first == wanted; });
    return found == fields_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::optional<std::string> next_link(std::string_view link) {
    while (!link.empty()) {
        const auto open = link.find_first_not_of(" \t,");
        if (open == std::string_view::npos || link[open] != '<') {
            return std::nullopt;
        }
        const auto close = link.find('>', open);
        if (close == std::string_view::npos) {
            return std::nullopt;
        }
        const auto target = link.substr(open + 1, close - open - 1);
        link.remove_prefix(close + 1);
        auto parameters = take_until(link, ',');
        while (!parameters.empty()) {
            const auto [name, value] = parameter(take_until(parameters, ';'));
            if (name == "rel" && has_relation(value, "next")) {
                return std::string(target);
            }
        }
    }
    return std::nullopt;
}

std::optional<std::chrono::seconds> retry_after(std::string_view value,
                                                std::chrono::system_clock::time_point now) {
    value = trimmed(value);
    if (const auto seconds = base::parse_number<std::uint64_t>(value)) {
        return std::chrono::seconds(std::min<std::uint64_t>(*seconds, longest_wait.count()));
    }
    // A date has letters; anything else would have to be guessed.
    const std::string text(value);
    if (text.empty() || text.size() > 64 || text.find(':') == std::string::npos) {
        return std::nullopt;
    }
    const std::time_t date = curl_getdate(text.c_str(), nullptr);
    if (date == -1) {
        return std::nullopt;
    }
    // In seconds: a date in the far future overflows the clock's own unit.
    const auto wait = std::chrono::seconds(date) -
                      std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
    return std::clamp(wait, std::chrono::seconds(0), longest_wait);
}

std::optional<std::chrono::seconds> exhausted_for(std::string_view ratelimit) {
    while (!ratelimit.empty()) {
        auto policy = take_until(ratelimit, ',');
        take_until(policy, ';');  // its name
        std::optional<std::uint64_t> remaining, reset;
        while (!policy.empty()) {
            const auto [name, value] = parameter(take_until(policy, ';'));
            if (name == "r") {
                remaining = base::parse_number<std::uint64_t>(value);
            } else if (name == "t") {
                reset = base::parse_number<std::uint64_t>(value);
            }
        }
        if (remaining == std::uint64_t{0} && reset) {
            return std::chrono::seconds(std::min<std::uint64_t>(*reset, longest_wait.count()));
        }
    }
    return std::nullopt;
}

std::string plain_etag(std::string_view value) {
    value = trimmed(value);
    if (value.starts_with("W/")) {
        value.remove_prefix(2);
    }
    const auto first = value.find_first_not_of('"');
    return first == std::string_view::npos
               ? std::string()
               : std::string(value.substr(first, value.find_last_not_of('"') - first + 1));
}

std::optional<ContentRange> content_range(std::string_view value) {
    value = trimmed(value);
    if (!lower(value.substr(0, 6)).starts_with("bytes ")) {
        return std::nullopt;
    }
    value.remove_prefix(6);
    const auto first = base::parse_number<std::uint64_t>(take_until(value, '-'));
    const auto last = base::parse_number<std::uint64_t>(take_until(value, '/'));
    const auto total = base::parse_number<std::uint64_t>(trimmed(value));
    if (!first || !last || *last < *first || (!total && trimmed(value) != "*") ||
        (total && *last >= *total)) {
        return std::nullopt;
    }
    return ContentRange{*first, *last, total};
}

}  // namespace twinkle::hub
