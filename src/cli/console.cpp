#include "cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "base/write_all.h"
#include "protocol/error_json.h"

namespace twinkle::cli {
namespace {

// Makes text from files and kernels safe for a terminal, but keeps line breaks.
std::string printable_lines(std::string_view text) {
    auto lines = base::split(text, '\n');
    for (auto& line : lines) {
        line = base::printable(line);
    }
    return base::join(lines, "\n");
}

}  // namespace

Console::Console(Globals globals)
    : globals_(std::move(globals)),
      result_color_(base::wants_color(globals_.color, STDOUT_FILENO)),
      error_color_(base::wants_color(globals_.color, STDERR_FILENO)),
      progress_(STDERR_FILENO, !globals_.quiet && !globals_.json) {}

void Console::result(std::string_view text) {
    progress_.clear();
    const int error = base::write_all(STDOUT_FILENO, text);
    if (error == EPIPE) {  // ends silently, like a program that SIGPIPE ends
        std::signal(SIGPIPE, SIG_DFL);
        std::raise(SIGPIPE);
    }
    if (error != 0) {
        throw Error(ErrorCode::failed, {.what = "cannot write the result",
                                        .where = "standard output",
                                        .why = std::strerror(error),
                                        .hint = {}});
    }
}

void Console::result(std::string_view command, base::Json document) {
    document["schema"] = "twinkle." + std::string(command) + "/1";
    if (!warnings_.empty()) {
        auto& warnings = document["warnings"];
        if (!warnings.is_array()) {
            warnings = base::Json::array();
        }
        for (const auto& warning : warnings_) {
            warnings.push_back(warning);
        }
    }
    result(base::dump_json(document));
}

void Console::result(const base::Table& table) {
    result(table.render(result_columns(), result_color_));
}

void Console::say(int verbosity, std::string_view text) {
    // A script that asks for JSON reads stderr, too; it gets plain text only with -v.
    const bool wanted = verbosity == 0
                            ? !globals_.quiet && (!globals_.json || globals_.verbosity > 0)
                            : globals_.verbosity >= verbosity;
    if (wanted) {
        write_error(printable_lines(text) + "\n");
    }
}

void Console::warn(std::string_view text) {
    if (globals_.json) {
        warnings_.emplace_back(text);
        return;
    }
    write_error(base::styled("warning:", base::Style::yellow, error_color_) + " " +
                printable_lines(text) + "\n");
}

void Console::error(const Error& error) {
    const auto& details = error.details();
    if (globals_.json) {
        write_error(base::dump_json({{"error", protocol::to_json(error)}}));
        return;
    }
    write_error(base::styled("error:", base::Style::red, error_color_) + " " +
                printable_lines(Error::format(details)) + "\n");
}

void Console::write_error(std::string_view text) {
    progress_.clear();
    base::write_all(STDERR_FILENO, text);
}

}  // namespace twinkle::cli
