#include "runtime/verify/run_error.h"

#include "base/text.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

constexpr const char* not_run = "it cannot be run: ";
constexpr const char* not_captured = "it cannot be captured: ";

}  // namespace

std::string run_error(const std::string& text) {
    std::string line = text;
    for (const std::string& part : base::split(text, '\n')) {
        // TorchScript puts the stack of the model's source first and the message last.
        if (part.find("Error: ") != std::string::npos || part.starts_with("expected ")) {
            line = part;
        }
    }
    const auto end = line.find('\n');
    line = base::printable(line.substr(0, std::min<std::size_t>(end, 300)));
    if (line.find("index out of range") != std::string::npos) {
        line +=
            "; an index, such as a token id of the inputs, is not below the number of rows of "
            "the table (an embedding) that it is looked up in";
    }
    return line;
}

std::string cannot_be_run(const std::string& text) {
    return not_run + run_error(text);
}

bool says_cannot_be_run(const std::string& problem) {
    return problem.find(not_run) != std::string::npos;
}

std::string cannot_be_captured(const std::string& text) {
    return not_captured + run_error(text);
}

bool says_cannot_be_captured(const std::string& problem) {
    return problem.starts_with(not_captured);
}

}  // namespace twinkle::runtime
