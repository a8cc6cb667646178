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

std::optional<std::string> from_hex(std::string_view text) {
    const auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    if (text.size() % 2 != 0) {
        return std::nullopt;
    }
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const int high = digit(text[i]);
        const int low = digit(text[i + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        bytes += static_cast<char>(high << 4 | low);
    }
    return bytes;
}

}  // namespace twinkle::sigstore
