// The extensions of Fulcio's certificates
// (https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md).
#include <openssl/x509v3.h>

#include <set>

#include "sigstore/certificate.h"
#include "sigstore/openssl.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr std::string_view fulcio_arc = "1.3.6.1.4.1.57264.1.";
constexpr int issuer_v1 = 1;  // the first six numbers are raw text, …
constexpr int last_raw = 6;
constexpr int other_name = 7;  // … this one is the type of a name, …
constexpr int issuer_v2 = 8;   // … and those from here on are DER strings

[[noreturn]] void invalid(std::string why) {
    throw Refusal(Reason::invalid, "its certificate " + std::move(why));
}

std::string_view bytes_of(const ASN1_STRING* string) {
    const auto size = ASN1_STRING_length(string);
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
            static_cast<std::size_t>(size > 0 ? size : 0)};
}

std::string dotted(const ASN1_OBJECT* object) {
    char text[128];
    const int size = OBJ_obj2txt(text, sizeof text, object, 1);
    return size > 0 && size < static_cast<int>(sizeof text) ? text : "";
}

// The last number of an OID directly below Fulcio's arc; 0 for other OIDs.
int fulcio_number(const std::string& oid) {
    if (!oid.starts_with(fulcio_arc)) {
        return 0;
    }
    const auto rest = oid.substr(fulcio_arc.size());
    if (rest.empty() || rest.size() > 4 ||
        rest.find_first_not_of("0123456789") != std::string::npos) {
        return 0;
    }
    return std::stoi(rest);
}

// Decodes a DER UTF8String with nothing after it.
std::optional<std::string> der_string(std::string_view der) {
    if (der.size() < 2 || der[0] != V_ASN1_UTF8STRING) {
        return std::nullopt;
    }
    std::size_t size = static_cast<unsigned char>(der[1]);
    std::size_t at = 2;
    if (size >= 0x80) {
        const std::size_t octets = size & 0x7f;
        if (octets < 1 || octets > 3 || der.size() < 2 + octets) {
            return std::nullopt;
        }
        size = 0;
        for (; at < 2 + octets; ++at) {
            size = size << 8 | static_cast<unsigned char>(der[at]);
        }
        if (size < 0x80 || size >> 8 * (octets - 1) == 0) {  // DER: as short as it can be
            return std::nullopt;
        }
    }
    return der.size() - at == size ? std::optional(std::string(der.substr(at))) : std::nullopt;
}

// The name that Fulcio gives to users of its own: an other name of its type, a UTF-8 string.
void add_other_name(const OTHERNAME& name, Signer& signer) {
    if (dotted(name.type_id) != std::string(fulcio_arc) + std::to_string(other_name)) {
        return;
    }
    if (name.value == nullptr || name.value->type != V_ASN1_UTF8STRING) {
        invalid("has a name of its subject that is no text");
    }
    signer.identities.emplace_back(bytes_of(name.value->value.utf8string));
}

void read_names(X509* x509, Signer& signer) {
    using Names = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
    int critical = 0;
    const Names names(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(x509, NID_subject_alt_name, &critical, nullptr)));
    if (!names) {
        invalid(critical == -1 ? "does not name its subject"
                               : "names its subject in no valid form");
    }
    for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
        if (name->type == GEN_URI || name->type == GEN_EMAIL) {
            signer.identities.emplace_back(bytes_of(name->d.ia5));
        } else if (name->type == GEN_OTHERNAME) {
            add_other_name(*name->d.otherName, signer);
        }
    }
}

void read_claim(int number, std::string_view value, Signer& signer) {
    if (number <= last_raw) {
        signer.claims[number] = value;
    } else if (number >= issuer_v2) {
        const auto text = der_string(value);
        if (!text) {
            invalid("has a claim (" + std::string(fulcio_arc) + std::to_string(number) +
                    ") that is no string");
        }
        signer.claims[number] = *text;
    }
}

}  // namespace

std::string Signer::claim(int number) const {
    const auto found = claims.find(number);
    return found == claims.end() ? "" : found->second;
}

Signer read_signer(const Certificate& certificate) {
    const ErrorQueue errors;
    auto* x509 = static_cast<X509*>(certificate.x509());
    Signer signer;
    std::set<std::string> seen;
    for (int i = 0; i < X509_get_ext_count(x509); ++i) {
        X509_EXTENSION* extension = X509_get_ext(x509, i);
        const auto oid = dotted(X509_EXTENSION_get_object(extension));
        if (oid.empty() || !seen.insert(oid).second) {
            invalid("has an extension twice");
        }
        if (const int number = fulcio_number(oid); number > 0) {
            read_claim(number, bytes_of(X509_EXTENSION_get_data(extension)), signer);
        }
    }
    read_names(x509, signer);
    const bool has_old = signer.claims.contains(issuer_v1);
    const bool has_new = signer.claims.contains(issuer_v2);
    if (has_old && has_new && signer.claim(issuer_v1) != signer.claim(issuer_v2)) {
        invalid("names two issuers");
    }
    signer.issuer = signer.claim(has_new ? issuer_v2 : issuer_v1);
    signer.issuer_in_both = has_old && has_new;
    return signer;
}

}  // namespace twinkle::sigstore
