#include "runtime/trace/run_splits.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

using Labels = std::span<const TraceLabel>;

bool repeats(Labels labels, std::size_t length) {
    return labels.size() % length == 0 &&
           std::equal(labels.begin() + static_cast<std::ptrdiff_t>(length), labels.end(),
                      labels.begin());
}

RunSplit equal_parts(Labels labels, std::size_t length) {
    RunSplit parts;
    for (std::size_t begin = 0; begin < labels.size(); begin += length) {
        parts.push_back({begin, length});
    }
    return parts;
}

// Starts a new part wherever `begins` says so.
template <class Begins>
RunSplit parts_where(Labels labels, Begins begins) {
    RunSplit parts;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (parts.empty() || begins(i)) {
            parts.push_back({i, 0});
        }
        ++parts.back().count;
    }
    return parts;
}

RunSplit parts_of_word(Labels labels, Labels word) {
    auto next = word.begin();
    return parts_where(labels, [&](std::size_t i) {
        const auto found = std::find(next, word.end(), labels[i]);
        const bool begins = found == word.end();
        const auto at = begins ? std::find(word.begin(), word.end(), labels[i]) : found;
        next = at == word.end() ? word.begin() : at + 1;
        return begins;
    });
}

}  // namespace

Labels word_of(Labels labels) {
    std::size_t length = 1;
    while (length < labels.size() && !repeats(labels, length)) {
        ++length;
    }
    return labels.first(std::min(length, labels.size()));
}

std::vector<RunSplit> splits_of(Labels labels, Labels word) {
    std::vector<RunSplit> splits;
    const auto add = [&](RunSplit split) {
        if (std::find(splits.begin(), splits.end(), split) == splits.end()) {
            splits.push_back(std::move(split));
        }
    };
    for (std::size_t length = word_of(labels).size(); length <= labels.size(); ++length) {
        if (repeats(labels, length)) {
            add(equal_parts(labels, length));
        }
    }
    add(parts_of_word(labels, word));
    add(parts_where(labels, [&](std::size_t i) { return labels[i] == labels[0]; }));
    // Nodes that several calls share are in the first of them only.
    std::size_t begin = 0;
    add(parts_where(labels, [&](std::size_t i) {
        const auto first = labels.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto here = labels.begin() + static_cast<std::ptrdiff_t>(i);
        const bool again = std::find(first, here, labels[i]) != here;
        begin = again ? i : begin;
        return again;
    }));
    return splits;
}

}  // namespace twinkle::runtime
