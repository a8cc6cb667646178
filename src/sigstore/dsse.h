#pragma once
// DSSE envelopes with in-toto statements: a statement names files by hash and makes a claim about
// them.

#include <functional>
#include <string>
#include <string_view>

#include "sigstore/bundle.h"

namespace twinkle::sigstore {

// The signed bytes: the payload with its type, unambiguously encoded.
std::string pre_authentication_encoding(const Envelope& envelope);

// Requires that one of the statement's subjects has the artifact's hash: at least one SHA-2 hash is
// present, and all that are present match. Throws Refusal(content_differs); Refusal(unsupported) if
// the payload is no in-toto statement of version 0.1 or 1.
void expect_subject(const Envelope& envelope,
                    const std::function<std::string(HashAlgorithm)>& artifact_hash);

}  // namespace twinkle::sigstore
