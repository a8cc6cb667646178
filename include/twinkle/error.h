#pragma once
// The one error type of twinkle. Every failure says what failed, on which file or repository,
// why, and what to do next; the code decides the exit status of the command line.

#include "twinkle/api.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace twinkle {

// The values are the exit codes of the command line.
enum class ErrorCode : int {
    failed = 1,        // outside twinkle: disk, memory, a crash of its own worker
    malformed = 2,     // wrong usage, or a file that is not what it should be
    not_found = 3,     // repository, revision, kernel, layer, file, or no variant for the target
    verification = 4,  // a hash, digest, signature or value differs
    unreachable = 5,   // the Hub cannot be reached or refuses, or offline and not cached
    refused = 6,       // incompatible, unloadable, untrusted, crashed, or a fallback not allowed
    out_of_date = 7,   // the lock does not fit the manifest
    interrupted = 130,
};

// "failed", "malformed", "not-found", …: the spelling used in JSON.
TWINKLE_API std::string_view error_code_name(ErrorCode code);

struct TWINKLE_API ErrorDetails {
    std::string what;   // what failed, a sentence without a final full stop
    std::string where;  // file[:line[:column]], URL, repository or module path; may be empty
    std::string why;    // the cause, as far as it is known; may be empty
    std::string hint;   // what to do next; may be empty
};

class TWINKLE_API Error : public std::runtime_error {
public:
    Error(ErrorCode code, ErrorDetails details);

    ErrorCode code() const { return code_; }
    int exit_code() const { return static_cast<int>(code_); }
    const ErrorDetails& details() const { return details_; }

    // All details on a few lines, as the command line prints them without colour.
    // what() of the base class returns the same text.
    static std::string format(const ErrorDetails& details);

private:
    ErrorCode code_;
    ErrorDetails details_;
};

}  // namespace twinkle
