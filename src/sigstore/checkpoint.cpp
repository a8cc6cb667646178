#include "sigstore/checkpoint.h"

#include <charconv>

#include "base/base64.h"
#include "base/text.h"
#include "sigstore/refusal.h"

namespace twinkle::sigstore {
namespace {

constexpr std::size_t hint_size = 4;
constexpr std::size_t most_signatures = 100;
constexpr std::string_view dash = "\xe2\x80\x94 ";  // an em dash and a space

[[noreturn]] void malformed(std::string_view why) {
    throw Refusal(Reason::malformed, "the checkpoint of its log entry " + std::string(why));
}

std::uint64_t read_size(std::string_view line) {
    std::uint64_t size = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), size);
    if (error != std::errc() || rest != line.data() + line.size() ||
        (line.size() > 1 && line.front() == '0')) {
        malformed("does not say the size of the log");
    }
    return size;
}

NoteSignature read_signature(std::string_view line) {
    const auto space =
        line.starts_with(dash) ? line.find(' ', dash.size()) : std::string_view::npos;
    const auto bytes = space == std::string_view::npos || space == dash.size()
                           ? std::nullopt
                           : base::from_base64(line.substr(space + 1));
    if (!bytes || bytes->size() <= hint_size) {
        malformed("has a malformed signature");
    }
    return {std::string(line.substr(dash.size(), space - dash.size())), bytes->substr(0, hint_size),
            bytes->substr(hint_size)};
}

// Rekor v1 signs under "host" a checkpoint of origin "host - number of the tree"; all other logs
// under their origin.
bool names_origin(std::string_view name, std::string_view origin) {
    return origin == name ||
           (origin.starts_with(name) && origin.substr(name.size()).starts_with(" - "));
}

}  // namespace

Checkpoint parse_checkpoint(std::string_view note) {
    const auto blank = note.find("\n\n");
    if (blank == std::string_view::npos || note.find("\n\n", blank + 1) != std::string_view::npos ||
        !note.ends_with('\n')) {
        malformed("is no signed note");
    }
    Checkpoint checkpoint;
    checkpoint.signed_text = note.substr(0, blank + 1);
    const auto lines = base::split(note.substr(0, blank), '\n');
    if (lines.size() < 3 || lines[0].empty()) {
        malformed("does not have origin, size and root hash");
    }
    checkpoint.origin = lines[0];
    checkpoint.size = read_size(lines[1]);
    auto root = base::from_base64(lines[2]);
    if (!root || root->size() != hash_size(HashAlgorithm::sha256)) {
        malformed("does not have a root hash");
    }
    checkpoint.root_hash = std::move(*root);
    const auto rest = note.substr(blank + 2);
    for (const auto& line : base::split(rest.substr(0, rest.empty() ? 0 : rest.size() - 1), '\n')) {
        if (checkpoint.signatures.size() == most_signatures) {
            malformed("has too many signatures");
        }
        checkpoint.signatures.push_back(read_signature(line));
    }
    return checkpoint;
}

void verify_checkpoint(const Checkpoint& checkpoint, const TransparencyLog& log,
                       std::string_view log_id) {
    bool found = false;
    for (const auto& [name, hint, signature] : checkpoint.signatures) {
        if (hint != log_id.substr(0, hint_size) || !names_origin(name, checkpoint.origin)) {
            continue;
        }
        if (!log.key.verify(log.hash, checkpoint.signed_text, signature)) {
            throw Refusal(Reason::invalid,
                          "the checkpoint of its log entry is not what the log signed");
        }
        found = true;
    }
    if (!found) {
        throw Refusal(Reason::invalid, "the checkpoint of its log entry is not signed by the log");
    }
}

}  // namespace twinkle::sigstore
