#pragma once
// A token that cannot be printed: no stream operator, no conversion, no comparison with text. Its
// memory is its own, excluded from core dumps and zeroed at the end.

#include <memory>
#include <string_view>

namespace twinkle::hub {

class Secret {
public:
    Secret() = default;
    explicit Secret(std::string_view value);

    bool empty() const { return buffer_ == nullptr; }
    // Is only for the request that it authorizes.
    std::string_view reveal() const;

private:
    class Buffer;
    std::shared_ptr<const Buffer> buffer_;
};

// Zeroes text that held a secret for a moment.
void wipe(char* bytes, std::size_t size);

// Disables core dumps of this process: libraries below (TLS, HTTP) hold copies of a token that they
// send, and no trace of it should be in a core file. For the command line; programs that use
// twinkle as a library decide for themselves.
void refuse_core_dumps();

}  // namespace twinkle::hub
