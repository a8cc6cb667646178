#include "tuning/choice_by_size.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

namespace twinkle::tuning {
namespace {

int exponent_of(std::int64_t rows) {
    return rows <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(rows - 1));
}

// Those among the sizes that are nearest, the smaller first.
std::vector<const MeasuredSize*> nearest(const std::vector<MeasuredSize>& sizes, int exponent,
                                         bool measured) {
    std::vector<const MeasuredSize*> found;
    const auto distance = [&](const MeasuredSize& size) {
        return std::abs(exponent_of(size.rows) - exponent);
    };
    for (const MeasuredSize& size : sizes) {
        if (measured && size.times.empty()) {
            continue;
        }
        if (!found.empty() && distance(size) < distance(*found.front())) {
            found.clear();
        }
        if (found.empty() || distance(size) == distance(*found.front())) {
            found.push_back(&size);
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto* one, const auto* other) { return one->rows < other->rows; });
    return found;
}

auto fastest_of(const std::vector<std::optional<Times>>& times) {
    return std::min_element(times.begin(), times.end(), [](const auto& one, const auto& other) {
        return one && (!other || one->median < other->median);
    });
}

// The candidates that may serve calls of this size, in their order, the original first: those that
// are not surely slower than the fastest. A kernel beside the original must be as fast by its
// median, too: noise alone is no reason to leave the original.
std::vector<std::size_t> winners(const std::vector<MeasuredSize>& sizes, int exponent) {
    const auto measured = nearest(sizes, exponent, true);
    if (measured.empty()) {
        return {0};
    }
    auto compared = nearest(sizes, exponent, false);
    compared.push_back(measured.front());
    auto times = measured.front()->times;
    for (const MeasuredSize* size : compared) {
        for (std::size_t i = 0; i < std::min(times.size(), size->banned.size()); ++i) {
            times[i] = size->banned[i] ? std::nullopt : times[i];
        }
    }
    const std::ptrdiff_t first = first_not_slower(times);
    if (first < 0) {
        return {0};
    }
    const Times fastest = **fastest_of(times);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i] && !surely_slower(*times[i], fastest) &&
            (first > 0 || is_as_fast(*times[i], *times[0]))) {
            found.push_back(i);
        }
    }
    return found;
}

}  // namespace

std::ptrdiff_t first_not_slower(const std::vector<std::optional<Times>>& in_order) {
    const auto fastest = fastest_of(in_order);
    if (fastest == in_order.end() || !*fastest) {
        return -1;
    }
    const auto first = std::find_if(in_order.begin(), in_order.end(), [&](const auto& one) {
        return one && !surely_slower(*one, **fastest);
    });
    return first - in_order.begin();
}

std::vector<SizePart> choose_by_size(const std::vector<MeasuredSize>& sizes) {
    int largest = 0;
    for (const MeasuredSize& size : sizes) {
        largest = std::max(largest, exponent_of(size.rows));
    }
    std::vector<SizePart> parts;
    std::vector<std::size_t> shared;  // by all sizes of the last part
    for (int exponent = 0; exponent <= largest; ++exponent) {
        const auto here = winners(sizes, exponent);
        std::vector<std::size_t> both;
        std::copy_if(shared.begin(), shared.end(), std::back_inserter(both), [&](std::size_t one) {
            return std::find(here.begin(), here.end(), one) != here.end();
        });
        if (both.empty()) {  // the fewest parts: each is as long as it can be
            parts.emplace_back();
            both = here;
        }
        shared = both;
        parts.back() = {shared.front(), std::int64_t{1} << std::min(exponent, 62)};
    }
    return parts;
}

}  // namespace twinkle::tuning
