#pragma once
// SHA-256, computed while data is read anyway.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace twinkle::base {

class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(std::string_view bytes);
    std::string finish_hex();    // 64 lower-case hex digits; the object is spent afterwards
    std::string finish_bytes();  // 32 raw bytes

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

struct FileHash {
    std::uint64_t size = 0;
    std::string sha256;  // hex
};

// Streams the file; never holds more than one buffer. Missing: not_found; unreadable: failed.
FileHash hash_file(const std::filesystem::path& path);

}  // namespace twinkle::base
