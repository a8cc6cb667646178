#pragma once
// A Sigstore of our own: a certificate authority, a certificate log, Rekor v1 and v2, and a
// timestamp authority. It signs for tests, correctly or with one mistake.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "pki.h"

namespace twinkle::test {

using base::Json;

inline constexpr const char* default_issuer = "https://token.actions.githubusercontent.com";
inline constexpr const char* default_identity =
    "https://github.com/org/name/.github/workflows/release.yml@refs/heads/main";

// The certificate of a signer, and the mistakes that it may have.
struct SignerSpec {
    std::string names = std::string("critical,URI:") + default_identity;
    std::string issuer = default_issuer;
    std::optional<std::string> other_issuer = {};  // in the newer extension; else the same
    std::string build_signer = {};
    std::string source_repository = {};
    std::string key = "P-256";
    std::string extended_key_usage = "codeSigning";
    std::string key_usage = "critical,digitalSignature";
    bool authority = false;
    bool logged = true;                      // has a certificate timestamp
    std::optional<Time> logged_at = {};      // else when it was issued
    std::string log_extensions = {};         // of that timestamp
    bool log_wrong = false;                  // over another certificate
    std::optional<Time> from = {}, to = {};  // else ten minutes around the signature
    std::vector<Extension> extensions = {};
};

struct SignatureSpec {
    enum class Log { v1, v2, v1_intoto, v2_dsse };
    std::string version = "0.3";
    bool dsse = false;
    std::string statement = {};  // of a DSSE envelope; empty: one that names the artifact
    std::string payload_type = "application/vnd.in-toto+json";
    Log log = Log::v1;
    SignerSpec signer = {};
    bool with_key = false;        // signed with a key and no certificate
    const char* hash = "SHA256";  // of the signature
    std::string log_hash = "sha256";
    Time time = at("2026-03-01T12:00:00Z");
    bool promise = true;     // Rekor v1: a signed time
    bool timestamp = false;  // RFC 3161; Rekor v2 has it always, unless:
    bool no_timestamp = false;
    bool embed_certificate = false;  // in the timestamp
    std::optional<Time> timestamp_time = {};
    std::optional<std::string> timestamped = {};  // other bytes than the signature
    bool foreign_timestamp = false;               // by an authority that nobody knows
    std::optional<Time> integrated_time = {};
    std::string also_signs = {};                     // lines of witnesses, put before the log's own
    std::function<void(Json& body)> edit_body = {};  // before it is logged
    std::function<void(std::string& text)> edit_checkpoint = {};  // before it is signed
    std::function<void(Json& bundle)> edit_bundle = {};           // when all is done
};

struct RootSpec {
    std::string start = "2026-01-01T00:00:00Z";
    std::string end = {};  // of the log of signatures; empty: none
    std::string authority_end = {}, timestamp_end = {}, certificate_log_end = {};
    std::function<void(Json& root)> edit = {};
};

class Instance {
public:
    Instance();

    std::string trusted_root(const RootSpec& spec = {}) const;
    // The JSON of a bundle over these bytes.
    std::string sign(std::string_view artifact, const SignatureSpec& spec = {}) const;
    const SigningKey& managed_key() const { return managed_; }  // for with_key

private:
    struct Signed;
    MadeCertificate issue(const SignatureSpec& spec, const SigningKey& key) const;
    Json log_body(const SignatureSpec& spec, const Signed& made) const;
    Json log_entry(const SignatureSpec& spec, const Signed& made) const;
    std::string checkpoint(const SignatureSpec& spec, std::uint64_t size,
                           const std::string& root) const;
    std::string timestamp(const SignatureSpec& spec, const std::string& signature) const;

    SigningKey authority_key_, between_key_, certificate_log_, rekor1_, rekor2_, stamp_root_key_,
        stamp_key_, managed_, foreign_key_;
    std::optional<MadeCertificate> authority_, between_, stamp_root_, stamp_, foreign_root_,
        foreign_stamp_;
    std::string rekor2_id_;
};

std::string statement_over(std::string_view artifact);  // in-toto, version 1

}  // namespace twinkle::test
