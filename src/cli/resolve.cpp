// twinkle resolve: the mapping for one machine.

#include "base/file.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/resolution.h"
#include "project/bundle.h"

namespace twinkle::cli {
namespace {

base::Json decision_json(const Decision& decision) {
    base::Json rejected = base::Json::array();
    for (const auto& [name, because] : decision.rejected) {
        rejected.push_back({{"name", name}, {"because", because}});
    }
    return {{"what", decision.what},
            {"chosen", decision.chosen ? base::Json(*decision.chosen) : base::Json()},
            {"because", decision.because},
            {"rejected", rejected}};
}

void print_table(const std::vector<Decision>& decisions, Console& console) {
    using base::Table;
    Table table({{"what", Table::Align::left, Table::Fit::wrap},
                 {"chosen", Table::Align::left, Table::Fit::wrap},
                 {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& decision : decisions) {
        table.add({{decision.what},
                   {decision.chosen.value_or("none"),
                    decision.chosen ? base::Style::green : base::Style::yellow},
                   {decision.because}});
    }
    console.result(table);
}

int run_resolve(const Arguments& arguments, Console& console) {
    const auto bundle = arguments.text("bundle");
    if (bundle && arguments.text("output")) {
        throw Error(ErrorCode::malformed, {.what = "--bundle and -o both say where to write",
                                           .where = "",
                                           .why = "the mapping of a bundle is inside it",
                                           .hint = "leave one of them out"});
    }
    const auto output = bundle.value_or(arguments.text("output").value_or("twinkle.map.json"));
    const bool to_stdout = !bundle && output == "-";
    if (to_stdout) {
        check_standard_output(output, console.json());
    }
    if (!bundle && !to_stdout) {
        const auto target = arguments.text("target");
        const auto file = target ? target_file(console, *target) : std::nullopt;
        check_output(output, OutputKind::text, {file.value_or("")});
    }
    const auto lock =
        arguments.flag("locked") ? project::LockDemand::there : project::LockDemand::none;
    const auto resolution = resolve_now(console, {.target = arguments.text("target"),
                                                  .lockfile = arguments.text("lockfile"),
                                                  .lock = lock,
                                                  .strict = arguments.flag("strict")});
    const auto& decisions = resolution.mapping.decisions;
    if (to_stdout) {
        console.result(resolution.mapping.to_json());
        return 0;
    }
    if (bundle) {
        const InterruptFlag interrupt;
        console.progress().show("copying kernels to " + *bundle);
        project::write_bundle(resolution.mapping, *bundle, &interrupt.stop());
    } else {
        const InterruptDelay whole_file;
        base::write_file_atomically(output, resolution.mapping.to_json());
    }
    if (console.json()) {
        base::Json list = base::Json::array();
        for (const auto& decision : decisions) {
            list.push_back(decision_json(decision));
        }
        console.result("resolve", {{"decisions", list}, {"output", output}});
    } else {
        print_table(decisions, console);
    }
    console.note("wrote " + output);
    return 0;
}

}  // namespace

Command resolve_command() {
    return {
        .name = "resolve",
        .summary = "Decide which kernels one machine uses, and write the mapping file",
        .description =
            "Reads the manifest (twinkle.toml or pyproject.toml) and writes a mapping: for every "
            "layer the kernels that may replace it on the target, with the hashes of their files "
            "and the reason for every choice. Without a manifest, the bundled kernels are used. "
            "With a lock, kernels are the commits that it names, and a build of which any byte "
            "differs from it is refused (exit status 4). Nothing is fetched: what is missing is "
            "exit status 3, with the command that gets it. No kernel is loaded but one: a library "
            "that does not show every operator that its package calls is asked for them in a "
            "confined child process, where there is a LibTorch.",
        .arguments = {},
        .options =
            {{.names = "-o,--output",
              .value = "FILE",
              .help =
                  "Where to write the mapping (default: twinkle.map.json; - is standard output)",
              .kind = ValueKind::file},
             {.names = "--target",
              .value = "TARGET",
              .help = "The machine to decide for: here (default), a name from [targets] in the "
                      "manifest, a file from twinkle env --json, or "
                      "torch=2.13,backend=cu130,arch=9.0,…",
              .kind = ValueKind::file},
             {.names = "--bundle",
              .value = "DIR",
              .help = "Write a folder with the mapping and its kernels beside it, for machines "
                      "without network",
              .kind = ValueKind::folder},
             {.names = "--locked",
              .value = "",
              .help = "Exit status 7 where there is no lock, or it does not fit the manifest"},
             lockfile_option(),
             {.names = "--strict",
              .value = "",
              .help = "Fail where the target cannot have what the manifest asks for"}},
        .examples =
            {{"The mapping of the project in this folder, for this machine", "twinkle resolve"},
             {"For another machine",
              "twinkle resolve --target torch=2.11,backend=cu130,arch=9.0 -o prod.map.json"},
             {"A folder to copy to a machine without network",
              "twinkle resolve --target prod --bundle deploy/kernels"},
             {"The reasons, for a script", "twinkle resolve --json | jq '.decisions[]'"}},
        .run = run_resolve};
}

}  // namespace twinkle::cli
