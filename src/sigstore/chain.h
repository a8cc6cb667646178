#pragma once
// Which authority of the trusted root vouches for a signer's certificate at a time.

#include <string>
#include <string_view>
#include <vector>

#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

// Returns the SPKI of the certificate that issued the leaf. Throws Refusal(invalid) if the leaf was
// not valid at that time or may not sign code, Refusal(root_too_old) if no authority vouches for
// it.
std::string verify_chain(const Certificate& leaf, const TrustedRoot& root, Time at);

// Checks the chain from `leaf` to the last certificate of `chain` at a time; those between may be
// used.
struct ChainCheck {
    enum class Failure {
        unknown_issuer,  // no certificate in the chain issued it
        issuer_outside,  // somebody above the leaf was not valid at that time …
        leaf_outside,    // … or the leaf was not
        broken,          // the issuer's signature, or another rule
    };
    bool valid = false;
    Failure failure = Failure::unknown_issuer;  // if not valid
    std::string why = {};                       // if not valid, in OpenSSL's words
    std::string issuer_spki = {};               // if valid
};
ChainCheck check_chain(const Certificate& leaf, const std::vector<Certificate>& chain, Time at);

}  // namespace twinkle::sigstore
