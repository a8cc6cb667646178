#pragma once
// Reads lines from a pipe, within limits.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace twinkle::child {

class LineReader {
public:
    enum class State { open, ended, too_long, too_much };

    LineReader(std::size_t longest, std::size_t most,
               const std::function<void(std::string_view)>& receive)
        : longest_(longest), most_(most), receive_(receive) {}

    // Reads once; passes on every complete line.
    State read(int descriptor);

private:
    std::size_t longest_;
    std::size_t most_;
    const std::function<void(std::string_view)>& receive_;
    std::string pending_;
    std::size_t total_ = 0;
};

}  // namespace twinkle::child
