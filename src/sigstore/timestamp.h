#pragma once
// RFC 3161: an authority signs that some bytes existed at a time.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

class Timestamp {
public:
    // A TimeStampResp in DER that grants a token. Throws Refusal(malformed).
    static Timestamp parse(std::string_view response);

    Time time() const { return time_; }  // its claim; do not trust it before verify()

    struct Check {
        bool holds = false;
        bool root_too_old = false;  // it holds, but the root does not vouch for the authority then
        std::string why = {};       // if it does not hold
    };
    // Requires a timestamp by an authority of the root, at a time at which the root vouches for it,
    // over `message`. The leaf of the authority's chain in the root must have signed: certificates
    // that come with the timestamp are not trusted.
    Check verify(std::string_view message, const TrustedRoot& root) const;

private:
    Timestamp() = default;
    bool is_over(std::string_view message) const;
    bool signed_by(const CertificateAuthority& authority, std::string& why) const;

    std::shared_ptr<void> response_;  // TS_RESP
    Time time_;
};

}  // namespace twinkle::sigstore
