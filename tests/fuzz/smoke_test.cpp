// A short run of every fuzz target in the normal tests: all seeds, with some hundred mutations of
// each.
#include <random>

#include "catch.h"
#include "json_mutator.h"
#include "targets.h"
#include "world.h"

using namespace twinkle::fuzz;

namespace {

// Flips, cuts, repeats and overwrites, as fuzzers do.
std::string mutate_bytes(std::string_view bytes, std::mt19937& random) {
    std::string changed(bytes);
    if (changed.empty()) {
        return std::string(1, static_cast<char>(random()));
    }
    for (auto count = 1 + random() % 3; count > 0 && !changed.empty(); --count) {
        const std::size_t at = random() % changed.size();
        switch (random() % 5) {
            case 0: changed[at] = static_cast<char>(random()); break;
            case 1: changed[at] = static_cast<char>(changed[at] ^ 1 << random() % 8); break;
            case 2: changed.resize(at); break;
            case 3: changed.insert(at, changed.substr(at, 1 + random() % 8)); break;
            default: changed.erase(at, 1 + random() % 4);
        }
    }
    return changed;
}

void run(const char* target, void (*function)(std::string_view), int changes, bool json) {
    std::mt19937 random(4711);
    const auto mutate = [&](std::string_view bytes) { return mutate_bytes(bytes, random); };
    for (const auto& seed : world().seeds.at(target)) {
        function(seed);
        for (int i = 0; i < changes; ++i) {
            function(json && i % 4 != 0 ? mutate_json(seed, random, mutate) : mutate(seed));
        }
    }
}

}  // namespace

TEST_CASE("changed inputs neither end the program nor are accepted") {
    run("bundle", fuzz_bundle, 100, true);
    run("certificate", fuzz_certificate, 200, false);
    run("checkpoint", fuzz_checkpoint, 300, false);
    run("timestamp", fuzz_timestamp, 100, false);
    run("trusted_root", fuzz_trusted_root, 150, true);
    SUCCEED();
}
