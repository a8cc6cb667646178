#include "cache/tree_file.h"

#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr int format_version = 1;
constexpr std::uint64_t largest_tree = 256u << 20;  // a million files

bool is_sha256(const std::string& text) {
    return text.size() == 64 && is_etag(text);
}

std::optional<std::string> text_of(const base::Json& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_string()) {
        return std::nullopt;
    }
    return found->get<std::string>();
}

std::optional<TreeFile> entry_of(const std::string& path, const base::Json& entry) {
    if (!is_safe_path(path) || !entry.is_object()) {
        return std::nullopt;
    }
    const auto size = entry.find("size");
    auto blob_id = text_of(entry, "blob_id");
    if (size == entry.end() || !size->is_number_unsigned() || !blob_id || !is_etag(*blob_id)) {
        return std::nullopt;
    }
    TreeFile file{path, size->get<std::uint64_t>(), std::move(*blob_id),
                  text_of(entry, "lfs_sha256"), text_of(entry, "xet_hash")};
    if (file.lfs_sha256 && !is_sha256(*file.lfs_sha256)) {
        return std::nullopt;
    }
    if (file.xet_hash && !is_sha256(*file.xet_hash)) {
        file.xet_hash.reset();
    }
    return file;
}

std::optional<std::vector<TreeFile>> parse_tree(const base::Json& document) {
    const auto version = document.find("format_version");
    const auto files = document.find("files");
    if (version == document.end() || *version != format_version || files == document.end() ||
        !files->is_object()) {
        return std::nullopt;
    }
    std::vector<TreeFile> tree;
    tree.reserve(files->size());
    for (const auto& [path, entry] : files->items()) {
        auto file = entry_of(path, entry);
        if (!file) {
            return std::nullopt;
        }
        tree.push_back(std::move(*file));
    }
    return tree;  // by path, as the keys of an object are
}

}  // namespace

ContentHash TreeFile::hash() const {
    return {kind_of_etag(etag()), etag()};
}

std::optional<std::vector<TreeFile>> read_tree(const Cache& cache, std::string_view repo_id,
                                               std::string_view commit) {
    const fs::path path = cache.tree_file(repo_id, commit);
    base::UniqueFd file = cache.folder().open(path, O_RDONLY | O_NONBLOCK);
    if (!file) {
        return std::nullopt;
    }
    try {
        const std::string text =
            base::read_file(std::move(file), path, "list of files", largest_tree);
        const auto document =
            base::parse_json(text, base::display_path(path), {.bytes = largest_tree, .depth = 8});
        return document.is_object() ? parse_tree(document) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace twinkle::cache
