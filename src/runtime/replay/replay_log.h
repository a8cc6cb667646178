#pragma once
// What a process says of the replays of marked models (TWINKLE_GRAPHS_STATISTICS).

#include "runtime/model/nested_values.h"
#include "twinkle/graphed_model.h"

#include <string>

namespace twinkle::runtime {

void log_replays(const std::string& line);
std::string shapes_text(const Values& inputs);  // "Long[1, 16], Float[2]"
std::string statistics_text(const GraphStatistics& statistics);
void add_statistics(GraphStatistics& sum, const GraphStatistics& more);

}  // namespace twinkle::runtime
