#include "kernel/check_build.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "binary/constant_strings.h"
#include "kernel/check_package.h"
#include "kernel/digest.h"
#include "kernel/operators.h"
#include "kernel/schema.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

std::string without_flags(const std::string& arch) {
    return arch.substr(0, arch.find(':'));
}

class BuildChecker {
public:
    BuildChecker(const fs::path& folder, const BuildCheck& check, Findings& findings)
        : check_(check), findings_(findings), variant_(parse_variant(check.variant)) {
        build_.path = folder;
    }

    CheckedBuild run() {
        CheckedBuild result;
        read_metadata_file();
        const bool sha512 = build_.metadata && build_.metadata->digest &&
                            build_.metadata->digest->algorithm == "sha512";
        const BuildFiles files = read_build_files(build_.path, sha512);
        build_.files = files.files;
        result.audience = audience();
        if (build_.metadata) {
            check_metadata(files);
        }
        const auto prefix = read_sources(files);
        read_libraries();
        check_libraries(result.audience);
        result.archs = check_archs();
        check_sources(prefix);
        for (const MappedOperator& op : build_.operators) {
            result.operators.push_back(op.name);
        }
        result.metadata = std::move(build_.metadata);
        return result;
    }

private:
    void add(std::string_view rule, std::string text, const std::string& file = "",
             Severity severity = Severity::error, int line = 0) {
        findings_.push_back({rule, severity, std::move(text), check_.shown + file, line});
    }

    void read_metadata_file() {
        if (check_.variant.empty()) {
            return;
        }
        if (!variant_) {
            add("variant/name", base::printable(check_.variant) + " is no variant");
        }
        std::error_code error;
        const fs::path file = build_.path / "metadata.json";
        if (!fs::exists(file, error)) {
            add("metadata/missing", "there is no metadata.json", "metadata.json");
            return;
        }
        try {
            build_.metadata = read_metadata(file);
        } catch (const Error& problem) {
            // where is "path:line:column"
            const auto parts = base::split(problem.details().where, ':');
            const int line = parts.size() >= 3 ? std::atoi(parts[parts.size() - 2].c_str()) : 0;
            const auto& details = problem.details();
            add("metadata/invalid", details.what + (details.why.empty() ? "" : ": " + details.why),
                "metadata.json", Severity::error, line);
        }
    }

    // kernel-builder says where a build comes from; what says nothing was made for its own machine.
    Audience audience() const {
        if (check_.audience) {
            return *check_.audience;
        }
        return build_.metadata && build_.metadata->provenance ? Audience::hub : Audience::here;
    }

    void check_metadata(const BuildFiles& files) {
        const Metadata& metadata = *build_.metadata;
        const std::string type(target::backend_type_name(metadata.backend));
        if (variant_) {
            const bool noarch = variant_->framework == Framework::noarch;
            const bool fits = noarch ? variant_->noarch_backend == "universal" ||
                                           target::parse_backend_type(variant_->noarch_backend) ==
                                               metadata.backend
                                     : variant_->backend.kind == metadata.backend;
            if (!fits) {
                add("metadata/backend", "the backend is " + type + " in " + check_.variant,
                    "metadata.json");
            }
        }
        if (metadata.provenance && metadata.provenance->dirty()) {
            add("metadata/dirty", "it was built from a tree with uncommitted changes",
                "metadata.json", Severity::warning);
        }
        check_dependencies(metadata.python_depends, metadata.backend,
                           check_.shown + "metadata.json", findings_);
        if (!metadata.digest) {
            add("metadata/digest", "it has no digest", "metadata.json");
            return;
        }
        for (const std::string& violation : digest_violations(*metadata.digest, files.digests)) {
            add("digest/mismatch", violation);
        }
    }

    // Where the package lies. Its calls tell which operators there are.
    std::optional<std::string> read_sources(const BuildFiles& files) {
        auto prefix = package_prefix(files.sources, package_name());
        if (prefix) {
            build_.sources = package_sources(files.sources, *prefix);
        }
        return prefix;
    }
    std::string package_name() const {
        return build_.metadata ? build_.metadata->package_name() : "";
    }

    void read_libraries() {
        for (const MappedFile& file : build_.files) {
            if (!is_library(file.path)) {
                continue;
            }
            const std::size_t before = build_.libraries.size();
            read_library_of(build_, file.path);
            if (build_.libraries.size() == before) {
                add("abi/library", "is no ELF file", file.path);
            } else if (build_.metadata) {
                check_namespace(file.path);
            }
        }
        if (build_.metadata) {
            add_merged_operators(build_.operators, build_.sources);
        }
    }

    // Schemas that carry a namespace, and the module of operators.
    void check_namespace(const std::string& path) {
        const binary::FileSource source(build_.path / path);
        const auto layout = binary::ElfLayout::read(source);
        std::set<std::string> others;
        binary::for_each_constant_string(*layout, ") -> ", longest_schema, [&](auto text) {
            const auto schema = parse_schema(text);
            if (schema && !schema->op_namespace.empty() &&
                schema->op_namespace != build_.metadata->id) {
                others.insert(schema->op_namespace);
            }
        });
        for (const std::string& other : others) {
            add("namespace/id",
                "registers operators in " + other + ", not in " + build_.metadata->id, path);
        }
    }

    void check_libraries(Audience audience) {
        AbiRules rules{variant_, std::nullopt};
        if (audience == Audience::here) {
            rules.machine = check_.machine;
        }
        for (const BuildLibrary& library : build_.libraries) {
            check_abi(library, check_.shown + library.path, rules, findings_);
        }
    }

    std::vector<std::string> check_archs() {
        std::vector<binary::DeviceCode> code;
        bool complete = true;
        for (const BuildLibrary& library : build_.libraries) {
            const auto& list = library.library.device_code;
            code.insert(code.end(), list.entries.begin(), list.entries.end());
            complete = complete && list.complete;
        }
        const auto built = binary::runnable_archs(code);
        if (!complete) {
            add("archs/declared", "some of the embedded GPU code cannot be read", "",
                Severity::warning);
        }
        if (!build_.metadata || build_.libraries.empty()) {
            return built;
        }
        const auto kind = build_.metadata->backend;
        if (kind == target::BackendKind::cuda || kind == target::BackendKind::rocm) {
            compare_archs(build_.metadata->archs, built, complete);
        }
        return built;
    }

    void compare_archs(const std::vector<std::string>& declared,
                       const std::vector<std::string>& built, bool complete) {
        std::set<std::string> in_metadata;
        std::set<std::string> in_code;
        for (const auto& arch : declared) in_metadata.insert(without_flags(arch));
        for (const auto& arch : built) in_code.insert(without_flags(arch));
        for (const std::string& arch : in_metadata) {
            if (complete && !in_code.contains(arch)) {
                add("archs/declared",
                    "declares " + base::printable(arch) + ", but has no code for it; it has " +
                        (built.empty() ? "none" : base::join(built, ", ")),
                    "metadata.json");
            }
        }
        for (const std::string& arch : in_code) {
            if (!in_metadata.contains(arch)) {
                add("archs/declared", "has code for " + arch + ", which it does not declare",
                    "metadata.json");
            }
        }
    }

    void check_sources(const std::optional<std::string>& prefix) {
        if (!prefix) {
            add("package/missing", "there is no __init__.py");
            return;
        }
        PackageRules rules{package_name(), {}, check_.shown + *prefix};
        if (build_.metadata) {
            rules.python_depends = build_.metadata->python_depends;
            check_operator_module(*prefix);
        }
        // What stands beside an older build's package in a folder of its own is a copy for older
        // clients, with absolute imports of its own.
        check_package(build_.sources, rules, findings_);
        check_layers(build_.sources, build_.python_needs, check_.shown + *prefix, findings_);
    }

    void check_operator_module(const std::string& prefix) {
        const auto written = build_.sources.find("_ops.py");
        if (written == build_.sources.end() || build_.libraries.empty()) {
            return;
        }
        if (written->second.find(build_.metadata->id) == std::string::npos) {
            add("namespace/id", "does not name torch.ops." + build_.metadata->id,
                prefix + "_ops.py");
        }
    }

    const BuildCheck& check_;
    Findings& findings_;
    std::optional<Variant> variant_;
    Build build_;
};

}  // namespace

CheckedBuild check_build(const fs::path& folder, const BuildCheck& check, Findings& findings) {
    return BuildChecker(folder, check, findings).run();
}

}  // namespace twinkle::kernel
