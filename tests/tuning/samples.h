#pragma once
// Measurements that are made up, for a machine that is not there.

#include "tuning/entry.h"

#include <random>

namespace twinkle::test {

inline tuning::Environment an_environment(const std::string& model = "a CPU") {
    return tuning::Environment({{"device", "cpu"}, {"model", model}, {"threads", 4}});
}

inline Invocation an_invocation(std::int64_t rows = 128, const std::string& operation = "norm") {
    return {
        .operation = operation,
        .inputs = {{.dtype = "float32", .sizes = {rows, 256}, .layout = "dense", .alignment = 16},
                   {.dtype = "float"}}};
}

inline tuning::Entry an_entry(std::int64_t median, int threads = 128,
                              tuning::Role role = tuning::Role::other, std::int64_t runs = 10) {
    return {an_environment(),
            an_invocation(),
            {"a build", {{"threads", threads}}, role},
            {median - median / 100, median, median + median / 100, runs},
            {}};
}

// Any entry of few identities, so that many meet.
inline tuning::Entry random_entry(std::mt19937& random) {
    const auto pick = [&](int count) { return static_cast<int>(random() % count); };
    tuning::Entry entry = an_entry(1000 + pick(3) * 500, 128 << pick(3),
                                   static_cast<tuning::Role>(pick(3)), 5 + pick(3));
    entry.environment = an_environment(pick(2) == 0 ? "a CPU" : "another CPU");
    entry.invocation = an_invocation(128 << pick(2));
    entry.candidate.build = pick(2) == 0 ? "a build" : "a newer build";
    entry.problem = pick(6) == 0 ? "wrong values" : "";
    return entry;
}

}  // namespace twinkle::test
