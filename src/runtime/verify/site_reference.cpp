#include "runtime/verify/site_reference.h"

#include "runtime/verify/double_reference.h"
#include "runtime/verify/originals.h"
#include "runtime/verify/site_module.h"

namespace twinkle::runtime {

SiteReference::SiteReference(const VerificationContext& context,
                             const std::vector<std::string>& sites,
                             const torch::jit::Module& kernelized,
                             const torch::jit::Module& original)
    : compares_(context.compares), model_(compares_ ? open_reference(context, sites) : original) {
    if (compares_) {
        rewrite(inlined_sites(kernelized, model_, sites));
    }
}

torch::jit::Module SiteReference::of(const std::string& site) const {
    if (!compares_) {
        return model_;
    }
    const auto inlined = inlined_.find(site);
    return in_double(inlined != inlined_.end() ? inlined->second : site_of(model_, {}, site));
}

// Cuts out inlined sites first: rewriting to double precision puts other nodes in the place of some
// that their regions name.
void SiteReference::rewrite(const InlinedSites& sites) {
    std::vector<torch::jit::Module> all{model_};
    for (const auto& one : sites) {
        all.push_back(site_of(model_, sites, one.first));
        inlined_.emplace(one.first, all.back());
    }
    compute_in_double(all);
}

}  // namespace twinkle::runtime
