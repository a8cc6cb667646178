#include "project/kernels_lock.h"

#include <algorithm>
#include <utility>

#include "base/document.h"
#include "base/evp.h"
#include "base/json.h"
#include "base/text.h"
#include "kernel/digest.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

constexpr int largest_version = 1'000'000;

// Python's `kernels` knows versions and revisions; a release is the tag it was found at.
Pin reference_pin(const LockedKernel& kernel) {
    Pin pin = kernel.pin;
    if (!pin.specifier.empty()) {
        pin = Pin{};
        pin.revision = kernel.ref;
    }
    return pin;
}

std::vector<const LockedKernel*> chosen(const Lock& lock,
                                        const std::optional<std::vector<HubRequest>>& roots) {
    std::vector<const LockedKernel*> result;
    const auto add = [&](const LockedKernel* kernel) {
        if (std::find(result.begin(), result.end(), kernel) == result.end()) {
            result.push_back(kernel);
        }
    };
    if (!roots) {
        for (const LockedKernel& kernel : lock.kernels) {
            if (!kernel.is_local()) {
                add(&kernel);
            }
        }
        return result;
    }
    for (const HubRequest& root : *roots) {
        if (const LockedKernel* kernel = lock.find(root.repo_id, root.pin)) {
            for (const LockedKernel* part : lock.tree(*kernel)) {
                add(part);
            }
        }
    }
    return result;
}

class KernelsLockReader {
public:
    explicit KernelsLockReader(std::string_view origin) : origin_(origin) {}

    Lock read(const Node& root) {
        if (root.kind != Node::Kind::array) {
            throw Error(ErrorCode::malformed, {.what = "cannot read kernels.lock",
                                               .where = base::located(origin_, root.at),
                                               .why = "it is not a list",
                                               .hint = ""});
        }
        Lock lock;
        lock.format = LockFormat::kernels;
        if (!root.items.empty() && root.items.front().find("repo_id") != nullptr) {
            lock.format = LockFormat::kernels_old;
        }
        for (const Node& item : root.items) {
            LockedKernel kernel =
                lock.format == LockFormat::kernels ? read_new(item) : read_old(item);
            const auto same = [&](const LockedKernel& other) {
                return other.name == kernel.name && other.pin == kernel.pin;
            };
            if (std::any_of(lock.kernels.begin(), lock.kernels.end(), same)) {
                TableReader(item, origin_, "kernels.lock")
                    .fail(item, base::printable(kernel.text()) + " is locked twice");
            }
            lock.set(std::move(kernel));
        }
        return lock;
    }

private:
    LockedKernel read_new(const Node& item) {
        TableReader entry(item, origin_, "an entry of kernels.lock");
        TableReader dependency(entry.require("dependency"), origin_, "a dependency");
        TableReader lock(entry.require("lock"), origin_, "a lock");
        LockedKernel kernel;
        kernel.name = repository(dependency, "repo-id");
        const auto version = dependency.integer("version", 0, largest_version);
        const auto revision = dependency.string("revision");
        if (version.has_value() == revision.has_value()) {
            dependency.fail(item, "exactly one of \"version\" and \"revision\" is needed");
        }
        if (version) {
            kernel.pin.version = static_cast<int>(*version);
            kernel.ref = "v" + std::to_string(*version);
        } else if (!is_revision(*revision)) {
            dependency.fail(item, "\"revision\" is no name of a branch, tag or commit");
        } else {
            kernel.pin.revision = *revision;
            kernel.ref = *revision;
        }
        kernel.commit = commit(lock, "commit");
        lock.finish();
        dependency.finish();
        entry.finish();
        return kernel;
    }

    LockedKernel read_old(const Node& item) {
        TableReader entry(item, origin_, "an entry of kernels.lock");
        LockedKernel kernel;
        kernel.name = repository(entry, "repo_id");
        kernel.commit = commit(entry, "sha");
        for (const auto& [name, at, value] :
             entry.as_table(entry.require("variants"), "variants").members) {
            TableReader fields(value, origin_, "a variant of kernels.lock");
            LockedVariant variant;
            variant.name = name;
            const Node& hash = fields.require("hash");
            variant.concat_hash = fields.as_string(hash, "hash");
            const Node& kind = fields.require("hash_type");
            if (fields.as_string(kind, "hash_type") != "git_lfs_concat") {
                fields.fail(kind, "\"hash_type\" is not \"git_lfs_concat\"");
            }
            const std::string_view digits =
                std::string_view(variant.concat_hash)
                    .substr(std::min<std::size_t>(variant.concat_hash.size(), 7));
            if (!variant.concat_hash.starts_with("sha256-") || digits.size() != 64 ||
                digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
                fields.fail(hash, "\"hash\" is not \"sha256-\" and 64 hexadecimal digits");
            }
            fields.finish();
            kernel.variants.push_back(std::move(variant));
        }
        std::sort(kernel.variants.begin(), kernel.variants.end(),
                  [](const LockedVariant& a, const LockedVariant& b) { return a.name < b.name; });
        entry.finish();
        return kernel;
    }

    static std::string repository(TableReader& reader, std::string_view key) {
        const Node& value = reader.require(key);
        std::string text = reader.as_string(value, key);
        if (!is_repository_id(text)) {
            reader.fail(value, "\"" + std::string(key) + "\" is not org/name");
        }
        return text;
    }

    // Python's `kernels` reads capitals too.
    static std::string commit(TableReader& reader, std::string_view key) {
        const Node& value = reader.require(key);
        std::string text = reader.as_string(value, key);
        std::transform(text.begin(), text.end(), text.begin(), [](char c) {
            return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        if (!cache::is_commit(text)) {
            reader.fail(value, "\"" + std::string(key) + "\" is not 40 or 64 hexadecimal digits");
        }
        return text;
    }

    std::string origin_;
};

}  // namespace

std::string kernels_lock_json(const Lock& lock,
                              const std::optional<std::vector<HubRequest>>& roots) {
    struct Entry {
        std::string repo_id;
        Pin pin;
        std::string commit;
    };
    std::vector<Entry> entries;
    for (const LockedKernel* kernel : chosen(lock, roots)) {
        entries.push_back({kernel->name, reference_pin(*kernel), kernel->commit});
    }
    const auto before = [](const Entry& a, const Entry& b) {
        return a.repo_id != b.repo_id ? a.repo_id < b.repo_id : comes_before(a.pin, b.pin);
    };
    std::sort(entries.begin(), entries.end(), before);
    const auto same = [&](const Entry& a, const Entry& b) {
        return !before(a, b) && !before(b, a);
    };
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());

    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const Entry& entry : entries) {
        Json dependency = {{"repo-id", entry.repo_id}};
        if (entry.pin.version) {
            dependency["version"] = *entry.pin.version;
        } else {
            dependency["revision"] = entry.pin.revision;
        }
        list.push_back(
            {{"dependency", std::move(dependency)}, {"lock", {{"commit", entry.commit}}}});
    }
    return list.dump(2);
}

Lock parse_kernels_lock(std::string_view json, std::string_view origin) {
    return KernelsLockReader(origin).read(base::parse_json_document(json, origin));
}

std::string concat_hash(std::string_view variant, std::span<const cache::TreeFile> tree) {
    const std::string folder = "build/" + std::string(variant) + "/";
    std::vector<std::pair<std::string, std::string>> files;
    for (const cache::TreeFile& file : tree) {
        if (file.path.starts_with(folder) && !kernel::is_bytecode(file.path)) {
            files.emplace_back(file.path.substr(folder.size()), file.etag());
        }
    }
    std::sort(files.begin(), files.end());
    base::EvpDigest digest(base::DigestKind::sha256);
    for (const auto& [path, hex] : files) {
        digest.update(path);
        std::string raw;
        for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
            raw += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        }
        digest.update(raw);
    }
    return "sha256-" + base::to_hex(digest.finish());
}

}  // namespace twinkle::project
