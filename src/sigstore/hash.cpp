#include "sigstore/hash.h"

namespace twinkle::sigstore {

std::string hash(HashAlgorithm algorithm, std::string_view bytes) {
    base::EvpDigest digest(algorithm);
    digest.update(bytes);
    return digest.finish();
}

std::optional<HashAlgorithm> hash_from_proto(std::string_view name) {
    return name == "SHA2_256"   ? std::optional(HashAlgorithm::sha256)
           : name == "SHA2_384" ? std::optional(HashAlgorithm::sha384)
           : name == "SHA2_512" ? std::optional(HashAlgorithm::sha512)
                                : std::nullopt;
}

std::optional<HashAlgorithm> hash_from_name(std::string_view name) {
    return name == "sha256"   ? std::optional(HashAlgorithm::sha256)
           : name == "sha384" ? std::optional(HashAlgorithm::sha384)
           : name == "sha512" ? std::optional(HashAlgorithm::sha512)
                              : std::nullopt;
}

std::size_t hash_size(HashAlgorithm algorithm) {
    return algorithm == HashAlgorithm::sha256 ? 32 : algorithm == HashAlgorithm::sha384 ? 48 : 64;
}

}  // namespace twinkle::sigstore
