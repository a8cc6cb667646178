#pragma once
// A subcommand as one declaration, from which parser, help, man page and completions are made. A
// file per subcommand defines one `Command xxx_command()`; command.cpp lists them.

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::cli {

class Console;

// The kind of a value, for completions.
enum class ValueKind { text, file, folder, choice };

struct Option {
    std::string names;  // "-o,--output": the last one is the key in Arguments
    std::string value;  // "FILE"; empty for a flag
    std::string help;
    ValueKind kind = ValueKind::text;
    std::vector<std::string> choices = {};
    bool repeatable = false;
    bool restricted = false;      // the value must be one of the choices
    bool value_optional = false;  // a value only follows "=": --verify, --verify=given

    std::vector<std::string> spellings() const;
    std::string key() const;          // "output"
    std::string value_usage() const;  // " FILE", "[=SHAPES]"; empty for a flag
};

struct Argument {
    std::string name;  // "MODEL": also the key in Arguments
    std::string help;
    ValueKind kind = ValueKind::file;
    std::vector<std::string> choices = {};
    bool required = true;
    bool repeatable = false;
    bool restricted = false;  // the value must be one of the choices

    std::string usage() const;  // "MODEL", "[SPEC]…"
};

struct Example {
    std::string says;
    std::string line;
};

// The parsed arguments, by the keys of the declaration. Throws std::logic_error for a key that is
// not declared, which is a bug in twinkle.
class Arguments {
public:
    // The value of an option that was given without one.
    static constexpr const char* given = "true";

    void declare(const std::string& key) { values_.try_emplace(key); }
    void add(const std::string& key, std::string value) {
        values_[key].push_back(std::move(value));
    }

    bool flag(const std::string& key) const { return !list(key).empty(); }
    std::optional<std::string> text(const std::string& key) const;
    const std::vector<std::string>& list(const std::string& key) const;

private:
    std::map<std::string, std::vector<std::string>> values_;
};

struct Command {
    std::string name;
    std::string summary;      // one line, no final full stop
    std::string description;  // paragraphs, separated by empty lines
    std::vector<Argument> arguments;
    std::vector<Option> options;
    std::vector<Example> examples;
    int (*run)(const Arguments&, Console&) = nullptr;  // returns the exit status
    bool hidden = false;

    std::string synopsis() const;  // "twinkle kernelize [OPTION]… MODEL"
};

std::vector<Command> commands();       // every subcommand, in the order in which help lists them
std::vector<Option> global_options();  // accepted before and after the command

Command init_command();
Command lock_command();
Command fetch_command();
Command verify_command();
Command info_command();
Command tree_command();
Command outdated_command();
Command add_command();
Command remove_command();
Command cache_command();
Command tune_command();
Command env_command();
Command versions_command();
Command verify_blob_command();
Command resolve_command();
Command kernelize_command();
Command convert_command();
Command bench_command();
Command run_command();
Command inspect_command();
Command check_command();
Command completions_command();
Command man_command();

}  // namespace twinkle::cli
