#include "cli/command.h"

#include <stdexcept>

#include "base/text.h"

namespace twinkle::cli {

std::vector<std::string> Option::spellings() const {
    return base::split(names, ',');
}

std::string Option::key() const {
    const auto last = spellings().back();
    return last.substr(last.find_first_not_of('-'));
}

std::string Option::value_usage() const {
    return value.empty() ? "" : value_optional ? "[=" + value + "]" : " " + value;
}

std::optional<std::string> Arguments::text(const std::string& key) const {
    const auto& values = list(key);
    return values.empty() ? std::nullopt : std::optional(values.back());
}

const std::vector<std::string>& Arguments::list(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) {
        throw std::logic_error("the option '" + key + "' is not declared");
    }
    return found->second;
}

std::string Command::synopsis() const {
    std::string text = "twinkle " + name;
    if (!options.empty()) {
        text += " [OPTION]…";
    }
    for (const auto& argument : arguments) {
        text += " " + argument.usage();
    }
    return text;
}

std::string Argument::usage() const {
    return (required ? name : "[" + name + "]") + (repeatable ? "…" : "");
}

std::vector<Command> commands() {
    return {init_command(),      add_command(),         remove_command(),      lock_command(),
            fetch_command(),     verify_command(),      verify_blob_command(), resolve_command(),
            kernelize_command(), convert_command(),     run_command(),         bench_command(),
            inspect_command(),   check_command(),       versions_command(),    info_command(),
            tree_command(),      outdated_command(),    cache_command(),       tune_command(),
            env_command(),       completions_command(), man_command()};
}

std::vector<Option> global_options() {
    return {
        {.names = "-h,--help", .value = "", .help = "Show the help of the command"},
        {.names = "--version", .value = "", .help = "Show the version of twinkle"},
        {.names = "-q,--quiet",
         .value = "",
         .help = "Say nothing but the result, warnings and errors"},
        {.names = "-v,--verbose",
         .value = "",
         .help = "Say more; -vv explains every decision and every attempt to load a file",
         .repeatable = true},
        {.names = "--color",
         .value = "WHEN",
         .help = "Colours: auto (on a terminal, unless NO_COLOR is set), always, never",
         .kind = ValueKind::choice,
         .choices = {"auto", "always", "never"},
         .restricted = true},
        {.names = "--json", .value = "", .help = "The result, or the error, as one JSON object"},
        {.names = "--offline", .value = "", .help = "Never use the network"},
        {.names = "--project",
         .value = "DIR",
         .help = "The folder of the manifest (default: the nearest parent folder that has one)",
         .kind = ValueKind::folder},
    };
}

}  // namespace twinkle::cli
