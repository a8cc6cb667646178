#pragma once
// The configurations of a candidate, as the tuning.toml of its kernel's build declares them for the
// operators that its code calls.

#include "runtime/plan/site.h"
#include "worker/declarations.h"
#include "worker/sized_site.h"

#include <torch/script.h>

#include <utility>
#include <vector>

namespace twinkle::worker {

class Configurations {
public:
    // Of what the site has in this model, each with the sizes that it is allowed in. What the
    // operators do without one is none of them. Nothing where nothing is declared.
    std::vector<std::pair<runtime::Choice, std::vector<bool>>> of(const torch::jit::Module& model,
                                                                  const runtime::Site& site,
                                                                  const SizedSite& sized,
                                                                  int threads);

private:
    Declarations declarations_;
};

}  // namespace twinkle::worker
