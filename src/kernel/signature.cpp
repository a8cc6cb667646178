#include "kernel/signature.h"

#include <algorithm>
#include <map>

#include "base/evp.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/digest.h"
#include "kernel/metadata.h"
#include "sigstore/refusal.h"
#include "sigstore/verify.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

using sigstore::Refusal;

// Who may sign kernels: workflows on GitHub, by the certificate that GitHub's tokens bring.
struct Publisher {
    const char* source_repository;
    std::vector<std::string> workflows;  // files of the repository, on its main branch
};

constexpr const char* github_tokens = "https://token.actions.githubusercontent.com";

const std::vector<Publisher>& publishers() {
    static const std::vector<Publisher> all{
        {"https://github.com/huggingface/kernels-community",
         {"build.yaml", "build-mac.yaml", "build-windows.yaml", "sign-old-builds.yaml"}}};
    return all;
}

bool is_workflow_of(const Publisher& publisher, const std::string& build_signer) {
    return std::any_of(
        publisher.workflows.begin(), publisher.workflows.end(), [&](const std::string& file) {
            return build_signer == std::string(publisher.source_repository) +
                                       "/.github/workflows/" + file + "@refs/heads/main";
        });
}

bool is_trusted(const sigstore::Signer& signer) {
    return signer.issuer == github_tokens && signer.issuer_in_both &&
           std::any_of(publishers().begin(), publishers().end(), [&](const Publisher& publisher) {
               return signer.source_repository() == publisher.source_repository &&
                      is_workflow_of(publisher, signer.build_signer());
           });
}

SignatureState state_of(sigstore::Reason reason) {
    switch (reason) {
        case sigstore::Reason::malformed:
        case sigstore::Reason::unsupported: return SignatureState::bundle_malformed;
        case sigstore::Reason::root_too_old: return SignatureState::root_too_old;
        case sigstore::Reason::signed_by_other: return SignatureState::signed_by_other;
        case sigstore::Reason::content_differs: return SignatureState::metadata_differs;
        case sigstore::Reason::invalid: break;
    }
    return SignatureState::signature_invalid;
}

const char* words_of(SignatureState state) {
    switch (state) {
        case SignatureState::verified: return "the build is signed by a trusted publisher";
        case SignatureState::not_signed: return "the build is not signed";
        case SignatureState::bundle_malformed: return "the build's signature cannot be read";
        case SignatureState::root_too_old:
            return "the trusted root is too old for the build's signature, or of another instance";
        case SignatureState::signed_by_other:
            return "the build is signed by somebody else than a trusted publisher";
        case SignatureState::metadata_differs:
            return "metadata.json of the build is not what was signed";
        case SignatureState::signature_invalid: return "the build's signature does not hold";
        case SignatureState::metadata_malformed:
            return "the signed metadata does not say what the files of the build are";
        case SignatureState::files_differ:
            return "the files of the build are not what its signed metadata says";
        case SignatureState::other_kernel: break;
    }
    return "the build is signed by a trusted publisher, but as another kernel";
}

SignatureVerdict& settle(SignatureVerdict& verdict, SignatureState state, std::string why = {},
                         std::string hint = {}) {
    verdict.state = state;
    verdict.words = words_of(state);
    verdict.why = std::move(why);
    verdict.hint = std::move(hint);
    return verdict;
}

void note_signer(const sigstore::Signer& signer, SignatureVerdict& verdict) {
    const auto identity = signer.identities.empty() ? "" : signer.identities.front();
    const auto workflow = signer.build_signer();
    verdict.workflow = base::printable(workflow.empty() ? identity : workflow);
    verdict.source_repository = base::printable(signer.source_repository());
}

// False where the signature does not do; the verdict then says why.
bool verify_metadata(const std::string& bundle, const std::string& metadata,
                     const std::string& origin, const sigstore::TrustedRoot& root,
                     SignatureVerdict& verdict) {
    const auto policy = [&](const sigstore::Signer& signer) {
        note_signer(signer, verdict);
        if (!is_trusted(signer)) {
            throw Refusal(
                sigstore::Reason::signed_by_other,
                "signed by " + verdict.workflow +
                    (verdict.source_repository.empty() ? "" : " of " + verdict.source_repository));
        }
    };
    try {
        const auto parsed = sigstore::parse_bundle(bundle, origin);
        if (!std::holds_alternative<sigstore::MessageSignature>(parsed.content)) {
            throw Refusal(sigstore::Reason::unsupported,
                          "it is over a statement, and not over the bytes of metadata.json");
        }
        const auto verified =
            sigstore::verify(parsed, sigstore::ArtifactBytes(metadata), root, policy);
        verdict.time = verified.times.front().time;
        return true;
    } catch (const Refusal& refusal) {
        settle(verdict, state_of(refusal.reason()), refusal.details().why, refusal.details().hint);
        return false;
    }
}

std::map<std::string, std::string> hash_files(const fs::path& folder, base::DigestKind kind) {
    std::map<std::string, std::string> hashes;
    for (const auto& path : base::list_files(folder)) {
        if (is_outside_digest(path)) {
            continue;
        }
        base::EvpDigest digest(kind);
        base::stream_file(folder / path, "file of a kernel",
                          [&](std::string_view bytes) { digest.update(bytes); });
        hashes.emplace(path, digest.finish());
    }
    return hashes;
}

// A publisher signs many kernels: whoever serves a repository may have put another's build there.
// Builds and repositories spell one name with '-' and with '_'.
bool is_of(const Metadata& metadata, std::string_view repo_id) {
    const auto spelled = [](std::string_view name) {
        std::string text(name);
        std::replace(text.begin(), text.end(), '_', '-');
        return text;
    };
    return repo_id.empty() ||
           spelled(repo_id.substr(repo_id.find('/') + 1)) == spelled(metadata.name);
}

// The metadata that was verified, and nothing that is read again, says what the files must be.
void compare_files(const fs::path& folder, const std::string& bytes, std::string_view repo_id,
                   const KnownHashes& known_hashes, SignatureVerdict& verdict) {
    Metadata metadata;
    try {
        metadata = parse_metadata(bytes, base::display_path(folder / "metadata.json"));
    } catch (const Error& error) {
        settle(verdict, SignatureState::metadata_malformed, error.details().why);
        return;
    }
    if (!metadata.digest) {
        settle(verdict, SignatureState::metadata_malformed, "it has no digest over the files");
        return;
    }
    const auto kind = metadata.digest->algorithm == "sha512" ? base::DigestKind::sha512
                                                             : base::DigestKind::sha256;
    verdict.violations = digest_violations(
        *metadata.digest, known_hashes ? known_hashes(kind) : hash_files(folder, kind));
    if (!verdict.violations.empty()) {
        settle(verdict, SignatureState::files_differ, base::join(verdict.violations, "\n"),
               "get the build again; do not edit it in place");
        return;
    }
    if (!is_of(metadata, repo_id)) {
        settle(verdict, SignatureState::other_kernel,
               "the signed metadata is that of the kernel '" + base::printable(metadata.name) +
                   "', the repository is " + std::string(repo_id),
               "use the repository of that name");
        return;
    }
    settle(verdict, SignatureState::verified);
}

}  // namespace

std::optional<SignaturePolicy> parse_signature_policy(std::string_view text) {
    for (const auto policy :
         {SignaturePolicy::off, SignaturePolicy::warn, SignaturePolicy::require}) {
        if (text == signature_policy_name(policy)) {
            return policy;
        }
    }
    return std::nullopt;
}

std::string_view signature_policy_name(SignaturePolicy policy) {
    return policy == SignaturePolicy::off    ? "off"
           : policy == SignaturePolicy::warn ? "warn"
                                             : "require";
}

std::string_view signature_state_name(SignatureState state) {
    switch (state) {
        case SignatureState::verified: return "verified";
        case SignatureState::not_signed: return "not-signed";
        case SignatureState::bundle_malformed: return "bundle-malformed";
        case SignatureState::root_too_old: return "root-too-old";
        case SignatureState::signed_by_other: return "signed-by-other";
        case SignatureState::metadata_differs: return "metadata-differs";
        case SignatureState::signature_invalid: return "signature-invalid";
        case SignatureState::metadata_malformed: return "metadata-malformed";
        case SignatureState::files_differ: return "files-differ";
        case SignatureState::other_kernel: break;
    }
    return "other-kernel";
}

SignatureVerdict check_signature(const fs::path& build_folder, std::string_view repo_id,
                                 const sigstore::TrustedRoot& root,
                                 const KnownHashes& known_hashes) {
    const auto metadata_path = build_folder / "metadata.json";
    const auto bundle_path = build_folder / "metadata.json.sigstore";
    SignatureVerdict verdict;
    std::error_code ignored;
    for (const auto& path : {bundle_path, metadata_path}) {
        if (!fs::exists(path, ignored)) {
            return settle(verdict, SignatureState::not_signed,
                          "it has no " + path.filename().string());
        }
    }
    const auto metadata = base::read_file(metadata_path, "metadata of a kernel");
    const auto bundle = base::read_file(bundle_path, "signature of a kernel");
    if (verify_metadata(bundle, metadata, base::display_path(bundle_path), root, verdict)) {
        compare_files(build_folder, metadata, repo_id, known_hashes, verdict);
    }
    return verdict;
}

Error signature_error(const SignatureVerdict& verdict, const fs::path& build_folder) {
    return {ErrorCode::verification,
            {.what = verdict.words,
             .where = base::display_path(build_folder),
             .why = verdict.why,
             .hint = verdict.hint}};
}

}  // namespace twinkle::kernel
