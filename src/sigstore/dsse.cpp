#include "sigstore/dsse.h"

#include <algorithm>

#include "base/json.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr base::JsonLimits statement_limits{.bytes = 32u << 20, .depth = 64};

[[noreturn]] void unsupported(std::string why) {
    throw Refusal(Reason::unsupported, "what is signed is " + std::move(why));
}

base::Json read_statement(const Envelope& envelope) {
    if (envelope.payload_type != "application/vnd.in-toto+json") {
        unsupported("of another type than an in-toto statement");
    }
    base::Json statement;
    try {
        statement = base::parse_json(envelope.payload, "the signed statement", statement_limits);
    } catch (const Error& error) {
        unsupported("no JSON: " + error.details().why);
    }
    const auto type = statement.is_object() ? statement.find("_type") : statement.end();
    if (type == statement.end() || (*type != "https://in-toto.io/Statement/v1" &&
                                    *type != "https://in-toto.io/Statement/v0.1")) {
        unsupported("no in-toto statement of version 0.1 or 1");
    }
    return statement;
}

bool fits(const base::Json& subject,
          const std::function<std::string(HashAlgorithm)>& artifact_hash) {
    const auto digest = subject.is_object() ? subject.find("digest") : subject.end();
    if (digest == subject.end() || !digest->is_object()) {
        return false;
    }
    bool any = false;
    for (const auto& [name, value] : digest->items()) {
        const auto algorithm = hash_from_name(name);
        if (!algorithm) {
            continue;
        }
        const auto said =
            value.is_string() ? base::from_hex(value.get_ref<const std::string&>()) : std::nullopt;
        if (!said || *said != artifact_hash(*algorithm)) {
            return false;
        }
        any = true;
    }
    return any;
}

}  // namespace

std::string pre_authentication_encoding(const Envelope& envelope) {
    return "DSSEv1 " + std::to_string(envelope.payload_type.size()) + " " + envelope.payload_type +
           " " + std::to_string(envelope.payload.size()) + " " + envelope.payload;
}

void expect_subject(const Envelope& envelope,
                    const std::function<std::string(HashAlgorithm)>& artifact_hash) {
    const auto statement = read_statement(envelope);
    const auto subjects = statement.find("subject");
    if (subjects == statement.end() || !subjects->is_array() ||
        std::none_of(subjects->begin(), subjects->end(),
                     [&](const base::Json& subject) { return fits(subject, artifact_hash); })) {
        throw Refusal(Reason::content_differs, "the signed statement does not name it");
    }
}

}  // namespace twinkle::sigstore
