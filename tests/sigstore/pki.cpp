#include "pki.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "sigstore/openssl.h"

namespace twinkle::test {
namespace {

using namespace sigstore;

template <typename Value>
Value need(Value value) {
    if (!value) {
        ERR_print_errors_fp(stderr);
        throw std::runtime_error("OpenSSL refused");
    }
    return value;
}

X509* raw(const MadeCertificate& certificate) {
    return static_cast<X509*>(certificate.get());
}

EVP_PKEY* raw(const SigningKey& key) {
    return static_cast<EVP_PKEY*>(key.get());
}

template <typename Write>
std::string written(Write&& write) {
    const std::unique_ptr<BIO, FreeWith<BIO_free_all>> bio(need(BIO_new(BIO_s_mem())));
    need(write(bio.get()) == 1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

void set_time(ASN1_TIME* field, Time time) {
    need(ASN1_TIME_set(field, static_cast<std::time_t>(to_seconds(time))));
}

void add_extension(X509* x509, X509* issuer, int nid, const std::string& value) {
    if (value.empty()) {
        return;
    }
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
    using Owned = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
    const Owned extension(need(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())));
    need(X509_add_ext(x509, extension.get(), -1));
}

void add_extension(X509* x509, const Extension& extension) {
    using Object = std::unique_ptr<ASN1_OBJECT, FreeWith<ASN1_OBJECT_free>>;
    using Octets = std::unique_ptr<ASN1_OCTET_STRING, FreeWith<ASN1_OCTET_STRING_free>>;
    const Object oid(need(OBJ_txt2obj(extension.oid.c_str(), 1)));
    const Octets value(need(ASN1_OCTET_STRING_new()));
    need(ASN1_OCTET_STRING_set(value.get(), bytes_of(extension.value),
                               static_cast<int>(extension.value.size())));
    using Owned = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
    const Owned made(need(
        X509_EXTENSION_create_by_OBJ(nullptr, oid.get(), extension.critical ? 1 : 0, value.get())));
    need(X509_add_ext(x509, made.get(), -1));
}

void sign(X509* x509, const SigningKey& key) {
    const bool plain = EVP_PKEY_get_base_id(raw(key)) == EVP_PKEY_ED25519;
    need(X509_sign(x509, raw(key), plain ? nullptr : EVP_sha256()));
}

std::string der_of(unsigned char tag, std::string_view bytes) {
    std::string der(1, static_cast<char>(tag));
    if (bytes.size() < 0x80) {
        der += static_cast<char>(bytes.size());
    } else if (bytes.size() < 0x100) {
        der += "\x81";
        der += static_cast<char>(bytes.size());
    } else {
        der += "\x82";
        der += static_cast<char>(bytes.size() >> 8);
        der += static_cast<char>(bytes.size() & 0xff);
    }
    return der.append(bytes);
}

}  // namespace

Time at(std::string_view text) {
    return parse_time(text).value();
}

SigningKey SigningKey::make(const std::string& kind) {
    EVP_PKEY* made = kind == "RSA" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048})
                     : kind == "ED25519" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                         : EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", kind.c_str());
    SigningKey key;
    key.key_ = std::shared_ptr<void>(
        need(made), [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); });
    return key;
}

std::string SigningKey::sign(std::string_view message, const char* hash) const {
    const bool plain = EVP_PKEY_get_base_id(raw(*this)) == EVP_PKEY_ED25519;
    const DigestContext context(EVP_MD_CTX_new());
    need(EVP_DigestSignInit_ex(context.get(), nullptr, plain ? nullptr : hash, nullptr, nullptr,
                               raw(*this), nullptr));
    std::size_t size = 0;
    need(EVP_DigestSign(context.get(), nullptr, &size, bytes_of(message), message.size()));
    std::string signature(size, '\0');
    need(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                        bytes_of(message), message.size()));
    signature.resize(size);
    return signature;
}

std::string SigningKey::spki() const {
    return to_der<const EVP_PKEY>(raw(*this), &i2d_PUBKEY);
}

std::string SigningKey::raw_public() const {
    unsigned char bytes[32];
    std::size_t size = sizeof bytes;
    need(EVP_PKEY_get_raw_public_key(raw(*this), bytes, &size));
    return {reinterpret_cast<const char*>(bytes), size};
}

std::string SigningKey::pem() const {
    return written([this](BIO* bio) { return PEM_write_bio_PUBKEY(bio, raw(*this)); });
}

MadeCertificate MadeCertificate::make(const CertificateSpec& spec, const SigningKey& key,
                                      const MadeCertificate* issuer, const SigningKey& issuer_key) {
    static std::int64_t serial = 1000;
    MadeCertificate made;
    made.x509_ = std::shared_ptr<void>(need(X509_new()),
                                       [](void* owned) { X509_free(static_cast<X509*>(owned)); });
    X509* x509 = raw(made);
    X509* above = issuer != nullptr ? raw(*issuer) : x509;
    need(X509_set_version(x509, X509_VERSION_3));
    need(ASN1_INTEGER_set_int64(X509_get_serialNumber(x509), ++serial));
    set_time(X509_getm_notBefore(x509), spec.from);
    set_time(X509_getm_notAfter(x509), spec.to);
    if (!spec.name.empty()) {
        need(X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_UTF8,
                                        bytes_of(spec.name), static_cast<int>(spec.name.size()), -1,
                                        0));
    }
    need(X509_set_issuer_name(x509, X509_get_subject_name(above)));
    need(X509_set_pubkey(x509, raw(key)));
    add_extension(x509, above, NID_basic_constraints, spec.authority ? "critical,CA:TRUE" : "");
    add_extension(x509, above, NID_key_usage,
                  spec.authority ? "critical,keyCertSign,cRLSign" : spec.key_usage);
    add_extension(x509, above, NID_ext_key_usage, spec.extended_key_usage);
    add_extension(x509, above, NID_subject_key_identifier, "hash");
    add_extension(x509, above, NID_authority_key_identifier, "keyid:always");
    add_extension(x509, above, NID_subject_alt_name, spec.subject_names);
    for (const auto& extension : spec.extensions) {
        add_extension(x509, extension);
    }
    sign(x509, issuer_key);
    return made;
}

std::string MadeCertificate::der() const {
    return to_der<const X509>(raw(*this), &i2d_X509);
}

std::string MadeCertificate::pem() const {
    return written([this](BIO* bio) { return PEM_write_bio_X509(bio, raw(*this)); });
}

std::string MadeCertificate::spki() const {
    return to_der<const X509_PUBKEY>(X509_get_X509_PUBKEY(raw(*this)), &i2d_X509_PUBKEY);
}

std::string MadeCertificate::signed_part() const {
    return to_der<X509>(raw(*this), &i2d_re_X509_tbs);
}

void MadeCertificate::add(const Extension& extension, const SigningKey& issuer_key) {
    add_extension(raw(*this), extension);
    sign(raw(*this), issuer_key);
}

std::string der_utf8(std::string_view text) {
    return der_of(V_ASN1_UTF8STRING, text);
}

std::string der_octets(std::string_view bytes) {
    return der_of(V_ASN1_OCTET_STRING, bytes);
}

}  // namespace twinkle::test
