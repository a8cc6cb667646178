// twinkle man (hidden): the manual pages, and the generated files in the repository's man/ and
// completions/.

#include <filesystem>

#include "base/file.h"
#include "cli/command.h"
#include "cli/completion_scripts.h"
#include "cli/console.h"
#include "cli/man_page.h"

namespace twinkle::cli {
namespace {

// Names and contents of all generated files, relative to the repository.
std::vector<std::pair<std::string, std::string>> generated_files(const std::vector<Command>& all) {
    std::vector<std::pair<std::string, std::string>> files = {
        {"completions/twinkle.bash", bash_completion(all)},
        {"completions/_twinkle", zsh_completion(all)},
        {"completions/twinkle.fish", fish_completion(all)},
        {"man/twinkle.1", general_man_page(all)},
    };
    for (const auto& command : all) {
        if (!command.hidden) {
            files.emplace_back("man/twinkle-" + command.name + ".1", command_man_page(command));
        }
    }
    return files;
}

int run_man(const Arguments& arguments, Console& console) {
    const auto all = commands();
    if (const auto root = arguments.text("generate")) {
        for (const auto& [name, contents] : generated_files(all)) {
            const auto path = std::filesystem::path(*root) / name;
            std::filesystem::create_directories(path.parent_path());
            base::write_file_atomically(path, contents);
            console.detail(path.string());
        }
        return 0;
    }
    const auto name = arguments.text("COMMAND");
    if (!name) {
        console.result(general_man_page(all));
        return 0;
    }
    for (const auto& command : all) {
        if (command.name == *name) {
            console.result(command_man_page(command));
            return 0;
        }
    }
    throw Error(ErrorCode::not_found, {.what = "there is no command '" + *name + "'",
                                       .where = {},
                                       .why = {},
                                       .hint = "twinkle --help lists the commands"});
}

}  // namespace

Command man_command() {
    return {.name = "man",
            .summary = "Print a manual page",
            .description = "The page of a command, or of twinkle itself, in roff.",
            .arguments = {{.name = "COMMAND",
                           .help = "a command",
                           .kind = ValueKind::text,
                           .choices = {},
                           .required = false}},
            .options = {{.names = "--generate",
                         .value = "DIR",
                         .help = "Write every page to DIR/man and every completion script to "
                                 "DIR/completions instead",
                         .kind = ValueKind::folder}},
            .examples = {{"Read the page of kernelize", "twinkle man kernelize | man -l -"}},
            .run = run_man,
            .hidden = true};
}

}  // namespace twinkle::cli
