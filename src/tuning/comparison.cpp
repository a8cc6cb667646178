#include "tuning/comparison.h"

#include <array>

namespace twinkle::tuning {
namespace {

struct Name {
    Comparison comparison;
    std::string_view name;
    std::string_view words;
};
constexpr std::array names{Name{Comparison::at_most, "at_most", "at most "},
                           Name{Comparison::at_least, "at_least", "at least "},
                           Name{Comparison::equals, "equals", ""},
                           Name{Comparison::differs, "differs", "other than "},
                           Name{Comparison::multiple_of, "multiple_of", "a multiple of "}};

}  // namespace

std::optional<Comparison> comparison_named(std::string_view name) {
    for (const Name& known : names) {
        if (known.name == name) {
            return known.comparison;
        }
    }
    return std::nullopt;
}

std::string comparison_names() {
    std::string all;
    for (const Name& known : names) {
        all.append(all.empty() ? "" : ", ").append(known.name);
    }
    return all;
}

std::string comparison_words(Comparison comparison) {
    for (const Name& known : names) {
        if (known.comparison == comparison) {
            return std::string(known.words);
        }
    }
    return "";
}

bool holds(const base::Json& value, Comparison comparison, const base::Json& bound) {
    if (comparison == Comparison::equals || comparison == Comparison::differs) {
        return (value == bound) == (comparison == Comparison::equals);
    }
    if (!value.is_number_integer() || !bound.is_number_integer()) {
        return false;
    }
    const auto have = value.get<std::int64_t>();
    const auto wanted = bound.get<std::int64_t>();
    switch (comparison) {
        case Comparison::at_most: return have <= wanted;
        case Comparison::at_least: return have >= wanted;
        default: return wanted > 0 && have % wanted == 0;
    }
}

}  // namespace twinkle::tuning
