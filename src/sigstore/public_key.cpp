#include "sigstore/public_key.h"

#include <openssl/rsa.h>

#include "base/base64.h"
#include "sigstore/openssl.h"

namespace twinkle::sigstore {
namespace {

EVP_PKEY* raw(const std::shared_ptr<void>& key) {
    return static_cast<EVP_PKEY*>(key.get());
}

std::optional<KeyKind> kind_of(const EVP_PKEY* key) {
    switch (EVP_PKEY_get_base_id(key)) {
        case EVP_PKEY_ED25519: return KeyKind::ed25519;
        case EVP_PKEY_RSA: {
            const int bits = EVP_PKEY_get_bits(key);
            return bits >= 2048 && bits <= 8192 ? std::optional(KeyKind::rsa) : std::nullopt;
        }
        case EVP_PKEY_EC: break;
        default: return std::nullopt;
    }
    char name[64];
    std::size_t size = 0;
    if (EVP_PKEY_get_group_name(key, name, sizeof name, &size) != 1) {
        return std::nullopt;
    }
    const std::string_view curve(name, size);
    return curve == "prime256v1"  ? std::optional(KeyKind::p256)
           : curve == "secp384r1" ? std::optional(KeyKind::p384)
           : curve == "secp521r1" ? std::optional(KeyKind::p521)
                                  : std::nullopt;
}

const EVP_MD* md_of(HashAlgorithm algorithm) {
    return algorithm == HashAlgorithm::sha256   ? EVP_sha256()
           : algorithm == HashAlgorithm::sha384 ? EVP_sha384()
                                                : EVP_sha512();
}

}  // namespace

std::optional<PublicKey> PublicKey::from_spki(std::string_view der) {
    const ErrorQueue errors;
    auto key = from_der<KeyPointer>(der, &d2i_PUBKEY);
    const auto kind = key ? kind_of(key.get()) : std::nullopt;
    if (!kind) {
        return std::nullopt;
    }
    PublicKey result;
    result.kind_ = *kind;
    result.bits_ = EVP_PKEY_get_bits(key.get());
    result.spki_ = der;
    result.key_ = std::shared_ptr<void>(
        key.release(), [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); });
    return result;
}

std::optional<PublicKey> PublicKey::from_pem(std::string_view pem) {
    const auto der = pem_block(pem, "PUBLIC KEY");
    return der ? from_spki(*der) : std::nullopt;
}

std::string PublicKey::id() const {
    return hash(HashAlgorithm::sha256, spki_);
}

HashAlgorithm PublicKey::usual_hash() const {
    return kind_ == KeyKind::p384   ? HashAlgorithm::sha384
           : kind_ == KeyKind::p521 ? HashAlgorithm::sha512
                                    : HashAlgorithm::sha256;
}

std::string PublicKey::details() const {
    switch (kind_) {
        case KeyKind::p256: return "PKIX_ECDSA_P256_SHA_256";
        case KeyKind::p384: return "PKIX_ECDSA_P384_SHA_384";
        case KeyKind::p521: return "PKIX_ECDSA_P521_SHA_512";
        case KeyKind::ed25519: return "PKIX_ED25519";
        case KeyKind::rsa: break;
    }
    return bits_ == 2048 || bits_ == 3072 || bits_ == 4096
               ? "PKIX_RSA_PKCS1V15_" + std::to_string(bits_) + "_SHA256"
               : "";
}

bool PublicKey::verify(HashAlgorithm algorithm, std::string_view message,
                       std::string_view signature) const {
    if (kind_ != KeyKind::ed25519) {
        return verify(Digest{algorithm, hash(algorithm, message)}, signature);
    }
    const ErrorQueue errors;
    const DigestContext context(EVP_MD_CTX_new());
    return context &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, raw(key_)) == 1 &&
           EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                            message.size()) == 1;
}

bool PublicKey::verify(const Digest& digest, std::string_view signature) const {
    const ErrorQueue errors;
    if (kind_ == KeyKind::ed25519 || digest.bytes.size() != hash_size(digest.algorithm)) {
        return false;
    }
    const KeyContext context(EVP_PKEY_CTX_new(raw(key_), nullptr));
    if (!context || EVP_PKEY_verify_init(context.get()) != 1 ||
        (kind_ == KeyKind::rsa &&
         EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) != 1) ||
        EVP_PKEY_CTX_set_signature_md(context.get(), md_of(digest.algorithm)) != 1) {
        return false;
    }
    return EVP_PKEY_verify(context.get(), bytes_of(signature), signature.size(),
                           bytes_of(digest.bytes), digest.bytes.size()) == 1;
}

std::optional<std::string> pem_block(std::string_view text, std::string_view label) {
    const std::string head = "-----BEGIN " + std::string(label) + "-----";
    const std::string tail = "-----END " + std::string(label) + "-----";
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    const auto trim = [&] {
        while (!text.empty() && is_space(text.front())) {
            text.remove_prefix(1);
        }
        while (!text.empty() && is_space(text.back())) {
            text.remove_suffix(1);
        }
    };
    trim();
    if (!text.starts_with(head) || !text.ends_with(tail) ||
        text.size() < head.size() + tail.size()) {
        return std::nullopt;
    }
    text = text.substr(head.size(), text.size() - head.size() - tail.size());
    std::string base64;
    for (const char c : text) {
        if (!is_space(c)) {
            base64 += c;
        }
    }
    return base64.empty() ? std::nullopt : base::from_base64(base64);
}

}  // namespace twinkle::sigstore
