#pragma once
// Finds the way of calling a function's substitute that gives the results of a region.

#include "runtime/proof/binding.h"
#include "runtime/proof/region_proof.h"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <utility>

namespace twinkle::runtime {

class BindingSearch {
public:
    // The most likely way among the right ones; the error says why there is none, or that the
    // recorded values do not tell which. A way found for one region is tried first for an equal
    // one.
    tl::expected<CallBinding, std::string> find(const Region& region,
                                                const Substitutes& substitutes,
                                                const std::vector<RegionProof::Values>& recorded);

private:
    std::map<std::pair<const Substitutes*, std::string>, CallBinding> known_;
};

}  // namespace twinkle::runtime
