#pragma once
// Checkpoints: the size and the root hash of a log as a note that the log, and perhaps witnesses,
// signed (https://github.com/C2SP/C2SP, tlog-checkpoint and signed-note).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/trusted_root.h"

namespace twinkle::sigstore {

struct NoteSignature {
    std::string name;
    std::string hint;  // four bytes of the key's id
    std::string signature;
};

struct Checkpoint {
    std::string origin;
    std::uint64_t size = 0;
    std::string root_hash;
    std::string signed_text;
    std::vector<NoteSignature> signatures;
};

// Throws Refusal(malformed).
Checkpoint parse_checkpoint(std::string_view note);

// Checks the signature of that log, as entries name it. Ignores signatures by others. Throws
// Refusal(invalid).
void verify_checkpoint(const Checkpoint& checkpoint, const TransparencyLog& log,
                       std::string_view log_id);

}  // namespace twinkle::sigstore
