#pragma once
// The one entry point: does a bundle prove that somebody acceptable signed an artifact?

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sigstore/artifact.h"
#include "sigstore/bundle.h"
#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

// Throws Refusal(signed_by_other) for a signer that is not acceptable. Called last, when all else
// is verified, so that the claims in the signer's certificate can be trusted.
using Policy = std::function<void(const Signer&)>;

// Requires one of the certificate's identities to be exactly this one, and its issuer, too.
Policy signed_by(std::string identity, std::string issuer);

struct VerifiedTime {
    enum class Source { log, timestamp_authority };
    Source source = Source::log;
    Time time;
};

struct Verified {
    std::optional<Signer> signer;     // none: signed with the key that the caller gave
    std::vector<VerifiedTime> times;  // one or more
    std::string log;                  // its URL
    std::uint64_t log_index = 0;
};

// On return: the log has the entry (audit path and checkpoint), the entry is of this signature,
// signer and artifact, a log or a timestamp authority vouches for the time of signing, an authority
// of the root issued the certificate, which was valid at each of those times and is in a
// certificate log, and the signature is over the artifact, or over a statement that names it.
// Throws Refusal otherwise. Accepts Rekor v1 and v2.
Verified verify(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                const Policy& policy);

// The same for a bundle without a certificate: the signature is by this key.
Verified verify_with_key(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                         const PublicKey& key);

}  // namespace twinkle::sigstore
