// twinkle cache: the cache that twinkle shares with `kernels` and huggingface_hub.

#include "base/file.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cache/inventory.h"
#include "cache/maintain.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "operations/cache_upkeep.h"

namespace twinkle::cli {
namespace {

using base::Json;

Json repository_json(const cache::CachedRepository& repository) {
    Json revisions = Json::array();
    for (const auto& revision : repository.revisions) {
        revisions.push_back({{"commit", revision.commit},
                             {"refs", revision.refs},
                             {"variants", revision.variants},
                             {"files", revision.files},
                             {"bytes", revision.size}});
    }
    return {{"repo_id", repository.repo_id},
            {"path", repository.folder.string()},
            {"bytes", repository.size},
            {"partial_files", repository.partial_files},
            {"partial_bytes", repository.partial_size},
            {"revisions", revisions}};
}

const char* const link_remedy =
    "a symbolic link in the place of a folder is not followed: remove it, and fetch again";

// Warns of links, which prune and clean leave alone and list does not count.
void warn_of_links(const operations::Context& context, Console& console) {
    for (const auto& link : cache::linked_folders(context.cache())) {
        console.warn(base::display_path(link) + ": " + link_remedy);
    }
}

int list(operations::Context& context, Console& console) {
    const auto repositories = cache::list(context.cache());
    warn_of_links(context, console);
    if (console.json()) {
        Json all = Json::array();
        for (const auto& repository : repositories) {
            all.push_back(repository_json(repository));
        }
        console.result("cache", {{"dir", context.cache().root().string()}, {"repositories", all}});
        return 0;
    }
    using base::Table;
    Table table({{"kernel", Table::Align::left, Table::Fit::wrap},
                 {"commit"},
                 {"refs", Table::Align::left, Table::Fit::wrap},
                 {"builds", Table::Align::left, Table::Fit::wrap},
                 {"files", Table::Align::right},
                 {"size", Table::Align::right}});
    std::uint64_t bytes = 0;
    for (const auto& repository : repositories) {
        bytes += repository.size + repository.partial_size;
        for (const auto& revision : repository.revisions) {
            table.add({{repository.repo_id},
                       {revision.commit.substr(0, 12)},
                       {base::join(revision.refs, ", ")},
                       {base::join(revision.variants, ", ")},
                       {std::to_string(revision.files)},
                       {base::human_bytes(revision.size)}});
        }
    }
    console.result(table);
    console.note(base::display_path(context.cache().root()) + ": " + base::human_bytes(bytes));
    return 0;
}

int verify(operations::Context& context, bool dry_run, Console& console) {
    const auto report = operations::verify_cache(context, dry_run);
    const bool only_told = dry_run || context.offline();
    Json damaged = Json::array();
    std::string why;
    for (const auto& blob : report.found.damaged) {
        damaged.push_back({{"repo_id", blob.repo_id},
                           {"etag", blob.etag},
                           {"path", blob.file.string()},
                           {"found", blob.found},
                           {"paths", blob.paths}});
        why += (why.empty() ? "" : "\n         ") + blob.repo_id + ": " +
               (blob.paths.empty() ? blob.etag : base::join(blob.paths, ", ")) + ": " +
               (blob.why.empty() ? "its hash is " + blob.found : blob.why);
    }
    std::vector<std::string> links;
    for (const auto& link : report.found.links) {
        links.push_back(base::display_path(link) + ": " + link_remedy);
    }
    if (console.json()) {
        console.result("cache", {{"blobs", report.found.blobs},
                                 {"bytes", report.found.bytes},
                                 {"damaged", damaged},
                                 {"links", links},
                                 {"repaired", report.repaired},
                                 {"lost", report.lost}});
    } else {
        console.note(base::counted(report.found.blobs, "file") + ", " +
                     base::human_bytes(report.found.bytes) + ": " +
                     (damaged.empty() ? "all right"
                                      : std::to_string(damaged.size()) + " damaged, " +
                                            std::to_string(report.repaired) + " fetched again"));
    }
    if (!links.empty()) {
        throw Error(ErrorCode::verification,
                    {.what = "folders of the cache are symbolic links",
                     .where = base::display_path(context.cache().root()),
                     .why = base::join(links, "\n         "),
                     .hint = "only the folder of the cache itself may be a link; nothing was "
                             "taken out of the cache"});
    }
    const bool left = only_told ? !damaged.empty() : !report.lost.empty();
    if (left) {
        throw Error(ErrorCode::verification,
                    {.what = "files of the cache are damaged",
                     .where = base::display_path(context.cache().root()),
                     .why = only_told ? why : base::join(report.lost, "\n         "),
                     .hint = only_told ? "with a network, twinkle cache verify fetches them again"
                                       : "twinkle fetch gets what the Hub has; what it "
                                         "did not answer for is still there"});
    }
    return 0;
}

int remove(operations::Context& context, const cache::Removal& removal, bool dry_run,
           Console& console) {
    const auto freed = dry_run ? removal.bytes : cache::remove(context.cache(), removal);
    warn_of_links(context, console);
    Json revisions = Json::array();
    for (const auto& revision : removal.revisions) {
        revisions.push_back({{"repo_id", revision.repo_id},
                             {"commit", revision.commit},
                             {"variants", revision.variants}});
        console.note((dry_run ? "would remove " : "removed ") + revision.repo_id + " " +
                     revision.commit.substr(0, 12) +
                     (revision.variants.empty() ? "" : ": " + base::join(revision.variants, ", ")));
    }
    if (console.json()) {
        console.result("cache", {{"removed", revisions}, {"bytes", freed}, {"dry_run", dry_run}});
    } else {
        console.note((dry_run ? "would free " : "freed ") + base::human_bytes(freed));
    }
    return 0;
}

// The projects to keep: the named ones, else the current one.
std::vector<std::filesystem::path> projects(operations::Context& context,
                                            const std::vector<std::string>& named) {
    std::vector<std::filesystem::path> folders(named.begin(), named.end());
    if (folders.empty()) {
        folders.push_back(
            context.need_project("prune keeps what projects need, so it must know one")
                .files.folder);
    }
    return folders;
}

int run_cache(const Arguments& arguments, Console& console) {
    HubSession command(console);
    auto& context = command.context();
    const auto action = *arguments.text("ACTION");
    const bool dry_run = arguments.flag("dry-run");
    if (!arguments.list("PROJECT").empty() && action != "prune") {
        throw Error(ErrorCode::malformed, {.what = "only prune takes projects",
                                           .where = arguments.list("PROJECT").front(),
                                           .why = {},
                                           .hint = "twinkle cache --help shows the actions"});
    }
    if (action == "dir") {
        if (console.json()) {
            console.result("cache", {{"dir", context.cache().root().string()}});
        } else {
            console.result(context.cache().root().string() + "\n");
        }
        return 0;
    }
    if (action == "list") {
        return list(context, console);
    }
    if (action == "verify") {
        return verify(context, dry_run, console);
    }
    const auto removal =
        action == "prune"
            ? operations::plan_prune(context, projects(context, arguments.list("PROJECT")))
            : cache::plan_clean(context.cache());
    return remove(context, removal, dry_run, console);
}

}  // namespace

Command cache_command() {
    return {
        .name = "cache",
        .summary = "Look after the cache of kernels",
        .description =
            "The cache is the one of the Python tools. Only kernels in it are touched, never "
            "models or datasets.\n\n"
            "dir: where it is. list: what is in it. verify: hash everything on all cores, and "
            "fetch again what is damaged. prune: remove what the locks of the given projects do "
            "not need (the project in this folder, if none is given). clean: remove left-overs of "
            "interrupted downloads and files that no revision uses.",
        .arguments = {{.name = "ACTION",
                       .help = "dir, list, verify, prune or clean",
                       .kind = ValueKind::choice,
                       .choices = {"dir", "list", "verify", "prune", "clean"},
                       .restricted = true},
                      {.name = "PROJECT",
                       .help = "prune: folders of projects whose kernels stay",
                       .kind = ValueKind::folder,
                       .required = false,
                       .repeatable = true}},
        .options = {{.names = "--dry-run",
                     .value = "",
                     .help = "Only show what verify, prune or clean would do"}},
        .examples = {{"What is in the cache, and how large it is", "twinkle cache list"},
                     {"Only what two projects need stays",
                      "twinkle cache prune ~/serving ~/training --dry-run"}},
        .run = run_cache};
}

}  // namespace twinkle::cli
