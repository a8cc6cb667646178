// twinkle add, twinkle remove: change one place in the manifest, then lock the project.

#include "base/file.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "cli/lock_report.h"
#include "operations/edit_manifest.h"

namespace twinkle::cli {
namespace {

void show(const operations::EditReport& report, std::string_view command, const std::string& sign,
          Console& console) {
    if (console.json()) {
        auto json = lock_report_json(report.lock);
        json["edited"] = report.kernels;
        json["manifest"] = report.manifest.string();
        console.result(command, std::move(json));
        return;
    }
    for (const auto& kernel : report.kernels) {
        console.note(base::display_path(report.manifest) + ": " + sign + " " + kernel);
    }
    show_lock_report(report.lock, console);
}

int run_add(const Arguments& arguments, Console& console) {
    HubSession command(console);
    show(
        operations::add_kernels(command.context(), arguments.list("SPEC"), arguments.list("trust")),
        "add", "+", console);
    return 0;
}

int run_remove(const Arguments& arguments, Console& console) {
    HubSession command(console);
    show(operations::remove_kernels(command.context(), arguments.list("NAME")), "remove", "-",
         console);
    return 0;
}

}  // namespace

Command add_command() {
    return {
        .name = "add",
        .summary = "Add kernels to the manifest, and lock them",
        .description =
            "Writes the kernels into [kernels] of twinkle.toml, or into "
            "[tool.kernels.dependencies] of pyproject.toml: comments and order stay as they "
            "are. A kernel that is there already gets the new version. Then the project is "
            "locked; if that fails, the manifest stays as it was.",
        .arguments = {{.name = "SPEC",
                       .help = "org/name (its newest version), org/name@3, org/name@REVISION, "
                               "or a folder",
                       .kind = ValueKind::folder,
                       .repeatable = true}},
        .options = {trust_option()},
        .examples = {{"The newest version of a kernel", "twinkle add kernels-community/activation"},
                     {"A kernel of your own, in a folder", "twinkle add ./kernels/my_norm"}},
        .run = run_add};
}

Command remove_command() {
    return {.name = "remove",
            .summary = "Take kernels out of the manifest and the lock",
            .description = "Comments and order of the manifest stay as they are.",
            .arguments = {{.name = "NAME",
                           .help = "org/name, org/name@3 where there are several versions, or the "
                                   "name of a local kernel",
                           .kind = ValueKind::text,
                           .repeatable = true}},
            .options = {},
            .examples = {{"Without a kernel", "twinkle remove kernels-community/activation"}},
            .run = run_remove};
}

}  // namespace twinkle::cli
