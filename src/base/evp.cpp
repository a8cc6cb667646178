#include "base/evp.h"

#include <openssl/opensslv.h>

#include "twinkle/error.h"

namespace twinkle::base {
namespace {

[[noreturn]] void fail() {
    throw Error(ErrorCode::failed, {.what = "cannot compute a hash",
                                    .where = "",
                                    .why = "OpenSSL refused; is its configuration complete?",
                                    .hint = ""});
}

// OpenSSL 3 looks an algorithm up in its providers on every init unless it was fetched before.
const EVP_MD* algorithm(DigestKind kind) {
#if OPENSSL_VERSION_MAJOR >= 3
    static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
    static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    static const EVP_MD* const sha384 = EVP_MD_fetch(nullptr, "SHA384", nullptr);
    static const EVP_MD* const sha512 = EVP_MD_fetch(nullptr, "SHA512", nullptr);
#else
    static const EVP_MD* const sha1 = EVP_sha1();
    static const EVP_MD* const sha256 = EVP_sha256();
    static const EVP_MD* const sha384 = EVP_sha384();
    static const EVP_MD* const sha512 = EVP_sha512();
#endif
    switch (kind) {
        case DigestKind::sha1: return sha1;
        case DigestKind::sha256: return sha256;
        case DigestKind::sha384: return sha384;
        default: return sha512;
    }
}

}  // namespace

EvpDigest::EvpDigest(DigestKind kind) : context_(EVP_MD_CTX_new()) {
    const EVP_MD* md = algorithm(kind);
    if (!context_ || md == nullptr || EVP_DigestInit_ex(context_.get(), md, nullptr) != 1) {
        fail();
    }
}

void EvpDigest::update(std::string_view bytes) {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) {
        fail();
    }
}

std::string EvpDigest::finish() {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(context_.get(), raw, &size) != 1) {
        fail();
    }
    return {reinterpret_cast<const char*>(raw), size};
}

}  // namespace twinkle::base
