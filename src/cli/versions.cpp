// twinkle versions: the builds of a kernel, and which of them a machine would use.

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "kernel/versions.h"
#include "operations/targets.h"
#include "operations/versions.h"
#include "target/target.h"

namespace twinkle::cli {
namespace {

using kernel::VariantChoice;

base::Json variant_json(const VariantChoice& choice) {
    return {{"name", choice.name},         {"device", choice.device},
            {"accepted", choice.accepted}, {"preferred", choice.preferred},
            {"for_cpu", choice.for_cpu},   {"reason", choice.reason}};
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
                    : choice.for_cpu  ? "on its CPU"
                                      : "no"},
                   {choice.reason}});
    }
    console.result(table);
}

// A folder is one version, without a number or a repository.
operations::VersionListing folder_listing(const std::string& path, const target::Target& target) {
    return {path, std::nullopt, "", "", kernel::list_variants(path, target)};
}

base::Json listing_json(const operations::VersionListing& listing) {
    base::Json variants = base::Json::array();
    for (const auto& choice : listing.variants) {
        variants.push_back(variant_json(choice));
    }
    const auto text = [](const std::string& value) {
        return value.empty() ? base::Json() : base::Json(value);
    };
    return {{"version", listing.version ? base::Json(*listing.version) : base::Json()},
            {"ref", text(listing.ref)},
            {"commit", text(listing.commit)},
            {"variants", variants}};
}

void print(const std::vector<operations::VersionListing>& listings, bool titled, Console& console) {
    for (const auto& listing : listings) {
        if (titled) {
            console.result(base::printable(listing.repo_id) + "  " +
                           state_text(listing.ref, listing.commit) + "\n");
        }
        print_table(listing.variants, console);
        if (titled && listing.commit != listings.back().commit) {
            console.result("\n");
        }
    }
}

bool any(const std::vector<operations::VersionListing>& listings, bool VariantChoice::* is) {
    return std::any_of(listings.begin(), listings.end(), [&](const auto& listing) {
        return std::any_of(listing.variants.begin(), listing.variants.end(),
                           [&](const auto& choice) { return choice.*is; });
    });
}

[[noreturn]] void fail_without_build(const std::string& kernel, const target::Target& target,
                                     bool for_cpu) {
    throw Error(
        ErrorCode::not_found,
        {.what = "no variant fits the target",
         .where = kernel,
         .why = "the target is " + target.text() + (for_cpu ? "; only its CPU has a build" : ""),
         .hint = for_cpu ? "ask for the CPU alone: --target with backend=cpu"
                         : "build the kernel for it, or choose another --target"});
}

int run_versions(const Arguments& arguments, Console& console) {
    HubSession command(console);
    auto& context = command.context();
    const auto text = *arguments.text("PATH|SPEC");
    const auto project = context.find_project();
    const auto target =
        operations::choose_targets(context, project ? &*project : nullptr, arguments.list("target"))
            .front();
    const bool is_path = project::is_path(text);
    const auto listings =
        is_path ? std::vector{folder_listing(text, target)}
                : operations::list_versions(context, project::parse_kernel_spec(text), target);
    if (console.json()) {
        base::Json versions = base::Json::array();
        for (const auto& listing : listings) {
            versions.push_back(listing_json(listing));
        }
        console.result("versions", {{"versions", versions}, {"target", target.to_map()}});
    } else {
        print(listings, !is_path, console);
    }
    if (!any(listings, &VariantChoice::accepted)) {
        fail_without_build(text, target, any(listings, &VariantChoice::for_cpu));
    }
    return 0;
}

}  // namespace

Command versions_command() {
    return {
        .name = "versions",
        .summary = "Show the versions and builds of a kernel, and which one a machine would use",
        .description =
            "Lists the builds of a kernel in order of preference: which one would be chosen on "
            "the target, and why the others are not. Builds for the CPU of a target with a GPU are "
            "named as such, and do not count. On the Hub, for every version, newest first; "
            "offline, for those in the cache. Exit status 3 when nothing fits.",
        .arguments = {{.name = "PATH|SPEC",
                       .help =
                           "A folder with a kernel (its build/ holds the variants), or org/name, "
                           "org/name@3, …",
                       .kind = ValueKind::folder}},
        .options = {target_option(false)},
        .examples =
            {{"Which build this machine would use",
              "twinkle versions kernels-community/activation"},
             {"Which one a server with CUDA would use, of a kernel in a folder",
              "twinkle versions kernels/activation --target torch=2.11,backend=cu130,arch=9.0"},
             {"In CI: is there a build of version 1 for that server?",
              "twinkle versions kernels-community/activation@1 --target server.json"}},
        .run = run_versions};
}

}  // namespace twinkle::cli
