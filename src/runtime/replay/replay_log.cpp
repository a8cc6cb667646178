#include "runtime/replay/replay_log.h"

#include "base/quantity.h"
#include "base/text.h"

#include <ATen/ATen.h>

#include <cstdio>

namespace twinkle::runtime {

namespace {

constexpr std::size_t most_shapes = 8;

std::string times(std::uint64_t count, const std::string& one) {
    return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace

void log_replays(const std::string& line) {
    std::fprintf(stderr, "twinkle: graphs: %s\n", base::printable(line).c_str());
}

std::string shapes_text(const Values& inputs) {
    std::string text;
    std::size_t shown = 0;
    for (const at::Tensor& tensor : tensors_of(inputs)) {
        if (++shown > most_shapes) {
            return text + ", …";
        }
        text += (text.empty() ? "" : ", ") + std::string(c10::toString(tensor.scalar_type())) + "[";
        for (std::int64_t i = 0; i < tensor.dim(); ++i) {
            text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
        }
        text += "]";
    }
    return text;
}

std::string statistics_text(const GraphStatistics& statistics) {
    std::string text =
        times(statistics.replays, "replay") + " and " + times(statistics.plain_runs, "plain run") +
        "; " + times(statistics.captures, "capture") + ", " + times(statistics.graphs, "graph") +
        " with " + base::human_bytes(statistics.bytes) + " now, " +
        times(statistics.evictions, "eviction");
    if (statistics.joined_layers > 0) {
        text += "; " + times(statistics.joined_layers, "linear layer") + " joined with others, " +
                base::human_bytes(statistics.joined_bytes) + " of copied weights";
    }
    for (const auto& [reason, count] : statistics.reasons) {
        text += "; " + std::to_string(count) + " × " + reason;
    }
    return text;
}

void add_statistics(GraphStatistics& sum, const GraphStatistics& more) {
    sum.replays += more.replays;
    sum.captures += more.captures;
    sum.plain_runs += more.plain_runs;
    sum.evictions += more.evictions;
    sum.graphs += more.graphs;
    sum.bytes += more.bytes;
    sum.joined_layers += more.joined_layers;
    sum.joined_bytes += more.joined_bytes;
    for (const auto& [reason, count] : more.reasons) {
        sum.reasons[reason] += count;
    }
}

}  // namespace twinkle::runtime
