#include "twinkle/error.h"

#include <utility>

namespace twinkle {

std::string_view error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::failed: return "failed";
        case ErrorCode::malformed: return "malformed";
        case ErrorCode::not_found: return "not-found";
        case ErrorCode::verification: return "verification";
        case ErrorCode::unreachable: return "unreachable";
        case ErrorCode::refused: return "refused";
        case ErrorCode::out_of_date: return "out-of-date";
        case ErrorCode::interrupted: return "interrupted";
    }
    return "failed";
}

Error::Error(ErrorCode code, ErrorDetails details)
    : std::runtime_error(format(details)), code_(code), details_(std::move(details)) {}

std::string Error::format(const ErrorDetails& details) {
    std::string text = details.what;
    const auto line = [&](std::string_view label, const std::string& value) {
        if (!value.empty()) {
            text.append("\n  ").append(label).append(value);
        }
    };
    line("where: ", details.where);
    line("why:   ", details.why);
    line("hint:  ", details.hint);
    return text;
}

}  // namespace twinkle
