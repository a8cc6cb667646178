#include "project/release.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace twinkle::project {
namespace {

constexpr std::size_t longest_release = 200;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z');
}

// Reads one release from left to right, in lower case.
class ReleaseParser {
public:
    explicit ReleaseParser(std::string_view text) : rest_(text) {}

    std::optional<Release> parse() {
        Release release;
        take("v");
        if (!numbers(release)) {
            return std::nullopt;
        }
        pre(release);
        post(release);
        dev(release);
        if (!local(release) || !rest_.empty() || failed_) {
            return std::nullopt;
        }
        return release;
    }

private:
    bool take(std::string_view prefix) {
        const bool there = rest_.starts_with(prefix);
        rest_.remove_prefix(there ? prefix.size() : 0);
        return there;
    }

    std::optional<std::uint64_t> number() {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        failed_ = failed_ || error == std::errc::result_out_of_range;
        if (error != std::errc()) {
            return std::nullopt;
        }
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }

    bool numbers(Release& release) {
        auto first = number();
        if (first && take("!")) {
            release.epoch = *first;
            first = number();
        }
        if (!first) {
            return false;
        }
        release.numbers.push_back(*first);
        while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
            rest_.remove_prefix(1);
            release.numbers.push_back(number().value_or(0));
        }
        return true;
    }

    // "[sep] word [sep] [number]", a missing number is 0. Takes nothing if the word is not there.
    std::optional<std::uint64_t> labelled(std::initializer_list<std::string_view> words) {
        const std::string_view before = rest_;
        separator();
        for (const std::string_view word : words) {
            if (take(word)) {
                const std::string_view after = rest_;
                separator();
                if (const auto value = number()) {
                    return value;
                }
                rest_ = after;
                return 0;
            }
        }
        rest_ = before;
        return std::nullopt;
    }

    void separator() {
        if (!rest_.empty() && std::string_view("-_.").find(rest_[0]) != std::string_view::npos) {
            rest_.remove_prefix(1);
        }
    }

    void pre(Release& release) {
        if (const auto alpha = labelled({"alpha", "a"})) {
            release.pre = {'a', *alpha};
        } else if (const auto beta = labelled({"beta", "b"})) {
            release.pre = {'b', *beta};
        } else if (const auto candidate = labelled({"preview", "pre", "rc", "c"})) {
            release.pre = {'r', *candidate};
        }
    }

    void post(Release& release) {
        if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {
            rest_.remove_prefix(1);
            release.post = number();
        } else {
            release.post = labelled({"post", "rev", "r"});
        }
    }

    void dev(Release& release) { release.dev = labelled({"dev"}); }

    bool local(Release& release) {
        if (!take("+")) {
            return true;
        }
        while (true) {
            const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_word);
            const auto size = static_cast<std::size_t>(end - rest_.begin());
            if (size == 0) {
                return false;
            }
            release.local.emplace_back(rest_.substr(0, size));
            rest_.remove_prefix(size);
            if (rest_.empty()) {
                return true;
            }
            const std::size_t before = rest_.size();
            separator();
            if (rest_.size() == before) {
                return false;
            }
        }
    }

    std::string_view rest_;
    bool failed_ = false;
};

bool is_number(std::string_view text) {
    return std::all_of(text.begin(), text.end(), is_digit);
}

std::string_view without_zeros(std::string_view digits) {
    const auto first = digits.find_first_not_of('0');
    return first == std::string_view::npos ? digits.substr(digits.size() - 1)
                                           : digits.substr(first);
}

// Numbers by value and after words, which are compared as text.
std::strong_ordering compare_part(std::string_view a, std::string_view b) {
    if (is_number(a) != is_number(b)) {
        return is_number(a) ? std::strong_ordering::greater : std::strong_ordering::less;
    }
    if (!is_number(a)) {
        return a <=> b;
    }
    a = without_zeros(a);
    b = without_zeros(b);
    return a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
}

std::strong_ordering compare_numbers(const Release& a, const Release& b) {
    const std::size_t size = std::max(a.numbers.size(), b.numbers.size());
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t of_a = i < a.numbers.size() ? a.numbers[i] : 0;
        const std::uint64_t of_b = i < b.numbers.size() ? b.numbers[i] : 0;
        if (of_a != of_b) {
            return of_a <=> of_b;
        }
    }
    return std::strong_ordering::equal;
}

// 1.0.dev1 < 1.0a1.dev1 < 1.0a1 < 1.0a1.post1 < 1.0 < 1.0.post1.dev1 < 1.0.post1
auto stage(const Release& release) {
    const int kind = release.pre ? 1 : !release.post && release.dev ? 0 : 2;
    return std::make_tuple(kind, release.pre.value_or(Release::Pre{}), release.post.has_value(),
                           release.post.value_or(0), !release.dev, release.dev.value_or(0));
}

}  // namespace

std::optional<Release> parse_release(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    if (text.empty() || text.size() > longest_release) {
        return std::nullopt;
    }
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    auto release = ReleaseParser(lower).parse();
    if (release) {
        release->spelled = text;
    }
    return release;
}

std::strong_ordering compare_public(const Release& a, const Release& b) {
    if (a.epoch != b.epoch) {
        return a.epoch <=> b.epoch;
    }
    const auto numbers = compare_numbers(a, b);
    return numbers != 0 ? numbers : stage(a) <=> stage(b);
}

std::strong_ordering compare(const Release& a, const Release& b) {
    const auto order = compare_public(a, b);
    if (order != 0) {
        return order;
    }
    for (std::size_t i = 0; i < std::min(a.local.size(), b.local.size()); ++i) {
        if (const auto part = compare_part(a.local[i], b.local[i]); part != 0) {
            return part;
        }
    }
    return a.local.size() <=> b.local.size();
}

}  // namespace twinkle::project
