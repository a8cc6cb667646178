#pragma once
// The output of a command: the result to stdout, messages for a person to stderr, errors in one
// format. With --json both are JSON objects and nothing else.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/table.h"
#include "base/terminal.h"
#include "twinkle/error.h"

namespace twinkle::cli {

struct Globals {
    bool quiet = false;
    int verbosity = 0;  // 0, 1 (-v), 2 (-vv)
    base::ColorMode color = base::ColorMode::automatic;
    bool json = false;
    bool offline = false;
    std::optional<std::filesystem::path> project;
};

class Console {
public:
    explicit Console(Globals globals);

    const Globals& globals() const { return globals_; }
    bool json() const { return globals_.json; }

    // Writes to stdout. Throws Error(failed) if it cannot be written; ends quietly if nobody reads
    // it.
    void result(std::string_view text);
    void result(std::string_view command, base::Json document);  // adds schema, and warnings if any
    void result(const base::Table& table);                       // as wide as the terminal is
    bool result_color() const { return result_color_; }
    std::size_t result_columns() const { return base::terminal_columns(1); }

    // Write to stderr.
    void note(std::string_view text) { say(0, text); }    // unless --quiet
    void detail(std::string_view text) { say(1, text); }  // -v
    void trace(std::string_view text) { say(2, text); }   // -vv
    void warn(std::string_view text);
    void error(const Error& error);
    base::Progress& progress() { return progress_; }

private:
    void say(int verbosity, std::string_view text);
    void write_error(std::string_view text);

    Globals globals_;
    bool result_color_;
    bool error_color_;
    base::Progress progress_;
    std::vector<std::string> warnings_;  // with --json: they go into the result
};

}  // namespace twinkle::cli
