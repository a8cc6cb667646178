// twinkle verify: hashes, digests and signatures of builds on this machine.

#include "operations/verify.h"
#include "base/file.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"

namespace twinkle::cli {
namespace {

std::string held_against(const operations::VerifiedBuild& build) {
    std::string text = build.locked ? "lock" : "";
    if (build.has_digest) {
        text += text.empty() ? "digest" : ", digest";
    }
    return text.empty() ? "nothing" : text;
}

base::Table::Cell signature_cell(const operations::VerifiedBuild& build) {
    if (!build.signature) {
        return "";
    }
    const auto state = build.signature->state;
    return {std::string(kernel::signature_state_name(state)),
            build.signature->verified() ? base::Style::green : base::Style::yellow};
}

base::Json signature_json(const operations::VerifiedBuild& build) {
    if (!build.signature) {
        return nullptr;
    }
    const auto& verdict = *build.signature;
    return {
        {"state", kernel::signature_state_name(verdict.state)},
        {"words", verdict.words},
        {"because", verdict.why},
        {"workflow", verdict.workflow},
        {"source_repository", verdict.source_repository},
        {"time", verdict.time ? base::Json(sigstore::format_time(*verdict.time)) : base::Json()}};
}

base::Json build_json(const operations::VerifiedBuild& build) {
    return {{"kernel", build.kernel},
            {"variant", build.variant},
            {"path", build.folder.string()},
            {"files", build.files},
            {"bytes", build.bytes},
            {"locked", build.locked},
            {"digest", build.has_digest},
            {"dirty", build.dirty},
            {"signature", signature_json(build)},
            {"ok", build.problems.empty()},
            {"problems", build.problems}};
}

void print_table(const std::vector<operations::VerifiedBuild>& builds, Console& console) {
    using base::Style;
    using base::Table;
    Table table({{"kernel", Table::Align::left, Table::Fit::wrap},
                 {"build", Table::Align::left, Table::Fit::wrap},
                 {"files", Table::Align::right},
                 {"size", Table::Align::right},
                 {"held against"},
                 {"signature"},
                 {"result"}});
    for (const auto& build : builds) {
        const bool ok = build.problems.empty();
        const bool unknown = ok && !build.locked && !build.has_digest;
        table.add({{kernel_text(build.kernel)},
                   {build.variant},
                   {std::to_string(build.files)},
                   {base::human_bytes(build.bytes)},
                   {held_against(build)},
                   signature_cell(build),
                   {unknown ? "not known"
                    : ok    ? "ok"
                            : "refused",
                    unknown ? Style::yellow
                    : ok    ? Style::green
                            : Style::red}});
    }
    console.result(table);
}

// Throws an error for the problems: no verified kernel may be used then.
void fail_on_problems(const std::vector<operations::VerifiedBuild>& builds) {
    std::string why, where;
    std::size_t damaged = 0;
    for (const auto& build : builds) {
        if (build.problems.empty()) {
            continue;
        }
        ++damaged;
        where += (where.empty() ? "" : ", ") + base::display_path(build.folder);
        for (const auto& problem : build.problems) {
            why += (why.empty() ? "" : "\n         ") + problem;
        }
    }
    if (damaged > 0) {
        throw Error(ErrorCode::verification,
                    {.what = base::counted(damaged, "build") + " cannot be trusted",
                     .where = where,
                     .why = why,
                     .hint = "damaged files of the cache: twinkle cache verify fetches them again; "
                             "builds without a signature: signature = \"warn\" in the manifest "
                             "lets them in"});
    }
}

operations::VerifyOptions verify_options(const Arguments& arguments) {
    operations::VerifyOptions options;
    options.signature = signature_options(arguments);
    options.trust_unchanged = arguments.flag("trust-unchanged");
    for (const auto& text : arguments.list("PATH|SPEC")) {
        if (project::is_path(text)) {
            options.paths.emplace_back(text);
        } else {
            options.specs.push_back(project::parse_kernel_spec(text));
        }
    }
    return options;
}

int run_verify(const Arguments& arguments, Console& console) {
    HubSession command(console, arguments.text("lockfile"));
    const auto builds = operations::verify(command.context(), verify_options(arguments));
    for (const auto& build : builds) {
        if (build.dirty) {
            console.warn(build.kernel + ": " + build.variant +
                         " was built from a tree with changes that nobody has seen");
        }
        if (build.signature && !build.signature->verified() && build.problems.empty()) {
            console.warn(
                project::signature_warning(build.kernel + " " + build.variant, *build.signature));
        }
        if (!build.locked && !build.has_digest) {
            console.warn(build.kernel + ": " + build.variant +
                         " has no digest and is not locked: nothing says what it should be");
        }
    }
    if (console.json()) {
        base::Json list = base::Json::array();
        for (const auto& build : builds) {
            list.push_back(build_json(build));
        }
        console.result("verify", {{"builds", list}});
    } else {
        print_table(builds, console);
    }
    fail_on_problems(builds);
    return 0;
}

}  // namespace

Command verify_command() {
    return {
        .name = "verify",
        .summary = "Check builds against the lock and their own digest",
        .description =
            "Reads every byte of every build and holds it against the hashes of the lock and the "
            "digest in its metadata, on all cores, and checks who signed that metadata (Sigstore). "
            "Without arguments everything that the project has locked and that is on this machine "
            "is verified. Nothing is downloaded and nothing is loaded. Exit status 4 when "
            "something differs.",
        .arguments = {{.name = "PATH|SPEC",
                       .help = "A folder with a kernel, or a kernel in the cache; left out: what "
                               "the project has locked",
                       .kind = ValueKind::folder,
                       .required = false,
                       .repeatable = true}},
        .options = {lockfile_option(),
                    signature_option(),
                    trusted_root_option(),
                    {.names = "--trust-unchanged",
                     .value = "",
                     .help = "Do not read files again that, by inode, size and times, have not "
                             "changed since they were verified with this option"}},
        .examples = {{"Everything that is locked", "twinkle verify"},
                     {"A build in a folder", "twinkle verify build/torch-universal"}},
        .run = run_verify};
}

}  // namespace twinkle::cli
