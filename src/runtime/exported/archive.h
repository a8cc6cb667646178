#pragma once
// An archive of torch.export (.pt2): a zip of records that are stored as they are. The file is
// mapped, so that weights lie in memory once, and only as far as somebody reads them.

#include "runtime/model/zip_directory.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime::exported {

// The bytes of a file. What is written to them stays in this process.
class MappedFile {
public:
    // Throws Error(failed).
    explicit MappedFile(const std::filesystem::path& file);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    char* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

class Archive {
public:
    // Throws Error(malformed) for what is no such archive, is damaged, or names a record twice or
    // outside of its own folder.
    explicit Archive(const std::filesystem::path& file);

    // Names are without the folder that all records share: "models/model.json".
    bool has(const std::string& name) const { return records_.contains(name); }
    // The bytes, which stay where they are as long as the mapping does. Throws Error(malformed) if
    // there is no such record.
    std::string_view record(const std::string& name) const;
    // The models that it holds, by name.
    std::vector<std::string> models() const;

    const std::filesystem::path& file() const { return file_; }
    const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

private:
    std::string_view bytes_of(const ZipEntry& entry) const;

    std::filesystem::path file_;
    std::shared_ptr<const MappedFile> mapping_;
    std::map<std::string, std::string_view> records_;
};

// What a zip archive is, by the names of its records alone.
enum class ArchiveKind {
    other,
    exported,      // of torch.export
    old_exported,  // of torch.export before 2.8
    compiled,      // by AOTInductor, and nothing else in it
};
// `other` for what is no zip archive, too. Throws nothing.
ArchiveKind kind_of_archive(const std::filesystem::path& file);

// Throws Error(malformed): `why` the archive is not what it should be.
[[noreturn]] void refuse_archive(const std::filesystem::path& file, const std::string& why,
                                 const std::string& hint);

}  // namespace twinkle::runtime::exported
