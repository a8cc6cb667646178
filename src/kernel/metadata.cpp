#include "kernel/metadata.h"

#include <algorithm>

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"

namespace twinkle::kernel {
namespace {

using base::TableReader;

constexpr std::string_view lower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view lower_digits = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view identifier =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool consists_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_kernel_name(std::string_view name) {
    return name.size() >= 2 && consists_of(name.substr(0, 1), lower) &&
           consists_of(name.substr(name.size() - 1), lower_digits) &&
           consists_of(name, "-abcdefghijklmnopqrstuvwxyz0123456789");
}

bool is_commit(std::string_view text) {
    return (text.size() == 40 || text.size() == 64) && consists_of(text, "0123456789abcdefABCDEF");
}

bool is_three_numbers(std::string_view text) {
    const auto parts = base::split(text, '.');
    return parts.size() == 3 && std::all_of(parts.begin(), parts.end(), [](const auto& part) {
               return !part.empty() && part.size() < 10 && consists_of(part, "0123456789");
           });
}

class MetadataReader {
public:
    explicit MetadataReader(std::string_view origin) : origin_(origin) {}

    Metadata read(const base::Node& root) {
        TableReader reader(root, origin_, "the metadata of a kernel");
        Metadata metadata;
        metadata.id = checked(reader, "id", "an identifier", [](std::string_view id) {
            return !id.empty() && consists_of(id, identifier);
        });
        metadata.name = checked(reader, "name", "a kernel name (as in layer-norm)", is_kernel_name);
        reader.require("version");
        metadata.version = static_cast<std::uint32_t>(*reader.integer("version", 0, UINT32_MAX));
        metadata.license = reader.required_string("license");
        metadata.python_depends =
            reader.as_strings(reader.require("python-depends"), "python-depends");
        read_backend(reader.require("backend"), metadata);
        if (const base::Node* digest = reader.find("digest")) {
            metadata.digest = read_digest(*digest);
        }
        if (reader.find("kernels-minver") != nullptr) {
            metadata.kernels_minver =
                checked(reader, "kernels-minver", "three numbers (as in 0.17.0)", is_three_numbers);
        }
        if (const base::Node* list = reader.find("kernel-depends")) {
            for (const base::Node& item : reader.as_array(*list, "kernel-depends").items) {
                metadata.kernel_depends.push_back(read_dependency(item));
            }
        }
        metadata.upstream = reader.string("upstream").value_or("");
        metadata.source = reader.string("source").value_or("");
        if (const base::Node* provenance = reader.find("provenance")) {
            metadata.provenance = read_provenance(*provenance);
        }
        return metadata;
    }

private:
    template <typename Check>
    std::string checked(TableReader& reader, std::string_view key, std::string_view wanted,
                        Check&& check) {
        const base::Node& value = reader.require(key);
        std::string text = reader.as_string(value, key);
        if (!check(text)) {
            reader.fail(value, "\"" + std::string(key) + "\" is not " + std::string(wanted));
        }
        return text;
    }

    void read_backend(const base::Node& node, Metadata& metadata) {
        TableReader reader(node, origin_, "the backend of a kernel");
        const base::Node& type = reader.require("type");
        const auto kind = target::parse_backend_type(reader.as_string(type, "type"));
        if (!kind) {
            reader.fail(type, "\"type\" is no backend",
                        "backends: cann, cpu, cuda, metal, neuron, rocm, tpu, xpu");
        }
        metadata.backend = *kind;
        metadata.archs = reader.strings("archs");
    }

    Digest read_digest(const base::Node& node) {
        TableReader reader(node, origin_, "the digest of a kernel");
        Digest digest;
        digest.algorithm = checked(reader, "algorithm", "sha256 or sha512", [](std::string_view a) {
            return a == "sha256" || a == "sha512";
        });
        const base::Node& files = reader.as_table(reader.require("files"), "files");
        for (const base::Member& member : files.members) {
            digest.files.emplace(member.key, reader.as_string(member.value, member.key));
        }
        return digest;
    }

    KernelDependency read_dependency(const base::Node& node) {
        TableReader reader(node, origin_, "a dependency of a kernel");
        KernelDependency dependency;
        dependency.repo_id = reader.required_string("repo-id");
        if (const auto version = reader.integer("version", 0, UINT32_MAX)) {
            dependency.version = static_cast<std::uint32_t>(*version);
        }
        const auto revision = reader.string("revision");
        dependency.revision = revision.value_or("");
        if (dependency.version.has_value() == revision.has_value()) {
            reader.fail(node, "exactly one of \"version\" and \"revision\" is needed");
        }
        reader.finish();
        return dependency;
    }

    std::optional<GitState> read_git(const base::Node& node, std::string_view what) {
        TableReader reader(node, origin_, what);
        const base::Node* commit = reader.find("commit");
        const base::Node* sha = reader.find("sha");
        if (commit != nullptr && sha != nullptr) {
            reader.fail(*sha, "\"commit\" and \"sha\" are both given");
        }
        const base::Node* value = commit != nullptr ? commit : sha;
        const auto dirty = reader.boolean("dirty");
        if (value == nullptr) {
            return std::nullopt;
        }
        GitState state{reader.as_string(*value, "commit"), dirty.value_or(false)};
        if (!is_commit(state.commit)) {
            reader.fail(*value, "the commit is not 40 or 64 hexadecimal digits");
        }
        if (!dirty) {
            reader.fail(node, "the key \"dirty\" is missing");
        }
        return state;
    }

    Provenance read_provenance(const base::Node& node) {
        TableReader reader(node, origin_, "the provenance of a kernel");
        Provenance provenance;
        const base::Node& builder = reader.require("kernel-builder");
        provenance.builder = read_git(builder, "the provenance of the builder");
        TableReader fields(builder, origin_, "the provenance of the builder");
        provenance.builder_version = fields.required_string("version");
        if (const base::Node* kernel = reader.find("kernel")) {
            provenance.kernel = read_git(*kernel, "the provenance of the kernel");
            if (!provenance.kernel) {
                reader.fail(*kernel, "the commit is missing");
            }
        }
        return provenance;
    }

    std::string_view origin_;
};

}  // namespace

std::string Metadata::package_name() const {
    std::string package = name;
    std::replace(package.begin(), package.end(), '-', '_');
    return package;
}

Metadata parse_metadata(std::string_view json, std::string_view origin) {
    return MetadataReader(origin).read(base::parse_json_document(json, origin));
}

Metadata read_metadata(const std::filesystem::path& file) {
    return parse_metadata(base::read_file(file, "metadata of a kernel", 16u << 20),
                          base::display_path(file));
}

}  // namespace twinkle::kernel
