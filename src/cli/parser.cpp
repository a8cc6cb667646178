#include "cli/parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/text.h"

namespace twinkle::cli {
namespace {

constexpr const char* help_hint = "twinkle --help lists the commands and options";

// CLI11's objects for the options and arguments of a declaration, to be read after parsing.
struct Bound {
    std::string key;
    CLI::Option* option;
    bool flag;
};

Bound bind(CLI::App& app, const Option& declared) {
    CLI::Option* option = nullptr;
    if (declared.value.empty()) {
        option = app.add_flag(declared.names);
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->disable_flag_override();
    } else if (declared.value_optional) {
        option = app.add_flag(declared.names);
        option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    } else {
        option = app.add_option(declared.names, [](const CLI::results_t&) { return true; });
        option->type_size(1)->expected(1)->allow_extra_args(false);
        option->multi_option_policy(declared.repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                        : CLI::MultiOptionPolicy::Throw);
    }
    return {declared.key(), option, declared.value.empty()};
}

Bound bind(CLI::App& app, const Argument& declared) {
    auto* option = app.add_option(declared.name, [](const CLI::results_t&) { return true; });
    option->type_size(1)->required(declared.required);
    option->expected(1, declared.repeatable ? CLI::detail::expected_max_vector_size : 1);
    option->allow_extra_args(declared.repeatable);
    return {declared.name, option, false};
}

Arguments read(const std::vector<Bound>& bound) {
    Arguments arguments;
    for (const auto& [key, option, flag] : bound) {
        arguments.declare(key);
        for (std::size_t i = 0; flag && i < option->count(); ++i) {
            arguments.add(key, Arguments::given);
        }
        for (const auto& value : flag ? CLI::results_t{} : option->results()) {
            arguments.add(key, value);
        }
    }
    return arguments;
}

[[noreturn]] void wrong_usage(std::string what, const Command* command,
                              const std::optional<std::string>& nearest, std::string why = {}) {
    const std::string more =
        command != nullptr ? "twinkle " + command->name + " --help shows its options" : help_hint;
    throw Error(ErrorCode::malformed,
                {.what = std::move(what),
                 .where = {},
                 .why = std::move(why),
                 .hint = nearest ? "did you mean '" + *nearest + "'? " + more : more});
}

[[noreturn]] void unexpected(const std::string& word, const Command* command,
                             const std::vector<Command>& commands) {
    std::vector<std::string> known;
    if (word.size() > 1 && word.front() == '-') {
        const auto name = word.substr(0, word.find('='));
        const auto add = [&](const std::vector<Option>& options) {
            for (const auto& option : options) {
                for (const auto& spelling : option.spellings()) {
                    if (spelling.starts_with("--")) {
                        known.push_back(spelling);
                    }
                }
            }
        };
        if (command != nullptr) {
            add(command->options);
        }
        add(global_options());
        wrong_usage("unknown option '" + name + "'", command, base::nearest(name, known));
    }
    if (command != nullptr) {
        wrong_usage("one argument too many: '" + word + "'", command, {},
                    "usage: " + command->synopsis());
    }
    for (const auto& candidate : commands) {
        if (!candidate.hidden) {
            known.push_back(candidate.name);
        }
    }
    wrong_usage("unknown command '" + word + "'", nullptr, base::nearest(word, known));
}

Globals read_globals(const Arguments& given) {
    Globals globals;
    globals.quiet = given.flag("quiet");
    globals.verbosity = static_cast<int>(std::min<std::size_t>(given.list("verbose").size(), 2));
    if (globals.quiet && globals.verbosity > 0) {
        wrong_usage("--quiet and --verbose exclude each other", nullptr, {});
    }
    const auto color = given.text("color");
    globals.color = color == "always"  ? base::ColorMode::always
                    : color == "never" ? base::ColorMode::never
                                       : base::ColorMode::automatic;
    globals.json = given.flag("json");
    globals.offline = given.flag("offline");
    globals.project = given.text("project");
    return globals;
}

void check_choice(const std::string& name, const std::string& value,
                  const std::vector<std::string>& choices, const Command* command) {
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
        wrong_usage(name + " cannot be '" + value + "'", command, base::nearest(value, choices),
                    "it is one of " + base::join(choices, ", "));
    }
}

bool names_files(ValueKind kind) {
    return kind == ValueKind::file || kind == ValueKind::folder;
}

void check_values(const std::vector<Option>& options, const Arguments& given,
                  const Command* command) {
    for (const auto& option : options) {
        const auto values = given.list(option.key());
        if (names_files(option.kind) &&
            std::find(values.begin(), values.end(), "") != values.end()) {
            wrong_usage("--" + option.key() + " needs a value", command, {});
        }
        for (const auto& value :
             option.restricted ? given.list(option.key()) : std::vector<std::string>{}) {
            if (option.value_optional && value == Arguments::given) {
                continue;
            }
            check_choice("--" + option.key(), value, option.choices, command);
        }
    }
}

void check_values(const std::vector<Argument>& arguments, const Arguments& given,
                  const Command* command) {
    for (const auto& argument : arguments) {
        for (const auto& value :
             argument.restricted ? given.list(argument.name) : std::vector<std::string>{}) {
            check_choice(argument.name, value, argument.choices, command);
        }
    }
}

// Rewords CLI11's exceptions.
[[noreturn]] void rethrow(const CLI::ParseError& error, const CLI::App& app, const Command* command,
                          const std::vector<Command>& commands) {
    if (const auto rest = app.remaining(true); !rest.empty()) {
        unexpected(rest.front(), command, commands);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && command != nullptr) {
        for (const auto& argument : command->arguments) {
            if (argument.required && app.get_subcommand(command->name)->count(argument.name) == 0) {
                wrong_usage(argument.name + " is missing", command, {},
                            "usage: " + command->synopsis());
            }
        }
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        wrong_usage("no command is given", nullptr, {});
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        // "--output: 1 required …", the only place where CLI11 names the option
        const std::string_view text = error.what();
        const std::string name(text.substr(0, text.find(':')));
        const bool missing = text.find("missing") != std::string_view::npos;
        const bool twice = text.find("At Most") != std::string_view::npos;
        if (name.starts_with("--") && (missing || twice)) {
            wrong_usage(name + (missing ? " needs a value" : " is given twice"), command, {});
        }
    }
    wrong_usage("the command line is not understood", command, {}, error.what());
}

}  // namespace

Parsed parse(int argc, const char* const* argv, const std::vector<Command>& commands) {
    CLI::App app;
    app.set_help_flag();
    app.require_subcommand(0, 1);
    const auto globals = global_options();
    std::vector<Bound> bound_globals;
    for (const auto& option : globals) {
        bound_globals.push_back(bind(app, option));
    }
    std::vector<std::pair<CLI::App*, std::vector<Bound>>> bound;
    for (const auto& command : commands) {
        auto* sub = app.add_subcommand(command.name)->fallthrough();
        sub->set_help_flag();
        auto& [_, items] = bound.emplace_back(sub, std::vector<Bound>{});
        for (const auto& option : command.options) {
            items.push_back(bind(*sub, option));
        }
        for (const auto& argument : command.arguments) {
            items.push_back(bind(*sub, argument));
        }
    }
    Parsed parsed;
    const auto find_command = [&] {
        for (std::size_t i = 0; i < commands.size(); ++i) {
            if (bound[i].first->parsed()) {
                parsed.command = &commands[i];
                parsed.arguments = read(bound[i].second);
            }
        }
    };
    try {
        app.parse(argc, argv);
        find_command();
    } catch (const CLI::ParseError& error) {
        find_command();
        // --help works on an unfinished command line, but not for a command that does not
        // exist.
        const auto rest = app.remaining(true);
        const bool unknown =
            parsed.command == nullptr && !rest.empty() && !rest.front().starts_with('-');
        if (unknown || (app.count("--help") == 0 && app.count("--version") == 0)) {
            rethrow(error, app, parsed.command, commands);
        }
    }
    const auto given = read(bound_globals);
    parsed.action = given.flag("help")      ? Parsed::Action::help
                    : given.flag("version") ? Parsed::Action::version
                                            : Parsed::Action::run;
    parsed.globals = read_globals(given);
    check_values(globals, given, nullptr);
    if (parsed.action == Parsed::Action::run && parsed.command != nullptr) {
        check_values(parsed.command->options, parsed.arguments, parsed.command);
        check_values(parsed.command->arguments, parsed.arguments, parsed.command);
    }
    return parsed;
}

Globals output_options(int argc, const char* const* argv) {
    Globals globals;
    bool is_color = false;  // this word is the value of --color
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        std::string_view word = argv[i];
        globals.json = globals.json || word == "--json";
        if (word.starts_with("--color=")) {
            word.remove_prefix(std::string_view("--color=").size());
            is_color = true;
        }
        if (is_color && (word == "always" || word == "never")) {
            globals.color = word == "always" ? base::ColorMode::always : base::ColorMode::never;
        }
        is_color = word == "--color";
    }
    return globals;
}

}  // namespace twinkle::cli
