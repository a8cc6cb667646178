#include "project/signatures.h"

namespace twinkle::project {

SignatureRules::SignatureRules(const SignatureOptions& options, const Manifest* manifest,
                               kernel::SignaturePolicy otherwise)
    : policy_(otherwise) {
    if (manifest != nullptr) {
        policy_ = manifest->signature.value_or(otherwise);
        root_file_ = manifest->trusted_root;
    }
    policy_ = options.policy.value_or(policy_);
    root_file_ = options.trusted_root.value_or(root_file_);
}

const sigstore::TrustedRoot& SignatureRules::root() const {
    if (root_file_.empty()) {
        return sigstore::public_trusted_root();
    }
    if (!root_) {
        root_ = sigstore::read_trusted_root(root_file_);
    }
    return *root_;
}

kernel::SignatureVerdict SignatureRules::check(const std::filesystem::path& build,
                                               const std::string& kernel, std::string_view repo_id,
                                               std::vector<std::string>& warnings) const {
    auto verdict = kernel::check_signature(build, repo_id, root());
    if (!verdict.verified() && policy_ == kernel::SignaturePolicy::require) {
        throw kernel::signature_error(verdict, build);
    }
    if (!verdict.verified()) {
        warnings.push_back(signature_warning(kernel, verdict));
    }
    return verdict;
}

std::string signature_warning(const std::string& kernel, const kernel::SignatureVerdict& verdict) {
    return kernel + ": " + verdict.words + (verdict.why.empty() ? "" : ": " + verdict.why);
}

}  // namespace twinkle::project
