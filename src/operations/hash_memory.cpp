#include "operations/hash_memory.h"

#include "base/file.h"
#include "base/file_identity.h"
#include "base/hex.h"
#include "base/json.h"
#include "target/user_cache.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

constexpr const char* schema = "twinkle.verified/1";
constexpr std::size_t most_entries = 100'000;

std::string hex_of(const base::Json& entry, const char* key, std::size_t digits) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_string()) {
        return {};
    }
    const auto& text = found->get_ref<const std::string&>();
    const bool hex =
        text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return hex ? text : std::string();
}

}  // namespace

HashMemory::HashMemory(fs::path file) : file_(std::move(file)) {
    try {
        const auto json = base::read_json_file(file_, "memory of verified files");
        if (!json.is_object() || json.value("schema", "") != schema ||
            !json.value("files", base::Json()).is_object()) {
            return;
        }
        for (const auto& [identity, entry] : json["files"].items()) {
            if (entry.is_object()) {
                known_[identity] = {hex_of(entry, "sha256", 64), hex_of(entry, "sha512", 128),
                                    hex_of(entry, "git", 40)};
            }
        }
    } catch (const Error&) {
        known_.clear();
    } catch (const base::Json::exception&) {  // "schema" is no string
        known_.clear();
    }
}

fs::path HashMemory::usual_place(const target::Machine& machine) {
    return target::user_cache(machine) / "verified.json";
}

std::string HashMemory::identity_of(const fs::path& file) {
    const auto identity = base::identity_of(file);
    return identity ? identity->text : std::string();
}

bool HashMemory::recall(HashJob& job) const {
    const auto found = known_.find(identity_of(job.file));
    if (found == known_.end()) {
        return false;
    }
    const auto& known = found->second;
    if ((job.sha256 && known.sha256.empty()) || (job.sha512 && known.sha512.empty()) ||
        (job.git_sha1 && known.git_sha1.empty())) {
        return false;
    }
    std::error_code error;
    job.size = fs::file_size(job.file, error);
    job.sha256_bytes = base::from_hex(known.sha256).value_or("");
    job.sha512_bytes = base::from_hex(known.sha512).value_or("");
    job.git_sha1_hex = known.git_sha1;
    return !error;
}

void HashMemory::remember(const HashJob& job, const std::string& before) {
    if (job.missing || before.empty() || before != identity_of(job.file) ||
        known_.size() >= most_entries) {
        return;
    }
    auto& known = known_[before];
    if (job.sha256) {
        known.sha256 = base::to_hex(job.sha256_bytes);
    }
    if (job.sha512) {
        known.sha512 = base::to_hex(job.sha512_bytes);
    }
    if (job.git_sha1) {
        known.git_sha1 = job.git_sha1_hex;
    }
}

bool HashMemory::save() const {
    base::Json files = base::Json::object();
    for (const auto& [identity, known] : known_) {
        files[identity] = {
            {"sha256", known.sha256}, {"sha512", known.sha512}, {"git", known.git_sha1}};
    }
    std::error_code ignored;
    fs::create_directories(file_.parent_path(), ignored);
    try {
        base::write_file_atomically(file_, base::dump_json({{"schema", schema}, {"files", files}}));
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace twinkle::operations
