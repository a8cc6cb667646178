#include "runtime/replay/captured_work.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace twinkle::runtime {

namespace {

using Work = std::function<void()>;

constexpr double shortest_replay_us = 500;  // a hundred launches of a graph
constexpr double most_times = 32;

// The run goes first, then its lane, then the tensors that it reads.
struct Captured {
    Work work;
    std::shared_ptr<GraphLane> lane;
    std::unique_ptr<CapturedRun> run;
};

double microseconds(const Work& work, GraphLane& lane) {
    const auto start = std::chrono::steady_clock::now();
    work();
    lane.wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

std::size_t times_in_graph(const Work& work, GraphLane& lane) {
    microseconds(work, lane);  // the first run may load and compile
    const double once = microseconds(work, lane);
    return static_cast<std::size_t>(
        std::clamp(std::ceil(shortest_replay_us / std::max(once, 1e-3)), 1.0, most_times));
}

Recipe recipe_of(const Work& work, std::size_t times) {
    Recipe recipe;
    recipe.prepare = [] {};
    recipe.run = [work, times] {
        for (std::size_t i = 0; i < times; ++i) {
            work();
        }
        return c10::IValue();
    };
    recipe.warmed = recipe.replayed = [](const c10::IValue&) {};
    return recipe;
}

std::shared_ptr<GraphLane> open_lane(const std::function<FoundBackend()>& find_backend,
                                     at::Device device) {
    const FoundBackend found = find_backend();
    if (found.backend == nullptr) {
        throw std::runtime_error(found.why_none);
    }
    return found.backend->lane(device);
}

}  // namespace

CaptureWork work_capturer(const std::function<FoundBackend()>& find_backend, at::Device device) {
    return [find_backend, device, lane = std::shared_ptr<GraphLane>()](const Work& work,
                                                                       std::size_t given) mutable {
        if (!lane) {
            lane = open_lane(find_backend, device);
        }
        const std::size_t times = given > 0 ? given : times_in_graph(work, *lane);
        const auto captured = std::make_shared<const Captured>(
            Captured{work, lane, lane->capture(recipe_of(work, times))});
        return RepeatedWork{[captured] {
                                captured->lane->enter();
                                captured->run->replay();
                                captured->lane->leave();
                            },
                            times};
    };
}

}  // namespace twinkle::runtime
