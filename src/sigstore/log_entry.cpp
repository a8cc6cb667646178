#include "sigstore/log_entry.h"

#include "base/base64.h"
#include "sigstore/checkpoint.h"
#include "sigstore/merkle.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

bool is_rekor_v2(const LogEntry& entry) {
    return entry.version == "0.0.2" && entry.kind != "intoto";
}

// The bytes that Rekor v1 signs: the canonical JSON (RFC 8785) of these four fields.
std::string promised_text(const LogEntry& entry) {
    return "{\"body\":\"" + base::to_base64(entry.body) +
           "\",\"integratedTime\":" + std::to_string(entry.integrated_time) + ",\"logID\":\"" +
           base::to_hex(entry.log_id) + "\",\"logIndex\":" + std::to_string(entry.log_index) + "}";
}

}  // namespace

const TransparencyLog& find_log(const LogEntry& entry, const TrustedRoot& root) {
    const auto* log = root.signature_log(entry.log_id);
    if (log == nullptr) {
        throw Refusal(Reason::root_too_old,
                      root.description() + " does not know the log " +
                          base::to_hex(entry.log_id).substr(0, 16) +
                          "…: the root is older than the log, or of another Sigstore instance",
                      newer_root_hint(root));
    }
    return *log;
}

void expect_valid_log(const TransparencyLog& log, Time at, const TrustedRoot& root) {
    if (!log.valid_at(at)) {
        throw Refusal(Reason::root_too_old,
                      root.description() + " does not vouch for the log " + log.url + " at " +
                          format_time(at),
                      newer_root_hint(root));
    }
}

std::optional<Time> verify_promise(const LogEntry& entry, const TransparencyLog& log,
                                   const TrustedRoot& root) {
    if (!entry.promise || entry.integrated_time == 0) {
        return std::nullopt;
    }
    const auto time = time_from_seconds(static_cast<std::int64_t>(entry.integrated_time));
    if (!time || is_rekor_v2(entry)) {
        throw Refusal(Reason::malformed, "the time of its log entry is none that such a log gives");
    }
    expect_valid_log(log, *time, root);
    if (!log.key.verify(log.hash, promised_text(entry), *entry.promise)) {
        throw Refusal(Reason::invalid, "the time of its log entry is not what the log signed");
    }
    return time;
}

void verify_inclusion(const LogEntry& entry, const TransparencyLog& log) {
    const auto& proof = entry.proof;
    if (is_rekor_v2(entry) && entry.log_index != proof.log_index) {
        throw Refusal(Reason::invalid, "its log entry has two numbers");
    }
    const auto root = root_of_path(entry.body, proof.log_index, proof.tree_size, proof.hashes);
    if (!root || *root != proof.root_hash) {
        throw Refusal(Reason::invalid, "the proof that the log has its entry does not hold");
    }
    const auto checkpoint = parse_checkpoint(proof.checkpoint);
    verify_checkpoint(checkpoint, log, entry.log_id);
    if (checkpoint.root_hash != proof.root_hash || checkpoint.size != proof.tree_size) {
        throw Refusal(Reason::invalid,
                      "the checkpoint of its log entry is of another state of the log");
    }
}

}  // namespace twinkle::sigstore
