// twinkle completions: the completion script of a shell.

#include "cli/command.h"
#include "cli/completion_scripts.h"
#include "cli/console.h"

namespace twinkle::cli {
namespace {

int run_completions(const Arguments& arguments, Console& console) {
    const auto shell = *arguments.text("SHELL");
    const auto all = commands();
    if (shell != "bash" && shell != "zsh" && shell != "fish") {
        throw Error(ErrorCode::malformed, {.what = "there are no completions for '" + shell + "'",
                                           .where = {},
                                           .why = {},
                                           .hint = "choose one of bash, zsh, fish"});
    }
    const auto script = shell == "bash"  ? bash_completion(all)
                        : shell == "zsh" ? zsh_completion(all)
                                         : fish_completion(all);
    if (console.json()) {
        console.result("completions", {{"shell", shell}, {"script", script}});
    } else {
        console.result(script);
    }
    return 0;
}

}  // namespace

Command completions_command() {
    return {.name = "completions",
            .summary = "Print the completion script of a shell",
            .description =
                "The script completes commands, options and their values. An installed twinkle "
                "brings it along; this command is for shells that look elsewhere.",
            .arguments = {{.name = "SHELL",
                           .help = "bash, zsh or fish",
                           .kind = ValueKind::choice,
                           .choices = {"bash", "zsh", "fish"}}},
            .options = {},
            .examples = {{"Complete in this bash", "source <(twinkle completions bash)"},
                         {"Complete in every fish",
                          "twinkle completions fish > ~/.config/fish/completions/twinkle.fish"}},
            .run = run_completions};
}

}  // namespace twinkle::cli
