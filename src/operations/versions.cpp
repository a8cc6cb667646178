#include "operations/versions.h"

#include "operations/kernel_states.h"
#include "operations/offered_kernel.h"

namespace twinkle::operations {
namespace {

std::vector<KernelState> states_of(Context& context, const project::KernelSpec& spec) {
    std::vector states{find_state(context, spec)};
    if (!spec.pin.empty()) {
        return states;
    }
    // The one that was found is the newest.
    const KernelState newest = states.front();
    for (auto at = newest.versions.rbegin(); at != newest.versions.rend(); ++at) {
        if (at->number != newest.version()) {
            states.push_back(newest);
            states.back().ref = at->ref();
            states.back().commit = at->commit;
        }
    }
    return states;
}

}  // namespace

std::vector<VersionListing> list_versions(Context& context, const project::KernelSpec& spec,
                                          const target::Target& target) {
    if (const auto folder = local_copy(context, spec)) {
        return {{spec.repo_id, std::nullopt, "", "", kernel::list_variants(*folder, target)}};
    }
    const auto states = states_of(context, spec);
    std::vector<KernelHome> homes;
    for (const auto& state : states) {
        homes.push_back({state.home(), state.commit});
    }
    const auto offers = read_offers(context, homes, WithMetadata::none);
    std::vector<VersionListing> listings;
    for (std::size_t i = 0; i < states.size(); ++i) {
        for (const auto& warning : offers[i].warnings) {
            context.listener().warn(warning);
        }
        listings.push_back(
            {states[i].home(), states[i].version(), states[i].ref, states[i].commit,
             kernel::rank_variants(as_offered_variants(context, offers[i]), target)});
    }
    return listings;
}

std::string fitting_version_hint(const std::vector<VersionListing>& listings) {
    for (const auto& listing : listings) {
        if (listing.commit.empty()) {
            continue;  // a folder is not what the Hub has
        }
        for (const auto& choice : listing.variants) {
            if (choice.accepted || choice.for_cpu) {
                const auto name = listing.version ? "version " + std::to_string(*listing.version)
                                                  : "revision " + listing.ref;
                return name + " of " + listing.repo_id + " has a build for it: " + choice.name;
            }
        }
    }
    return {};
}

}  // namespace twinkle::operations
