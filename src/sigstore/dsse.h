#pragma once
// DSSE envelopes with in-toto statements: a statement names files by hash and says something of
// them.

#include <functional>
#include <string>
#include <string_view>

#include "sigstore/bundle.h"

namespace twinkle::sigstore {

// What is signed: the payload with its type, unambiguously.
std::string pre_authentication_encoding(const Envelope& envelope);

// One of the statement's subjects has the artifact's hash: a SHA-2 hash is there, and all of them
// that are there fit. Throws Refusal(content_differs); Refusal(unsupported) if the payload is no
// in-toto statement of version 0.1 or 1.
void expect_subject(const Envelope& envelope,
                    const std::function<std::string(HashAlgorithm)>& artifact_hash);

}  // namespace twinkle::sigstore
