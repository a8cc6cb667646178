#pragma once
// The hash functions of signatures: SHA-2 from 256 bits. Others are refused.

#include <optional>
#include <string>
#include <string_view>

#include "base/evp.h"

namespace twinkle::sigstore {

using HashAlgorithm = base::DigestKind;

struct Digest {
    HashAlgorithm algorithm = HashAlgorithm::sha256;
    std::string bytes;

    bool operator==(const Digest&) const = default;
};

std::string hash(HashAlgorithm algorithm, std::string_view bytes);  // raw

std::optional<HashAlgorithm> hash_from_proto(std::string_view name);  // "SHA2_256"
std::optional<HashAlgorithm> hash_from_name(std::string_view name);   // "sha256"
std::size_t hash_size(HashAlgorithm algorithm);                       // in bytes

}  // namespace twinkle::sigstore
