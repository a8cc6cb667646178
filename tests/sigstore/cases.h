#pragma once
// Signatures, correct or wrong in one way each, with the expected outcome.

#include <optional>
#include <string>
#include <vector>

#include "instance.h"
#include "sigstore/refusal.h"

namespace twinkle::test {

struct SignatureCase {
    std::string name;
    std::optional<sigstore::Reason> refused;  // none: it must be accepted
    std::string bundle;
    std::string root;
    std::string artifact = "what is signed\n";
    std::string identity = default_identity;
    std::string issuer = default_issuer;
    std::string key;  // PEM of a public key, in place of an identity
    // Why sigstore-python 4.5.1 decides otherwise; empty: it agrees.
    std::string reference_differs;
};

std::vector<SignatureCase> signature_cases(const Instance& instance);

}  // namespace twinkle::test
