// twinkle outdated: kernels with newer versions than the lock has.

#include "operations/outdated.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"

namespace twinkle::cli {
namespace {

using operations::OutdatedKernel;

base::Json kernel_json(const OutdatedKernel& kernel) {
    return {{"kernel", kernel.kernel},
            {"ref", kernel.ref.empty() ? base::Json() : base::Json(kernel.ref)},
            {"locked_commit", kernel.locked_commit},
            {"current_commit", kernel.current_commit},
            {"newest_version",
             kernel.newest_version ? base::Json(*kernel.newest_version) : base::Json()},
            {"newest_variant",
             kernel.newest_variant.empty() ? base::Json() : base::Json(kernel.newest_variant)},
            {"newest_fits", kernel.newest_version ? base::Json(kernel.newest_fits) : base::Json()},
            {"because", kernel.why_not.empty() ? base::Json() : base::Json(kernel.why_not)}};
}

void print_table(const std::vector<OutdatedKernel>& kernels, Console& console) {
    using base::Style;
    using base::Table;
    Table table({{"kernel", Table::Align::left, Table::Fit::wrap},
                 {"locked"},
                 {"now"},
                 {"newest version"},
                 {"its build for the target", Table::Align::left, Table::Fit::wrap}});
    for (const auto& kernel : kernels) {
        const auto locked = kernel.locked_commit.substr(0, 12);
        table.add({{kernel_text(kernel.kernel)},
                   {locked},
                   {kernel.moved() ? kernel.current_commit.substr(0, 12) : "the same",
                    kernel.moved() ? Style::yellow : Style::plain},
                   {kernel.newest_version ? std::to_string(*kernel.newest_version) : ""},
                   {!kernel.newest_version ? ""
                    : kernel.newest_fits   ? kernel.newest_variant
                                           : kernel.why_not,
                    kernel.newest_fits ? Style::green : Style::yellow}});
    }
    console.result(table);
}

int run_outdated(const Arguments& arguments, Console& console) {
    HubSession command(console, arguments.text("lockfile"));
    const auto kernels = operations::outdated(command.context(), arguments.list("target"));
    if (console.json()) {
        base::Json list = base::Json::array();
        for (const auto& kernel : kernels) {
            list.push_back(kernel_json(kernel));
        }
        console.result("outdated", {{"outdated", list}});
        return 0;
    }
    if (kernels.empty()) {
        console.note("everything is up to date");
        return 0;
    }
    print_table(kernels, console);
    console.note(
        "twinkle lock --upgrade takes what is there now; a newer version needs a change "
        "of the manifest (twinkle add ORG/NAME@N)");
    return 0;
}

}  // namespace

Command outdated_command() {
    return {
        .name = "outdated",
        .summary = "Show which locked kernels have moved on, and whether the targets could follow",
        .description =
            "Asks the Hub for every locked kernel whether its branch has another commit now, "
            "whether there is a newer version, and whether that has a build for the targets. "
            "Nothing changes; the exit status is 0 also where something is out of date.",
        .arguments = {},
        .options = {target_option(true), lockfile_option()},
        .examples = {{"What could be upgraded", "twinkle outdated"},
                     {"How many kernels, for a script",
                      "twinkle outdated --json | jq '.outdated | length'"}},
        .run = run_outdated};
}

}  // namespace twinkle::cli
