#include "sigstore/sct.h"

#include "sigstore/openssl.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr std::size_t most_scts = 16;
constexpr int tls_sha256 = 4;

[[noreturn]] void malformed() {
    throw Refusal(Reason::invalid, "the certificate timestamps in its certificate are malformed");
}

// Takes big-endian numbers and counted strings off the front of TLS structures.
class TlsReader {
public:
    explicit TlsReader(std::string_view bytes) : rest_(bytes) {}

    bool empty() const { return rest_.empty(); }

    std::string_view take(std::size_t size) {
        if (rest_.size() < size) {
            malformed();
        }
        const auto taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

    std::uint64_t number(std::size_t octets) {
        std::uint64_t value = 0;
        for (const char c : take(octets)) {
            value = value << 8 | static_cast<unsigned char>(c);
        }
        return value;
    }

    std::string_view counted() { return take(number(2)); }

private:
    std::string_view rest_;
};

void append_number(std::string& bytes, std::uint64_t value, int octets) {
    for (int shift = 8 * (octets - 1); shift >= 0; shift -= 8) {
        bytes += static_cast<char>(value >> shift & 0xff);
    }
}

CertificateTimestamp read_timestamp(std::string_view bytes) {
    TlsReader reader(bytes);
    CertificateTimestamp timestamp;
    if (reader.number(1) != 0) {  // version 1
        malformed();
    }
    timestamp.log_id = reader.take(32);
    timestamp.milliseconds = reader.number(8);
    const auto time =
        timestamp.milliseconds < (1ULL << 53)
            ? time_from_seconds(static_cast<std::int64_t>(timestamp.milliseconds / 1000))
            : std::nullopt;
    if (!time) {
        malformed();
    }
    timestamp.time = *time + std::chrono::milliseconds(timestamp.milliseconds % 1000);
    timestamp.extensions = reader.counted();
    timestamp.hash_algorithm = static_cast<int>(reader.number(1));
    reader.number(1);  // the kind of signature, which the log's key says too
    timestamp.signature = reader.counted();
    if (!reader.empty()) {
        malformed();
    }
    return timestamp;
}

// The value of the extension with the timestamps, and the signed part of the certificate without
// that extension: the bytes that the log has seen and signed.
struct Precertificate {
    std::string timestamps;
    std::string signed_part;
};

Precertificate split(const Certificate& leaf) {
    const X509Pointer copy(X509_dup(static_cast<X509*>(leaf.x509())));
    const int at = copy ? X509_get_ext_by_NID(copy.get(), NID_ct_precert_scts, -1) : -1;
    if (at < 0) {
        throw Refusal(Reason::invalid, "its certificate has no timestamp of a certificate log");
    }
    using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
    const Extension extension(X509_delete_ext(copy.get(), at));
    if (X509_get_ext_by_NID(copy.get(), NID_ct_precert_scts, -1) >= 0) {
        malformed();
    }
    const ASN1_OCTET_STRING* value = X509_EXTENSION_get_data(extension.get());
    using Octets = std::unique_ptr<ASN1_OCTET_STRING, FreeWith<ASN1_OCTET_STRING_free>>;
    const auto inner =
        from_der<Octets>({reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                          static_cast<std::size_t>(ASN1_STRING_length(value))},
                         &d2i_ASN1_OCTET_STRING);
    if (!inner) {
        malformed();
    }
    return {{reinterpret_cast<const char*>(ASN1_STRING_get0_data(inner.get())),
             static_cast<std::size_t>(ASN1_STRING_length(inner.get()))},
            to_der<X509>(copy.get(), &i2d_re_X509_tbs)};
}

// RFC 6962, 3.2: the bytes that the log has signed.
std::string signed_data(const CertificateTimestamp& timestamp, std::string_view issuer_spki,
                        std::string_view signed_part) {
    std::string data;
    append_number(data, 0, 1);  // version 1
    append_number(data, 0, 1);  // a certificate timestamp
    append_number(data, timestamp.milliseconds, 8);
    append_number(data, 1, 2);  // of a precertificate
    data += hash(HashAlgorithm::sha256, issuer_spki);
    append_number(data, signed_part.size(), 3);
    data += signed_part;
    append_number(data, timestamp.extensions.size(), 2);
    data += timestamp.extensions;
    return data;
}

}  // namespace

std::vector<CertificateTimestamp> parse_timestamp_list(std::string_view list) {
    TlsReader outer(list);
    TlsReader reader(outer.counted());
    std::vector<CertificateTimestamp> timestamps;
    while (!reader.empty()) {
        if (timestamps.size() == most_scts) {
            malformed();
        }
        timestamps.push_back(read_timestamp(reader.counted()));
    }
    if (!outer.empty() || timestamps.empty()) {
        malformed();
    }
    return timestamps;
}

void verify_certificate_timestamps(const Certificate& leaf, std::string_view issuer_spki,
                                   const TrustedRoot& root) {
    const ErrorQueue errors;
    const auto [list, signed_part] = split(leaf);
    bool log_known = false;
    for (const auto& timestamp : parse_timestamp_list(list)) {
        const auto* log = root.certificate_log(timestamp.log_id);
        if (log == nullptr || !log->valid_at(timestamp.time)) {
            continue;
        }
        log_known = true;
        if (timestamp.hash_algorithm == tls_sha256 && log->hash == HashAlgorithm::sha256 &&
            log->key.verify(log->hash, signed_data(timestamp, issuer_spki, signed_part),
                            timestamp.signature)) {
            return;
        }
    }
    if (log_known) {
        throw Refusal(Reason::invalid,
                      "the timestamp of a certificate log in its certificate does not hold");
    }
    throw Refusal(Reason::root_too_old,
                  root.description() +
                      " does not know the certificate log of its certificate, or "
                      "not for the time at which it was logged",
                  newer_root_hint(root));
}

}  // namespace twinkle::sigstore
