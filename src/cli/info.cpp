// twinkle info: what a kernel is.

#include "operations/info.h"
#include "base/file.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/document.h"
#include "cli/hub_session.h"
#include "cli/json_fields.h"

namespace twinkle::cli {
namespace {

using base::Json;

Json git_json(const std::optional<kernel::GitState>& state) {
    return state ? Json{{"commit", state->commit}, {"dirty", state->dirty}} : Json();
}

Json dependency_json(const kernel::KernelDependency& dependency) {
    Json json{{"repo_id", dependency.repo_id}};
    if (dependency.version) {
        json["version"] = *dependency.version;
    } else {
        json["revision"] = dependency.revision;
    }
    return json;
}

void add_metadata(Json& json, const kernel::Metadata& metadata) {
    json["name"] = metadata.name;
    json["id"] = metadata.id;
    json["metadata_version"] = metadata.version;
    json["license"] = metadata.license;
    json["upstream"] = text_or_null(metadata.upstream);
    json["source"] = text_or_null(metadata.source);
    json["python_depends"] = metadata.python_depends;
    json["kernels_minver"] = text_or_null(metadata.kernels_minver);
    json["digest"] = metadata.digest ? Json(metadata.digest->algorithm) : Json();
    json["provenance"] =
        metadata.provenance
            ? Json{{"builder_version", text_or_null(metadata.provenance->builder_version)},
                   {"builder", git_json(metadata.provenance->builder)},
                   {"kernel", git_json(metadata.provenance->kernel)}}
            : Json();
}

Json info_json(const operations::KernelInfo& info) {
    Json json{{"repo_id", text_or_null(info.repo_id)},
              {"path", text_or_null(info.path.string())},
              {"version", info.version ? Json(*info.version) : Json()},
              {"ref", text_or_null(info.ref)},
              {"commit", text_or_null(info.commit)},
              {"versions", info.versions},
              {"variants", info.variants},
              {"backends", info.backends},
              {"archs", info.archs},
              {"dirty", info.dirty},
              {"bytes", info.bytes}};
    json["dependencies"] = Json::array();
    for (const auto& dependency : info.dependencies) {
        json["dependencies"].push_back(dependency_json(dependency));
    }
    if (info.metadata) {
        add_metadata(json, *info.metadata);
    }
    return json;
}

std::string provenance_text(const kernel::Provenance& provenance) {
    std::string text;
    if (provenance.kernel) {
        text = "source at " + provenance.kernel->commit +
               (provenance.kernel->dirty ? ", with changes" : "");
    }
    if (provenance.builder || !provenance.builder_version.empty()) {
        text += std::string(text.empty() ? "" : "; ") + "kernel-builder " +
                provenance.builder_version +
                (provenance.builder && provenance.builder->dirty ? ", with changes" : "");
    }
    return text;
}

// Line by line, without absent facts.
std::string info_text(const operations::KernelInfo& info, Console& console) {
    Json shown = Json::object();
    // Numbered, because the keys of a JSON object are sorted and these keep the order of reading.
    const auto add = [&](const std::string& name, Json value) {
        const bool nothing = value.is_null() || (value.is_string() && value.empty()) ||
                             (value.is_string() && value.get<std::string>().empty()) ||
                             (value.is_array() && value.empty());
        if (!nothing) {
            shown[name] = std::move(value);
        }
    };
    add("repository", info.repo_id);
    add("path", info.path.empty() ? "" : base::display_path(info.path));
    add("state", state_text(info.ref, info.commit));
    add("versions", info.versions);
    add("builds", info.variants);
    add("backends", info.backends);
    add("GPU architectures", info.archs);
    add("size of all builds", base::human_bytes(info.bytes));
    Json dependencies = Json::array();
    for (const auto& dependency : info.dependencies) {
        dependencies.push_back(
            dependency.repo_id + "@" +
            (dependency.version ? std::to_string(*dependency.version) : dependency.revision));
    }
    add("needs kernels", dependencies);
    if (info.metadata) {
        const auto& metadata = *info.metadata;
        add("name", metadata.name);
        add("operator namespace", metadata.id);
        add("license", metadata.license);
        add("upstream", metadata.upstream);
        add("source", metadata.source);
        add("needs Python packages", metadata.python_depends);
        add("needs kernels library", metadata.kernels_minver);
        add("provenance", metadata.provenance ? provenance_text(*metadata.provenance) : "");
    }
    return document_text(shown, console.result_columns(), console.result_color());
}

int run_info(const Arguments& arguments, Console& console) {
    HubSession command(console);
    const auto text = *arguments.text("PATH|SPEC");
    const auto info =
        project::is_path(text)
            ? operations::local_kernel_info(text)
            : operations::kernel_info(command.context(), project::parse_kernel_spec(text));
    for (const auto& variant : info.dirty) {
        console.warn(variant + " was built from a tree with changes that nobody has seen");
    }
    if (console.json()) {
        console.result("info", info_json(info));
    } else {
        console.result(info_text(info, console));
    }
    return 0;
}

}  // namespace

Command info_command() {
    return {.name = "info",
            .summary = "Show what a kernel is: licence, source, provenance, builds, dependencies",
            .description =
                "Reads the metadata of every build of a kernel, in a folder or on the Hub; "
                "offline, of those in the cache.",
            .arguments = {{.name = "PATH|SPEC",
                           .help = "A folder with a kernel, or org/name, org/name@3, …",
                           .kind = ValueKind::folder}},
            .options = {},
            .examples = {{"A kernel of the Hub", "twinkle info kernels-community/activation"},
                         {"Its licence, for a script",
                          "twinkle info kernels-community/activation@1 --json | jq -r .license"}},
            .run = run_info};
}

}  // namespace twinkle::cli
