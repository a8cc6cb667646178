#include "hub/answers.h"

#include <algorithm>
#include <unordered_set>

#include "base/json.h"
#include "base/text.h"
#include "cache/layout.h"
#include "hub/hub_error.h"
#include "hub/names.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

using base::Json;

constexpr std::size_t most_refs = 20'000;
constexpr std::size_t most_pages = 500;
constexpr std::size_t most_entries = 100'000;
constexpr std::uint64_t largest_file = std::uint64_t{1} << 40;
constexpr std::uint64_t largest_tree = std::uint64_t{1} << 43;

Json parse(std::string_view body, const std::string& url, Json::value_t wanted) {
    Json document;
    try {
        document = base::parse_json(body, "the answer", {.bytes = 16u << 20, .depth = 16});
    } catch (const Error& error) {
        refuse_answer(url, "it is not JSON: " + error.details().why);
    }
    if (document.type() != wanted) {
        refuse_answer(url, "it is JSON of another kind");
    }
    return document;
}

std::string text_of(const Json& object, const char* key, const std::string& url) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
        refuse_answer(url, "\"" + std::string(key) + "\" is not there, or is not text");
    }
    return found->get<std::string>();
}

std::string commit_of(const Json& object, const char* key, const std::string& url) {
    std::string commit = text_of(object, key, url);
    if (!cache::is_commit(commit)) {
        refuse_answer(url, "\"" + base::printable(commit.substr(0, 100)) + "\" is not a commit");
    }
    return commit;
}

std::uint64_t size_of(const Json& object, const std::string& url) {
    const auto found = object.find("size");
    if (found == object.end() || !found->is_number_unsigned() ||
        found->get<std::uint64_t>() > largest_file) {
        refuse_answer(url, "the size of a file is not one");
    }
    return found->get<std::uint64_t>();
}

bool is_revision(std::string_view text) {
    try {
        check_revision(text);
        return true;
    } catch (const Error&) {
        return false;
    }
}

std::vector<Ref> refs_of(const Json& document, const char* key, const std::string& url) {
    std::vector<Ref> refs;
    const auto found = document.find(key);
    if (found == document.end()) {
        return refs;
    }
    if (!found->is_array() || found->size() > most_refs) {
        refuse_answer(url, "\"" + std::string(key) + "\" is not a list, or is endless");
    }
    for (const Json& item : *found) {
        if (!item.is_object()) {
            refuse_answer(url, "\"" + std::string(key) + "\" holds what is not a ref");
        }
        Ref ref{text_of(item, "name", url), text_of(item, "ref", url),
                commit_of(item, "targetCommit", url)};
        // Skips a name that cannot be requested; the others stay usable.
        if (is_revision(ref.name) && is_revision(ref.ref)) {
            refs.push_back(std::move(ref));
        }
    }
    return refs;
}

cache::TreeFile file_of(const Json& entry, std::string path, const std::string& url) {
    cache::TreeFile file;
    file.path = std::move(path);
    file.size = size_of(entry, url);
    file.blob_id = text_of(entry, "oid", url);
    if (file.blob_id.size() != 40 || !cache::is_etag(file.blob_id)) {
        refuse_answer(url, "the hash of " + base::printable(file.path) + " is not one");
    }
    if (const auto lfs = entry.find("lfs"); lfs != entry.end() && !lfs->is_null()) {
        if (!lfs->is_object()) {
            refuse_answer(url, "\"lfs\" of " + base::printable(file.path) + " is not an object");
        }
        std::string oid = text_of(*lfs, "oid", url);
        if (oid.starts_with("sha256:")) {
            oid.erase(0, 7);
        }
        if (oid.size() != 64 || !cache::is_etag(oid) || size_of(*lfs, url) != file.size) {
            refuse_answer(url, "the hash or size of " + base::printable(file.path) + " is not one");
        }
        file.lfs_sha256 = std::move(oid);
    }
    if (const auto xet = entry.find("xetHash"); xet != entry.end() && xet->is_string()) {
        const auto& hash = xet->get_ref<const std::string&>();
        if (hash.size() == 64 && cache::is_etag(hash)) {
            file.xet_hash = hash;
        }
    }
    return file;
}

}  // namespace

Refs read_refs(std::string_view body, const std::string& url) {
    const Json document = parse(body, url, Json::value_t::object);
    if (!document.contains("branches")) {
        refuse_answer(url, "\"branches\" is not there");
    }
    return {refs_of(document, "branches", url), refs_of(document, "tags", url)};
}

std::string read_commit(std::string_view body, const std::string& url) {
    return commit_of(parse(body, url, Json::value_t::object), "sha", url);
}

bool read_trust(std::string_view body, const std::string& url) {
    const Json document = parse(body, url, Json::value_t::object);
    const auto found = document.find("trustedKernelPublisher");
    return found != document.end() && found->is_boolean() && found->get<bool>();
}

void TreePages::add(std::string_view body, const std::string& url) {
    const Json document = parse(body, url, Json::value_t::array);
    for (const Json& entry : document) {
        if (!entry.is_object()) {
            refuse_answer(url, "it lists what is not an object");
        }
        std::string path = text_of(entry, "path", url);
        if (const std::string flaw = path_flaw(path); !flaw.empty()) {
            refuse_answer(url,
                          "it lists \"" + base::printable(path.substr(0, 200)) + "\": " + flaw);
        }
        if (!folder_.empty() && !path.starts_with(folder_ + "/")) {
            refuse_answer(url, "it lists " + base::printable(path) + ", which is not in " +
                                   base::printable(folder_));
        }
        const std::string type = text_of(entry, "type", url);
        if (type == "directory") {
            tree_.folders.push_back(std::move(path));
        } else if (type == "file") {
            tree_.files.push_back(file_of(entry, std::move(path), url));
            total_size_ += tree_.files.back().size;
        }
        if (tree_.files.size() + tree_.folders.size() > most_entries ||
            total_size_ > largest_tree) {
            refuse_answer(url, "it lists more than any repository has");
        }
    }
}

std::optional<std::string> TreePages::next(const Headers& headers, const std::string& url) {
    ++pages_;
    seen_urls_.insert(url);
    const auto link = headers.get("link");
    const auto target = link ? next_link(*link) : std::nullopt;
    if (!target) {
        return std::nullopt;
    }
    auto page = resolve_url(url, *target);
    if (!page || origin_of(*page) != origin_of(url)) {
        refuse_answer(url, "its next page is at another host");
    }
    if (!seen_urls_.insert(*page).second || pages_ >= most_pages) {
        refuse_answer(url, "its pages have no end");
    }
    return page;
}

Tree TreePages::take(const std::string& url) {
    auto& [files, folders] = tree_;
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    std::sort(folders.begin(), folders.end());
    std::unordered_set<std::string_view> names;
    for (const cache::TreeFile& file : files) {
        if (!names.insert(file.path).second) {
            refuse_answer(url, "it lists " + base::printable(file.path) + " twice");
        }
    }
    const auto check_parents = [&](std::string_view path) {
        for (auto slash = path.find('/'); slash != std::string_view::npos;
             slash = path.find('/', slash + 1)) {
            if (names.contains(path.substr(0, slash))) {
                refuse_answer(url, "in it " + base::printable(path.substr(0, slash)) +
                                       " is a file and a folder");
            }
        }
    };
    for (const cache::TreeFile& file : files) {
        check_parents(file.path);
    }
    for (const std::string& folder : folders) {
        check_parents(folder + "/");
    }
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    return std::move(tree_);
}

}  // namespace twinkle::hub
