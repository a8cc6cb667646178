#pragma once
// The configurations of a candidate, as the tuning.toml of its kernel's build declares them for the
// operators that its code calls.

#include "runtime/plan/site.h"
#include "worker/declarations.h"
#include "worker/sized_site.h"

#include <torch/script.h>

#include <set>
#include <string>
#include <utility>

namespace twinkle::worker {

class Configurations {
public:
    explicit Configurations(RunMode mode) : mode_(mode) {}

    // Whether a candidate's configurations are among the site's candidates. Only what is measured
    // for inference has any: with gradients operators are called by code of autograd.
    bool are_known(const runtime::Site& site, const runtime::Choice& choice) const;
    // Notes that the candidate that the site has now has no configurations.
    void add_none(const runtime::Site& site);
    // Adds them, each with the sizes that it is allowed in. What the operators do without one is
    // none of them. Nothing where nothing is declared. `threads`: that calls are measured with.
    void add(const torch::jit::Module& model, runtime::Site& site, SizedSite& sized, int threads);

private:
    RunMode mode_;
    std::set<std::pair<std::string, const void*>> known_;  // sites, and candidates (Choice::id)
    Declarations declarations_;
};

}  // namespace twinkle::worker
