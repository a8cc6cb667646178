#pragma once
// How a process wants marked models to be replayed, by its environment:
//
//   TWINKLE_GRAPHS=off                                 not at all
//   TWINKLE_GRAPHS=max_graphs=32,max_bytes=2000000000  other limits, for each model
//   TWINKLE_GRAPHS=join=1                              linear layers are joined
//   TWINKLE_GRAPHS_STATISTICS=1                        decisions and sums on stderr

#include "twinkle/graphed_model.h"

#include <string>

namespace twinkle::runtime {

struct ReplaySettings {
    bool on = true;
    bool statistics = false;
    // Joined layers read copies of weights: model_state.h says which writes stay unseen.
    GraphOptions limits{.join = false};
};

// Throws Error(malformed) for a text that says none of the above.
ReplaySettings parse_replay_settings(const std::string& graphs, const std::string& statistics);
// Returns those of this process, read once; what is malformed is said on stderr, and switches
// replays off.
const ReplaySettings& replay_settings();

// Serves processes that measure or compare models themselves.
void leave_graphs_off();

}  // namespace twinkle::runtime
