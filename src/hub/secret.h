#pragma once
// A token that cannot be printed: no stream operator, no conversion, no comparison with text. It
// lies in memory of its own, which is left out of core dumps and zeroed at the end.

#include <memory>
#include <string_view>

namespace twinkle::hub {

class Secret {
public:
    Secret() = default;
    explicit Secret(std::string_view value);

    bool empty() const { return buffer_ == nullptr; }
    // Only for the request that it authorizes.
    std::string_view reveal() const;

private:
    class Buffer;
    std::shared_ptr<const Buffer> buffer_;
};

// Text that held a secret for a moment.
void wipe(char* bytes, std::size_t size);

// Libraries below (TLS, HTTP) hold copies of what they send: a program that has a token and wants
// no trace of it in a core file asks the system for none. For the command line; programs that use
// twinkle as a library decide for themselves.
void refuse_core_dumps();

}  // namespace twinkle::hub
