#include "tuning/comparison.h"

#include <array>

namespace twinkle::tuning {
namespace {

constexpr std::array names{std::pair(Comparison::at_most, std::string_view("at_most")),
                           std::pair(Comparison::at_least, std::string_view("at_least")),
                           std::pair(Comparison::equals, std::string_view("equals")),
                           std::pair(Comparison::differs, std::string_view("differs")),
                           std::pair(Comparison::multiple_of, std::string_view("multiple_of"))};

}  // namespace

std::optional<Comparison> comparison_named(std::string_view name) {
    for (const auto& [comparison, known] : names) {
        if (known == name) {
            return comparison;
        }
    }
    return std::nullopt;
}

std::string comparison_names() {
    std::string all;
    for (const auto& [comparison, name] : names) {
        all.append(all.empty() ? "" : ", ").append(name);
    }
    return all;
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
