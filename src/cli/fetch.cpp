// twinkle fetch: builds into the cache.

#include "operations/fetch.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"

namespace twinkle::cli {
namespace {

base::Json build_json(const operations::FetchedBuild& build) {
    return {{"kernel", build.kernel},   {"repo_id", build.repo_id},      {"commit", build.commit},
            {"variant", build.variant}, {"path", build.folder.string()}, {"files", build.files},
            {"bytes", build.bytes}};
}

void print_table(const operations::FetchReport& report, Console& console) {
    using base::Table;
    Table table({{"kernel", Table::Align::left, Table::Fit::wrap},
                 {"commit"},
                 {"build", Table::Align::left, Table::Fit::wrap},
                 {"files", Table::Align::right},
                 {"size", Table::Align::right}});
    for (const auto& build : report.builds) {
        table.add({{kernel_text(build.kernel)},
                   {build.commit.substr(0, 12)},
                   {build.variant},
                   {std::to_string(build.files)},
                   {base::human_bytes(build.bytes)}});
    }
    console.result(table);
}

void say_what_was_done(const operations::FetchReport& report, Console& console) {
    const auto& download = report.download;
    if (download.files_downloaded == 0) {
        console.note("everything was in the cache");
        return;
    }
    console.note("downloaded " + base::counted(download.files_downloaded, "file") + ", " +
                 base::human_bytes(download.bytes_downloaded) +
                 (download.bytes_resumed > 0
                      ? ", and went on from " + base::human_bytes(download.bytes_resumed) +
                            " of an earlier attempt"
                      : ""));
}

int run_fetch(const Arguments& arguments, Console& console) {
    HubSession command(console, arguments.text("lockfile"));
    operations::FetchOptions options;
    for (const auto& text : arguments.list("SPEC")) {
        options.specs.push_back(project::parse_kernel_spec(text));
    }
    options.targets = arguments.list("target");
    options.all_variants = arguments.flag("all-variants");
    options.locked = arguments.flag("locked");
    options.trust = arguments.list("trust");
    options.signature = signature_options(arguments);
    const auto report = operations::fetch(command.context(), options);
    if (!console.json()) {
        print_table(report, console);
        say_what_was_done(report, console);
        return 0;
    }
    base::Json builds = base::Json::array();
    for (const auto& build : report.builds) {
        builds.push_back(build_json(build));
    }
    console.result("fetch", {{"builds", builds},
                             {"locked", report.locked},
                             {"files_downloaded", report.download.files_downloaded},
                             {"bytes_downloaded", report.download.bytes_downloaded},
                             {"requests", command.context().requests()}});
    return 0;
}

}  // namespace

Command fetch_command() {
    return {
        .name = "fetch",
        .summary = "Download the builds that a machine uses into the cache",
        .description =
            "Downloads what the project's lock says, for this machine or for others (--target), "
            "many files at once, and checks every byte while it arrives. Without a lock it "
            "fetches what the manifest means now. The lock is never changed.\n\n"
            "With names (org/name, org/name@3, org/name@>=0.1,<0.3, org/name@REVISION) it fetches "
            "those instead; the newest version where none is given.\n\n"
            "The cache is the one of the Python tools (kernels, huggingface_hub), and both can "
            "use it at the same time. What was interrupted is resumed by the next fetch.",
        .arguments = {{.name = "SPEC",
                       .help = "A kernel of the Hub; left out: those of the project",
                       .kind = ValueKind::text,
                       .required = false,
                       .repeatable = true}},
        .options = {{.names = "--locked",
                     .value = "",
                     .help = "Exit with 7 where there is no lock, or it does not fit the manifest"},
                    target_option(true),
                    {.names = "--all-variants",
                     .value = "",
                     .help = "Every build, for whatever machine"},
                    lockfile_option(),
                    trust_option(),
                    signature_option(),
                    trusted_root_option()},
        .examples = {{"In CI: what the lock says, and nothing else", "twinkle fetch --locked"},
                     {"One kernel, its newest version",
                      "twinkle fetch kernels-community/activation"},
                     {"For the machines of two targets of the manifest",
                      "twinkle fetch --target prod --target test"}},
        .run = run_fetch};
}

}  // namespace twinkle::cli
