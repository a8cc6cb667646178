// twinkle versions: the builds of a kernel, and which of them a machine would use.

#include <algorithm>

#include "cli/command.h"
#include "cli/console.h"
#include "kernel/versions.h"
#include "target/machine.h"
#include "target/target.h"

namespace twinkle::cli {
namespace {

using kernel::VariantChoice;

base::Json variant_json(const VariantChoice& choice) {
    return {{"name", choice.name},
            {"device", choice.device},
            {"accepted", choice.accepted},
            {"preferred", choice.preferred},
            {"reason", choice.reason}};
}

void print_table(const std::vector<VariantChoice>& choices, Console& console) {
    using base::Style;
    using base::Table;
    Table table({{"variant", Table::Align::left, Table::Fit::wrap},
                 {"device"},
                 {"chosen"},
                 {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& choice : choices) {
        table.add({{choice.name, choice.preferred ? Style::green : Style::plain},
                   {choice.device},
                   {choice.preferred  ? "yes"
                    : choice.accepted ? "fits"
                                      : "no"},
                   {choice.reason}});
    }
    console.result(table);
}

int run(const Arguments& arguments, Console& console) {
    const auto& machine = target::this_machine();
    const auto target = target::choose_target(arguments.text("target"), {}, machine,
                                              target::choose_runtime(machine));
    console.detail("for " + target.text());
    const auto path = *arguments.text("PATH");
    const auto choices = kernel::list_variants(path, target);
    if (console.json()) {
        base::Json variants = base::Json::array();
        for (const auto& choice : choices) {
            variants.push_back(variant_json(choice));
        }
        // A folder is one version, without a number and not in any repository.
        base::Json version = {
            {"version", nullptr}, {"ref", nullptr}, {"commit", nullptr}, {"variants", variants}};
        console.result("versions", {{"versions", {version}}, {"target", target.to_map()}});
    } else {
        print_table(choices, console);
    }
    if (std::none_of(choices.begin(), choices.end(),
                     [](const auto& choice) { return choice.accepted; })) {
        throw Error(ErrorCode::not_found,
                    {.what = "no variant fits the target",
                     .where = path,
                     .why = "the target is " + target.text(),
                     .hint = "build the kernel for it, or choose another --target"});
    }
    return 0;
}

}  // namespace

Command versions_command() {
    return {
        .name = "versions",
        .summary = "Show the builds of a kernel, and which one a machine would use",
        .description =
            "Lists the variants of a kernel in order of preference: which one would be chosen "
            "on the target, and why the others are not. Exit status 3 when none fits.",
        .arguments = {{.name = "PATH",
                       .help = "A folder with a kernel: its build/ folder holds the variants",
                       .kind = ValueKind::folder}},
        .options =
            {{.names = "--target",
              .value = "TARGET",
              .help = "The machine to decide for: here (default), a file from twinkle env --json, "
                      "or torch=2.13,backend=cu130,arch=9.0,…",
              .kind = ValueKind::file}},
        .examples =
            {{"Which build this machine would use", "twinkle versions kernels/activation"},
             {"Which one a server with CUDA would use",
              "twinkle versions kernels/activation --target torch=2.11,backend=cu130,arch=9.0"}},
        .run = run};
}

}  // namespace twinkle::cli
