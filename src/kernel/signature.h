#pragma once
// Who signed a kernel's build: the publishers that are trusted, and one function that goes from the
// signature of metadata.json to the hash of the last file.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/evp.h"
#include "sigstore/trusted_root.h"
#include "twinkle/error.h"

namespace twinkle::kernel {

// What becomes of a build whose signature is not verified: nothing is looked at, it is said, or it
// is refused.
enum class SignaturePolicy { off, warn, require };

std::optional<SignaturePolicy> parse_signature_policy(std::string_view text);  // "off", …
std::string_view signature_policy_name(SignaturePolicy policy);

enum class SignatureState {
    verified,
    not_signed,          // there is no metadata.json.sigstore, or nothing that it could sign
    bundle_malformed,    // that file is no signature bundle, or of a kind that is not known
    root_too_old,        // the trusted root does not vouch for who made the signature, at that time
    signed_by_other,     // it holds, but no trusted publisher signed
    metadata_differs,    // it holds, but metadata.json is not what was signed
    signature_invalid,   // it does not hold
    metadata_malformed,  // what was signed is no metadata, or has no digest over the files
    files_differ,        // the files are not what the signed metadata says
    other_kernel,        // all that holds, for a kernel of another name than the repository's
};

// "verified", "not-signed", …: the spelling used in JSON.
std::string_view signature_state_name(SignatureState state);

struct SignatureVerdict {
    SignatureState state = SignatureState::not_signed;
    std::string
        words;         // for people: "the files of the build are not what its signed metadata says"
    std::string why;   // the details, as far as there are any
    std::string hint;  // what to do next; may be empty
    // Where the signature holds, also when it is somebody else's:
    std::string workflow;           // that signed: the build signer URI, else an identity
    std::string source_repository;  // a URI
    std::optional<sigstore::Time> time;
    // Where the files were compared: what differs, one line each.
    std::vector<std::string> violations;

    bool verified() const { return state == SignatureState::verified; }
};

// The raw hashes of a build's files by path, where somebody has read them all already.
using KnownHashes = std::function<std::map<std::string, std::string>(base::DigestKind)>;

// Verifies the exact bytes of metadata.json with metadata.json.sigstore, then reads them, then
// holds every file of the build against the digest in them. `repo_id` ("org/name"; may be empty) is
// where the build came from. What is wrong with the signature is in the verdict; thrown are only
// errors of reading.
SignatureVerdict check_signature(const std::filesystem::path& build_folder,
                                 std::string_view repo_id, const sigstore::TrustedRoot& root,
                                 const KnownHashes& known_hashes = {});

// The Error(verification) of a verdict that is not `verified`, for a policy that requires it, or
// for its words.
Error signature_error(const SignatureVerdict& verdict, const std::filesystem::path& build_folder);

}  // namespace twinkle::kernel
