#include "kernel/build_toml.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "kernel/variant.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

using base::TableReader;

constexpr std::string_view file_name = "build.toml";

class ProjectReader {
public:
    explicit ProjectReader(Findings& findings) : findings_(findings) {}

    BuildToml read(const base::Node& root) {
        TableReader reader(root, file_name, "build.toml");
        BuildToml project;
        read_general(reader.require("general"), project);
        for (const char* framework : {"torch", "torch-noarch", "tvm-ffi"}) {
            if (const base::Node* section = reader.find(framework)) {
                project.framework = framework;
                read_framework(*section, project);
            }
        }
        if (project.framework.empty()) {
            add(0, "there is no [torch], [torch-noarch] or [tvm-ffi]");
        }
        if (const base::Node* kernels = reader.find("kernel")) {
            for (const base::Member& member : reader.as_table(*kernels, "kernel").members) {
                read_kernel(member, project);
            }
        }
        return project;
    }

private:
    void add(int line, std::string text, Severity severity = Severity::error) {
        findings_.push_back(
            {"project/build-toml", severity, std::move(text), std::string(file_name), line});
    }

    void read_general(const base::Node& node, BuildToml& project) {
        TableReader reader(node, file_name, "[general]");
        project.name = reader.required_string("name");
        project.edition = reader.integer("edition", 0, 1000).value_or(0);
        if (project.edition != newest_edition) {
            add(static_cast<int>(node.at.line),
                project.edition == 0 ? "the edition is not given"
                                     : "it is of edition " + std::to_string(project.edition) +
                                           ", not " + std::to_string(newest_edition),
                Severity::warning);
        }
        const bool newest = project.edition >= newest_edition;
        project.version = reader.integer("version", 0, UINT32_MAX);
        if (newest && !project.version) {
            reader.require("version");
        }
        project.license =
            newest ? reader.required_string("license") : reader.string("license").value_or("");
        project.backends = reader.strings("backends");
        if (newest && project.backends.empty()) {
            reader.require("backends");
        }
        for (const std::string& backend : project.backends) {
            if (!target::parse_backend_type(backend)) {
                add(static_cast<int>(node.at.line),
                    "there is no backend " + base::printable(backend));
            }
        }
        project.python_depends = reader.strings("python-depends");
        for (const char* backend : {"cuda", "neuron", "tpu", "xpu"}) {
            if (const base::Node* section = reader.find(backend)) {
                TableReader own(*section, file_name, "a backend's section");
                for (std::string& name : own.strings("python-depends")) {
                    project.python_depends.push_back(std::move(name));
                }
            }
        }
        if (const base::Node* hub = reader.find("hub")) {
            TableReader own(*hub, file_name, "[general.hub]");
            project.repo_id = own.string("repo-id").value_or("");
        }
    }

    void read_framework(const base::Node& node, BuildToml& project) {
        TableReader reader(node, file_name, "[" + project.framework + "]");
        project.sources = reader.strings("src");
        const base::Node* stable = reader.find("stable-abi");
        if (stable != nullptr && stable->kind == base::Node::Kind::table) {
            for (const base::Member& member : stable->members) {
                project.stable_abi.emplace_back(member.key,
                                                reader.as_string(member.value, member.key));
            }
        } else if (stable != nullptr && stable->kind == base::Node::Kind::string) {
            project.stable_abi.emplace_back("", stable->text);
        }
        if (project.framework == "torch-noarch") {
            // What counts for all of the package: under the backend's own name.
            for (const auto& [key, backend] :
                 {std::pair("cuda-capabilities", "cuda"), std::pair("rocm-archs", "rocm")}) {
                if (auto archs = reader.strings(key); !archs.empty()) {
                    project.kernels.push_back(
                        {"", backend, std::move(archs), {}, static_cast<int>(node.at.line)});
                }
            }
        }
    }

    void read_kernel(const base::Member& member, BuildToml& project) {
        TableReader reader(member.value, file_name, "[kernel." + base::printable(member.key) + "]");
        KernelSection section;
        section.name = member.key;
        section.line = static_cast<int>(member.at.line);
        section.backend = reader.string("backend").value_or("cuda");
        section.sources = reader.strings("src");
        section.capabilities = reader.strings("cuda-capabilities");
        for (std::string& arch : reader.strings("rocm-archs")) {
            section.capabilities.push_back(std::move(arch));
        }
        if (!project.backends.empty() && std::find(project.backends.begin(), project.backends.end(),
                                                   section.backend) == project.backends.end()) {
            add(section.line,
                "[kernel." + base::printable(section.name) + "] is for " +
                    base::printable(section.backend) + ", which general.backends does not name",
                Severity::warning);
        }
        project.kernels.push_back(std::move(section));
    }

    Findings& findings_;
};

int line_of(const std::string& where) {
    const auto parts = base::split(where, ':');
    return parts.size() >= 3 ? std::atoi(parts[parts.size() - 2].c_str()) : 0;
}

std::string listed(const std::set<std::string>& values) {
    const std::vector<std::string> list(values.begin(), values.end());
    return list.empty() ? "nothing" : base::join(list, ", ");
}

// Code may be for more than was asked for only where nothing was asked for.
void compare_archs(const BuildToml& project, const CheckedBuild& build, const std::string& shown,
                   Findings& findings) {
    const std::string backend(target::backend_type_name(build.metadata->backend));
    std::set<std::string> wanted;
    for (const KernelSection& section : project.kernels) {
        if (section.backend != backend) {
            continue;
        }
        if (section.capabilities.empty()) {
            return;  // all that the builder supports
        }
        wanted.insert(section.capabilities.begin(), section.capabilities.end());
    }
    const std::set<std::string> built(build.archs.begin(), build.archs.end());
    if (wanted.empty() || built.empty()) {
        return;
    }
    for (const std::string& arch : built) {
        if (!wanted.contains(arch) && !wanted.contains(arch.substr(0, arch.find('+')))) {
            findings.push_back({"project/differs", Severity::error,
                                "has code for " + arch + "; build.toml asks for " + listed(wanted),
                                shown});
        }
    }
}

}  // namespace

std::string BuildToml::package_name() const {
    std::string package = name;
    std::replace(package.begin(), package.end(), '-', '_');
    return package;
}

std::optional<BuildToml> read_build_toml(const fs::path& file, Findings& findings) {
    try {
        const std::string text = base::read_file(file, "build.toml", 1u << 20);
        const base::Node root = base::parse_toml_document(text, std::string(file_name));
        return ProjectReader(findings).read(root);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::malformed) {
            throw;
        }
        const auto& details = error.details();
        findings.push_back({"project/build-toml", Severity::error,
                            details.what + (details.why.empty() ? "" : ": " + details.why),
                            std::string(file_name), line_of(details.where)});
        return std::nullopt;
    }
}

void check_project_files(const BuildToml& project, const fs::path& folder, Findings& findings) {
    const auto check = [&](const std::string& path, int line) {
        std::error_code error;
        const bool plain = path.find('*') == std::string::npos;
        if (plain && !fs::exists(folder / path, error)) {
            findings.push_back({"project/files", Severity::error,
                                "there is no " + base::printable(path), std::string(file_name),
                                line});
        }
    };
    for (const std::string& path : project.sources) {
        check(path, 0);
    }
    for (const KernelSection& section : project.kernels) {
        for (const std::string& path : section.sources) {
            check(path, section.line);
        }
    }
    const std::string extension = project.framework == "tvm-ffi" ? "tvm-ffi-ext/" : "torch-ext/";
    check(extension + project.package_name() + "/__init__.py", 0);
}

void compare_with_build(const BuildToml& project, const std::string& variant,
                        const CheckedBuild& build, const std::string& shown, Findings& findings) {
    if (!build.metadata) {
        return;
    }
    const auto differs = [&](const std::string& what, const std::string& has,
                             const std::string& wants) {
        findings.push_back(
            {"project/differs", Severity::error,
             what + " is " + base::printable(has) + "; build.toml has " + base::printable(wants),
             shown + "metadata.json"});
    };
    const Metadata& metadata = *build.metadata;
    if (metadata.name != project.name) {
        differs("the name", metadata.name, project.name);
    }
    if (project.version && *project.version != metadata.version) {
        differs("the version", std::to_string(metadata.version), std::to_string(*project.version));
    }
    if (!project.license.empty() && metadata.license != project.license) {
        differs("the license", metadata.license, project.license);
    }
    const std::string backend(target::backend_type_name(metadata.backend));
    if (!project.backends.empty() && std::find(project.backends.begin(), project.backends.end(),
                                               backend) == project.backends.end()) {
        differs("the backend", backend, base::join(project.backends, ", "));
    }
    for (const std::string& name : metadata.python_depends) {
        if (std::find(project.python_depends.begin(), project.python_depends.end(), name) ==
            project.python_depends.end()) {
            differs("a dependency", name, base::join(project.python_depends, ", "));
        }
    }
    compare_archs(project, build, shown, findings);
    const auto parsed = parse_variant(variant);
    if (!parsed) {
        return;
    }
    const bool stable = std::any_of(
        project.stable_abi.begin(), project.stable_abi.end(),
        [&](const auto& entry) { return entry.first.empty() || entry.first == backend; });
    if (parsed->framework == Framework::stable_abi && !stable) {
        differs("the variant", variant, "no stable ABI for " + backend);
    } else if (parsed->framework == Framework::torch && stable) {
        differs("the variant", variant, "the stable ABI for " + backend);
    }
}

}  // namespace twinkle::kernel
