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

// Throws Refusal(signed_by_other) unless this signer will do. It is asked last, when all else
// holds, so that what a signer's certificate says can be believed.
using Policy = std::function<void(const Signer&)>;

// One of the certificate's identities is exactly this one, and so is its issuer.
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

// What holds when this returns: the log has the entry (audit path and checkpoint), the entry is of
// this signature, signer and artifact, a log or a timestamp authority vouches for when it was
// signed, an authority of the root issued the certificate, which was valid at each of those times
// and is in a certificate log, and the signature is over the artifact, or over a statement that
// names it. Throws Refusal otherwise. Takes Rekor v1 and v2.
Verified verify(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                const Policy& policy);

// The same for a bundle that names no certificate: the signature is by this key.
Verified verify_with_key(const Bundle& bundle, const Artifact& artifact, const TrustedRoot& root,
                         const PublicKey& key);

}  // namespace twinkle::sigstore
