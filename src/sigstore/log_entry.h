#pragma once
// Verifies an entry of a transparency log: that the log has it, and since when.

#include "sigstore/bundle.h"
#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

// The log that the entry names. Throws Refusal(root_too_old) if the root does not know it.
const TransparencyLog& find_log(const LogEntry& entry, const TrustedRoot& root);

// The time that Rekor v1 signed, if it did; Rekor v2 has none. Throws Refusal(invalid) for a wrong
// signature, Refusal(root_too_old) if the root does not vouch for the log at that time.
std::optional<Time> verify_promise(const LogEntry& entry, const TransparencyLog& log,
                                   const TrustedRoot& root);

// Requires an audit path to the root hash of a checkpoint that the log signed. Throws
// Refusal(invalid) or Refusal(malformed).
void verify_inclusion(const LogEntry& entry, const TransparencyLog& log);

// Requires that the root vouches for the log at that time. Throws Refusal(root_too_old).
void expect_valid_log(const TransparencyLog& log, Time at, const TrustedRoot& root);

}  // namespace twinkle::sigstore
