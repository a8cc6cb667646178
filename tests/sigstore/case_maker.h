#pragma once
// Makes the generated cases: a correct signature with one change.

#include <functional>
#include <string>
#include <vector>

#include "cases.h"

namespace twinkle::test {

inline constexpr const char* signed_text = "what is signed\n";

// Places in a bundle.
inline const std::string entry_place = "verificationMaterial/tlogEntries/0";
inline const std::string proof_place = entry_place + "/inclusionProof";
inline const std::string stamps_place =
    "verificationMaterial/timestampVerificationData/rfc3161Timestamps";

Json& place(Json& bundle, const std::string& path);

// Changes to a finished bundle.
using Edit = std::function<void(Json& bundle)>;
Edit set(const std::string& path, Json value);
Edit remove(const std::string& path, const std::string& key);
Edit flip(const std::string& path);           // one bit of the middle byte of a base64 value
Edit flip_near_end(const std::string& path);  // in the value of a signature, not in its form

class Cases {
public:
    explicit Cases(const Instance& instance) : instance_(instance) {}

    SignatureCase& add(const std::string& name, std::optional<sigstore::Reason> refused,
                       const SignatureSpec& spec, const RootSpec& root = {});
    SignatureCase& edit(const std::string& name, std::optional<sigstore::Reason> refused,
                        const SignatureSpec& base, Edit change);

    std::vector<SignatureCase> take() { return std::move(cases_); }

private:
    const Instance& instance_;
    std::vector<SignatureCase> cases_;
};

// log_cases.cpp: proofs, checkpoints, promises and bodies of entries.
void add_log_cases(Cases& cases);

}  // namespace twinkle::test
