#pragma once
// An archive of torch.export (.pt2): a zip of records that are stored as they are. They are read
// when somebody asks for them, into memory of his own: whatever happens to the file later, what was
// read stays as it is. A mapping of the file costs neither memory nor time, but ends the process
// with SIGBUS once the file shrinks: it is for processes of one command.

#include "archive/zip_directory.h"
#include "base/unique_fd.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::archive {

enum class Access { copied, mapped };

class Archive {
public:
    // Throws Error(malformed) for what is no such archive, is damaged, or names a record twice or
    // outside of its own folder.
    explicit Archive(const std::filesystem::path& file, Access access = Access::copied);

    // Names are without the folder that all records share: "models/model.json".
    bool has(const std::string& name) const { return records_.contains(name); }
    // Throw Error(malformed) if there is no such record, if it is larger than `most` bytes, or if
    // the file has become shorter since.
    std::uint64_t size_of(const std::string& name) const { return place_of(name).size; }
    std::string text(const std::string& name, std::uint64_t most) const;
    // All of it, as many bytes as size_of() says.
    void read(const std::string& name, char* into) const;
    // All of it where it lies, which keeps the mapping; what is written there changes no file. Null
    // if the archive is not mapped, or if the record begins at no multiple of 64 bytes.
    std::shared_ptr<char> mapped(const std::string& name) const;
    std::vector<std::string> names() const;  // of all records
    // The models that it holds, by name.
    std::vector<std::string> models() const;

    const std::filesystem::path& file() const { return file_; }

private:
    struct Place {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
    };
    Place checked_place(const ZipEntry& entry, std::uint64_t file_size) const;
    const Place& place_of(const std::string& name) const;
    // Whether all of these bytes were there.
    bool read_at(std::uint64_t offset, char* into, std::uint64_t size) const;

    std::filesystem::path file_;
    base::UniqueFd opened_;
    std::shared_ptr<char> mapping_;
    std::map<std::string, Place> records_;
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

}  // namespace twinkle::archive
