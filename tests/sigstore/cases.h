#pragma once
// Signatures, right and wrong in one way each, with what must come of them.

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
    // sigstore-python 4.5.1 says otherwise, and why; empty: it says the same.
    std::string reference_differs;
};

std::vector<SignatureCase> signature_cases(const Instance& instance);

}  // namespace twinkle::test
