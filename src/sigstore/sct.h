#pragma once
// Signed certificate timestamps (RFC 6962): a log of certificates promises that the signer's
// certificate is public, so that nobody can be given one in secret.

#include <string_view>
#include <vector>

#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

struct CertificateTimestamp {
    std::string log_id;
    Time time;
    std::uint64_t milliseconds = 0;
    std::string extensions;
    int hash_algorithm = 0;  // TLS: 4 is SHA-256
    std::string signature;
};

// Parses a SignedCertificateTimestampList in TLS encoding. Throws Refusal(invalid).
std::vector<CertificateTimestamp> parse_timestamp_list(std::string_view list);

// Requires at least one timestamp in the certificate by a log of the trusted root, at a time at
// which the root vouches for that log. Throws Refusal(invalid) or Refusal(root_too_old).
void verify_certificate_timestamps(const Certificate& leaf, std::string_view issuer_spki,
                                   const TrustedRoot& root);

}  // namespace twinkle::sigstore
