// twinkle resolve: the mapping for one machine.

#include "base/file.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/resolution.h"

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

int run(const Arguments& arguments, Console& console) {
    const auto output = arguments.text("output").value_or("twinkle.map.json");
    const bool to_stdout = output == "-";
    if (to_stdout && console.json()) {
        throw Error(ErrorCode::malformed, {.what = "--json and -o - both want standard output",
                                           .where = {},
                                           .why = {},
                                           .hint = "leave one of them out"});
    }
    const auto resolution =
        resolve_now(console, arguments.text("target"), arguments.flag("strict"));
    const auto& decisions = resolution.mapping.decisions;
    if (to_stdout) {
        console.result(resolution.mapping.to_json());
        return 0;
    }
    {
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
            "layer "
            "the kernels that may replace it on the target, with the hashes of their files and the "
            "reason "
            "for every choice. Without a manifest, the bundled kernels are used. Nothing is "
            "fetched and no "
            "kernel is loaded.",
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
                      "manifest, a "
                      "file from twinkle env --json, or torch=2.13,backend=cu130,arch=9.0,…",
              .kind = ValueKind::file},
             {.names = "--strict",
              .value = "",
              .help = "Fail where the target cannot have what the manifest asks for"}},
        .examples =
            {{"The mapping of the project in this folder, for this machine", "twinkle resolve"},
             {"For another machine",
              "twinkle resolve --target torch=2.11,backend=cu130,arch=9.0 -o prod.map.json"},
             {"The reasons, for a script", "twinkle resolve --json | jq '.decisions[]'"}},
        .run = run};
}

}  // namespace twinkle::cli
