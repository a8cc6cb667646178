#include "base/sha256.h"

#include "base/evp.h"
#include "base/file.h"

namespace twinkle::base {

struct Sha256::State {
    EvpDigest digest{DigestKind::sha256};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
    state_->digest.update(bytes);
}
std::string Sha256::finish_bytes() {
    return state_->digest.finish();
}
std::string Sha256::finish_hex() {
    return to_hex(finish_bytes());
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish_hex();
}

FileHash hash_file(const std::filesystem::path& path) {
    Sha256 hash;
    const auto size =
        stream_file(path, "file", [&](std::string_view bytes) { hash.update(bytes); });
    return {size, hash.finish_hex()};
}

}  // namespace twinkle::base
