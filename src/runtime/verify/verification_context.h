#pragma once
// The inputs of a verification: what to compare with, on which values, within which limits.

#include "runtime/model/inputs.h"
#include "runtime/trial/sandbox.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/size_variants.h"
#include "runtime/verify/timing.h"

#include <torch/script.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

// The calls of a site in groups, by the elements of one of their inputs: each group is judged and
// measured by itself.
struct SizeGroups {
    std::size_t input = 0;
    std::vector<std::int64_t> bounds;  // ascending; a call belongs to the first that is not less
    std::set<std::size_t> timed;       // groups to measure, by their first call
    bool always = false;               // the first of them even if there is no time left
    std::vector<std::string> keys{};   // of groups: equal where calls of other sites are the same
};

// Another candidate of a site than the one in the model that is judged, made in a copy of it.
struct OtherCandidate {
    std::string site;
    torch::jit::Module module;
};

struct VerificationContext {
    std::filesystem::path original;
    std::string original_name{};  // in an archive of several models
    Inputs inputs;                // in the dtype below, if there is one
    // Other sizes of the inputs to compare in, where the original accepts them.
    std::vector<SizeVariant> sizes = {};
    double tolerance = 1;  // how many times what may be an error is allowed
    // Sites that compute with fewer bits: any error but nonsense is right, in the Euclidean norm.
    std::set<std::string> coarser = {};
    // With such sites: the error that the whole model may have, and the share of rows of its
    // results whose largest value must be in place.
    std::optional<double> max_error = std::nullopt;
    std::optional<double> agreement = std::nullopt;
    // The dtype that the original was converted to before it was kernelized.
    std::optional<at::ScalarType> dtype = std::nullopt;
    // Where everything runs; none: on the CPU.
    std::optional<at::Device> device = std::nullopt;
    SandboxLimits limits;
    bool frozen = false;     // the whole model is judged, and measured, as it is frozen
    bool gradients = false;  // compare them too: the model is to be trained
    std::optional<Sampling> sampling = std::nullopt;  // none: nothing is measured
    bool compares = true;  // false: values were right before, and sizes are measured alone
    // Sites, by the names that they are judged by, whose sizes are judged apart. All of them
    // together are measured for so long, about: the first of them always.
    std::map<std::string, SizeGroups> by_size = {};
    // Judged beside the model's sites, by a name that is given in the place of theirs.
    std::map<std::string, OtherCandidate> others = {};
    std::set<std::string> apart = {};  // of these, each is measured alone, not beside its likes
    std::optional<std::chrono::duration<double>> measuring = std::nullopt;
    CaptureWork capture = {};  // of sites that are measured; empty: each run is launched
    bool steps = false;        // measures training steps (forward and backward), not only forward
    std::optional<int> threads = std::nullopt;  // LibTorch's, in the child; none: its own choice
    // Turns what these sites compute into calls, in a copy of the original that has no calls there
    // yet; empty: nothing to do.
    std::function<void(torch::jit::Module& model, const std::vector<std::string>& sites)> prepare{};
    // Called in the parent as sites are taken up: how many are done, how many there are, which is
    // next.
    std::function<void(std::size_t done, std::size_t total, const std::string& site)> observer;
};

}  // namespace twinkle::runtime
