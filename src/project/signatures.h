#pragma once
// Whether the builds of Hub kernels must be signed by a trusted publisher: what the command line
// says, else the manifest.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/signature.h"
#include "project/manifest.h"
#include "sigstore/trusted_root.h"

namespace twinkle::project {

struct SignatureOptions {
    std::optional<kernel::SignaturePolicy> policy;
    std::optional<std::filesystem::path> trusted_root;
};

class SignatureRules {
public:
    // `otherwise`: where neither the options nor the manifest (which may be missing) say anything.
    SignatureRules(const SignatureOptions& options, const Manifest* manifest,
                   kernel::SignaturePolicy otherwise);

    kernel::SignaturePolicy policy() const { return policy_; }
    bool wanted() const { return policy_ != kernel::SignaturePolicy::off; }
    // Read at its first use. Throws Error(malformed | not_found).
    const sigstore::TrustedRoot& root() const;

    // Checks a build. Not verified: Error(verification) where signatures are required, else one
    // more line in `warnings`.
    kernel::SignatureVerdict check(const std::filesystem::path& build, const std::string& kernel,
                                   std::string_view repo_id,
                                   std::vector<std::string>& warnings) const;

private:
    kernel::SignaturePolicy policy_;
    std::filesystem::path root_file_;  // empty: the one that is built in
    mutable std::optional<sigstore::TrustedRoot> root_;
};

// "org/name@1: the build is not signed: it has no metadata.json.sigstore".
std::string signature_warning(const std::string& kernel, const kernel::SignatureVerdict& verdict);

}  // namespace twinkle::project
