#include "operations/build_tuning.h"

#include <algorithm>
#include <cstdlib>

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

// None: there is no such file. Throws Error(malformed).
std::optional<tuning::Declaration> read(const fs::path& build) {
    const fs::path file = build / tuning::declaration_name;
    std::error_code error;
    if (!fs::exists(file, error)) {
        return std::nullopt;
    }
    const std::string text =
        base::read_file(file, "tuning of a build", tuning::largest_declaration);
    return tuning::read_declaration(text, tuning::declaration_name);
}

// "file:line:column"; 0: no line.
int line_in(const std::string& where) {
    const auto parts = base::split(where, ':');
    return parts.size() >= 3 ? std::atoi(parts[parts.size() - 2].c_str()) : 0;
}

std::string text_of(const ErrorDetails& details) {
    return details.what + (details.why.empty() ? "" : ": " + details.why);
}

}  // namespace

std::optional<tuning::Declaration> read_build_tuning(const fs::path& build,
                                                     std::vector<kernel::Problem>& problems) {
    try {
        return read(build);
    } catch (const Error& error) {
        const ErrorDetails& details = error.details();
        problems.push_back({tuning::declaration_name, line_in(details.where), text_of(details)});
        return std::nullopt;
    }
}

void check_build_tuning(const fs::path& build, const std::vector<std::string>& operators,
                        const std::string& shown, kernel::Findings& findings) {
    const std::string file = shown + tuning::declaration_name;
    try {
        const auto declaration = read(build);
        for (const auto& tuned :
             declaration ? declaration->operators : std::vector<tuning::OperatorTuning>()) {
            if (std::find(operators.begin(), operators.end(), tuned.name) == operators.end()) {
                findings.push_back({"tuning/operator", kernel::Severity::warning,
                                    "there is no operator " + base::printable(tuned.name), file,
                                    tuned.line, base::suggestion(tuned.name, operators)});
            }
        }
    } catch (const Error& error) {
        const ErrorDetails& details = error.details();
        findings.push_back({"tuning/toml", kernel::Severity::error, text_of(details), file,
                            line_in(details.where), details.hint});
    }
}

}  // namespace twinkle::operations
