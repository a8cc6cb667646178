// twinkle lock: resolves the manifest to commits and hashes.

#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/lock_report.h"
#include "operations/lock_project.h"

namespace twinkle::cli {
namespace {

// --upgrade alone means everything, --upgrade NAME that kernel.
operations::LockOptions lock_options(const Arguments& arguments) {
    operations::LockOptions options;
    options.upgrade_all = arguments.flag("upgrade") && arguments.list("NAME").empty();
    options.upgrade = arguments.list("NAME");
    options.trust = arguments.list("trust");
    if (!arguments.flag("upgrade") && !options.upgrade.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "names of kernels go with --upgrade",
                     .where = options.upgrade.front(),
                     .why = "without it everything is locked, and nothing changes that is locked "
                            "already",
                     .hint = "twinkle lock --upgrade " + options.upgrade.front()});
    }
    return options;
}

int run_lock(const Arguments& arguments, Console& console) {
    HubSession command(console, arguments.text("lockfile"));
    if (arguments.flag("check") && arguments.flag("upgrade")) {
        throw Error(ErrorCode::malformed, {.what = "--check and --upgrade exclude each other",
                                           .where = {},
                                           .why = "--check changes nothing",
                                           .hint = "leave one of them out"});
    }
    if (arguments.flag("check")) {
        operations::check_project_lock(command.context());
        console.note("the lock fits the manifest");
        if (console.json()) {
            console.result("lock", {{"fits", true}});
        }
        return 0;
    }
    const auto report = operations::lock_project(command.context(), lock_options(arguments));
    show_lock_report(report, console);
    if (console.json()) {
        console.result("lock", lock_report_json(report));
    }
    return 0;
}

}  // namespace

Command lock_command() {
    return {
        .name = "lock",
        .summary = "Pin the kernels of a project: commits, and the hash of every file",
        .description =
            "Finds out which commit every kernel of the manifest means, also those that only "
            "[layers], [functions] or [patterns] name and those that kernels depend on, and writes "
            "them to twinkle.lock with size and hash of every file of every build. What is locked "
            "already stays as it is, and costs no request.\n\n"
            "kernels.lock, the lock of the Python tool kernels, is written too where there is one, "
            "or where pyproject.toml has [tool.kernels.dependencies].\n\n"
            "--check changes nothing and asks nobody: exit status 7 says that the lock does not "
            "fit the manifest.",
        .arguments = {{.name = "NAME",
                       .help = "With --upgrade: only these kernels (org/name)",
                       .kind = ValueKind::text,
                       .required = false,
                       .repeatable = true}},
        .options = {{.names = "--check",
                     .value = "",
                     .help = "Only tell whether the lock fits the manifest"},
                    {.names = "--upgrade",
                     .value = "",
                     .help = "Decide anew, also what is locked already"},
                    lockfile_option(),
                    trust_option()},
        .examples = {{"Lock the project in this folder", "twinkle lock"},
                     {"In CI: does the lock fit the manifest?", "twinkle lock --check"},
                     {"Take the newest commit of one kernel",
                      "twinkle lock --upgrade kernels-community/activation"}},
        .run = run_lock};
}

}  // namespace twinkle::cli
