#pragma once
// A message digest of OpenSSL, for the hash types of this folder.

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace twinkle::base {

enum class DigestKind { sha1, sha256, sha384, sha512 };

class EvpDigest {
public:
    explicit EvpDigest(DigestKind kind);
    void update(std::string_view bytes);
    std::string finish();  // raw bytes

private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace twinkle::base
