#pragma once
// Which shapes of a model's inputs are replayed, as it was measured before the model was saved: it
// has that with it, beside its mark, so that no server measures it again.

#include "runtime/replay/marked_model.h"
#include "runtime/replay/replay_contest.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

class ReplayDecisions {
public:
    static constexpr std::size_t most = 1000;

    bool empty() const { return replayed_.empty(); }
    // Shapes as shapes_text() has them; none: to be measured where it is served.
    std::optional<bool> of(const std::string& shapes) const;
    void add(const std::string& shapes, bool replayed);

    // JSON on one line.
    std::string text() const;
    // Throws Error(malformed) for anything else, or more than `most`.
    static ReplayDecisions parse(std::string_view text);

private:
    std::map<std::string, bool> replayed_;
};

struct DecidedShape {
    std::string shapes;
    bool replayed = false;
    std::string why;     // not
    ContestTimes times;  // seconds; 0: they were not compared
};

// Replays runs of an unmarked model on these inputs, all arguments of forward(), beside plain ones.
// What cannot be captured is not replayed. std::runtime_error says why, if nothing can be captured
// here.
std::vector<DecidedShape> decide_replays(const torch::jit::Module& model,
                                         const std::vector<Values>& inputs,
                                         const ReplayDevice& device = {});

}  // namespace twinkle::runtime
