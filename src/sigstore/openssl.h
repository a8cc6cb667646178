#pragma once
// Owners of OpenSSL's objects. Private to this folder: no header that others use includes it.

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ts.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace twinkle::sigstore {

template <auto function>
struct FreeWith {
    void operator()(auto* object) const { function(object); }
};

struct FreeStack {
    void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};

using X509Pointer = std::unique_ptr<X509, FreeWith<X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;
using StorePointer = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;
// Does not own the certificates in it.
using CertificateStack = std::unique_ptr<STACK_OF(X509), FreeStack>;

// Drops the errors that OpenSSL queues during this object's lifetime: a handled error must not turn
// up later in another message.
class ErrorQueue {
public:
    ErrorQueue() { ERR_set_mark(); }
    ~ErrorQueue() { ERR_pop_to_mark(); }
    ErrorQueue(const ErrorQueue&) = delete;
    ErrorQueue& operator=(const ErrorQueue&) = delete;
};

inline const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

// The DER of an object, by one of the i2d functions; empty on failure.
template <typename Object>
std::string to_der(Object* object, int (*encode)(Object*, unsigned char**)) {
    unsigned char* out = nullptr;
    const int size = encode(object, &out);
    if (size <= 0) {
        return {};
    }
    std::string der(reinterpret_cast<const char*>(out), static_cast<std::size_t>(size));
    OPENSSL_free(out);
    return der;
}

// An object from DER by one of the d2i functions; null unless it uses all of the bytes.
template <typename Pointer, typename Object>
Pointer from_der(std::string_view der, Object* (*decode)(Object**, const unsigned char**, long)) {
    const unsigned char* at = bytes_of(der);
    Pointer object(decode(nullptr, &at, static_cast<long>(der.size())));
    return at == bytes_of(der) + der.size() ? std::move(object) : nullptr;
}

}  // namespace twinkle::sigstore
