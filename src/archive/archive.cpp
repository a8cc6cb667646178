#include "archive/archive.h"

#include "archive/little_endian.h"
#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "twinkle/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace twinkle::archive {

namespace {

constexpr std::size_t most_records = 1u << 20;
constexpr std::uint64_t header_size = 30;
constexpr std::uint64_t longest_read = 64u << 20;
constexpr std::uint64_t longest_byte_order = 16;
constexpr std::uint64_t alignment = 64;  // of the records that PyTorch writes
constexpr std::string_view models_folder = "models/";
constexpr std::string_view old_program = "serialized_exported_program.json";
const std::string save_again =
    "save the model again with torch.export.save of PyTorch 2.9 or newer";

[[noreturn]] void cannot_read(const std::filesystem::path& file, int error) {
    throw Error(ErrorCode::failed, {.what = "the model cannot be read",
                                    .where = base::display_path(file),
                                    .why = base::io_reason(error),
                                    .hint = ""});
}

// Null where the system cannot.
std::shared_ptr<char> map_file(int file, std::uint64_t size) {
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) {
        return nullptr;
    }
    return {static_cast<char*>(at), [size](char* mapped) { ::munmap(mapped, size); }};
}

bool leaves_its_folder(std::string_view name) {
    const auto parts = base::split(name, '/');
    return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
        return part.empty() || part == "." || part == "..";
    });
}

// "llama/models/model.json": the record's name in the archive's one folder.
std::string_view without_folder(std::string_view name) {
    const auto slash = name.find('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

bool is_model(std::string_view record) {
    return record.starts_with(models_folder) && record.ends_with(".json") &&
           record.find('/', models_folder.size()) == std::string_view::npos;
}

ArchiveKind kind_of(const std::vector<ZipEntry>& entries) {
    ArchiveKind kind = ArchiveKind::other;
    for (const ZipEntry& entry : entries) {
        const std::string_view name = without_folder(entry.name);
        if (is_model(name)) {
            return ArchiveKind::exported;
        }
        if (name == old_program) {
            kind = ArchiveKind::old_exported;
        } else if (name.starts_with("data/aotinductor/") && kind == ArchiveKind::other) {
            kind = ArchiveKind::compiled;
        }
    }
    return kind;
}

}  // namespace

void refuse_archive(const std::filesystem::path& file, const std::string& why,
                    const std::string& hint) {
    throw Error(ErrorCode::malformed, {.what = "the export archive cannot be read",
                                       .where = base::display_path(file),
                                       .why = why,
                                       .hint = hint});
}

bool Archive::read_at(std::uint64_t offset, char* into, std::uint64_t size) const {
    while (size > 0) {
        const ssize_t got =
            ::pread(opened_.get(), into, std::min(size, longest_read), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            cannot_read(file_, errno);
        }
        if (got == 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(got);
        into += got;
        size -= static_cast<std::uint64_t>(got);
    }
    return true;
}

Archive::Place Archive::checked_place(const ZipEntry& entry, std::uint64_t file_size) const {
    if (!entry.stored) {
        refuse_archive(file_, "its record " + base::printable(entry.name) + " is compressed",
                       "torch.export.save compresses nothing: " + save_again);
    }
    std::string header(header_size, '\0');
    const bool whole = entry.header <= file_size && file_size - entry.header >= header_size &&
                       read_at(entry.header, header.data(), header_size);
    const std::uint64_t begin = header_size + little_endian<std::uint16_t>(header, 26) +
                                little_endian<std::uint16_t>(header, 28);
    if (!whole || !header.starts_with("PK\x03\x04") || begin > file_size - entry.header ||
        entry.size > file_size - entry.header - begin) {
        refuse_archive(file_,
                       "its record " + base::printable(entry.name) + " is damaged or cut short",
                       "copy or download it again");
    }
    return {entry.header + begin, entry.size};
}

Archive::Archive(const std::filesystem::path& file, Access access) : file_(file) {
    opened_ = base::UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (!opened_ || ::fstat(opened_.get(), &facts) != 0) {
        cannot_read(file, errno);
    }
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    const auto entries = zip_directory(file);
    if (!entries || entries->empty()) {
        refuse_archive(file, "its zip archive is damaged or cut short",
                       "copy or download it again");
    }
    if (entries->size() > most_records) {
        refuse_archive(file, "it has too many records", "");
    }
    if (const auto problem = invalid_sizes(*entries, size)) {
        refuse_archive(file, *problem, save_again);
    }
    if (kind_of(*entries) == ArchiveKind::old_exported) {
        refuse_archive(file, "it was written by PyTorch 2.7 or older, which pickled the weights",
                       save_again);
    }
    const std::string folder = entries->front().name.substr(0, entries->front().name.find('/'));
    for (const ZipEntry& entry : *entries) {
        const std::string name(without_folder(entry.name));
        if (!entry.name.starts_with(folder + "/") || leaves_its_folder(entry.name)) {
            refuse_archive(file,
                           "its record " + base::printable(entry.name) +
                               " is outside of the model's own folder",
                           save_again);
        }
        if (!records_.emplace(name, checked_place(entry, size)).second) {
            refuse_archive(file, "it has the record " + base::printable(name) + " twice",
                           save_again);
        }
    }
    if (has("byteorder") && text("byteorder", longest_byte_order) != "little") {
        refuse_archive(file, "its numbers are not little-endian",
                       "export it on this kind of machine");
    }
    if (access == Access::mapped) {
        mapping_ = map_file(opened_.get(), size);
    }
}

const Archive::Place& Archive::place_of(const std::string& name) const {
    const auto found = records_.find(name);
    if (found == records_.end()) {
        refuse_archive(file_, "it has no record " + base::printable(name), save_again);
    }
    return found->second;
}

void Archive::read(const std::string& name, char* into) const {
    const Place& place = place_of(name);
    if (!read_at(place.offset, into, place.size)) {
        refuse_archive(file_, "it has become shorter while it was read",
                       "let nothing write to it, and try again");
    }
}

std::shared_ptr<char> Archive::mapped(const std::string& name) const {
    const Place& place = place_of(name);
    if (!mapping_ || place.offset % alignment != 0) {
        return nullptr;
    }
    return {mapping_, mapping_.get() + place.offset};
}

std::string Archive::text(const std::string& name, std::uint64_t most) const {
    const std::uint64_t size = size_of(name);
    if (size > most) {
        refuse_archive(file_,
                       "its record " + base::printable(name) + " is larger than any sane one",
                       save_again);
    }
    std::string bytes(size, '\0');
    read(name, bytes.data());
    return bytes;
}

std::vector<std::string> Archive::names() const {
    std::vector<std::string> names;
    for (const auto& [name, place] : records_) {
        names.push_back(name);
    }
    return names;
}

std::vector<std::string> Archive::models() const {
    std::vector<std::string> names;
    for (const auto& [name, place] : records_) {
        if (is_model(name)) {
            names.push_back(
                name.substr(models_folder.size(), name.size() - models_folder.size() - 5));
        }
    }
    return names;
}

ArchiveKind kind_of_archive(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {  // opening a pipe would wait
        return ArchiveKind::other;
    }
    return kind_of(zip_directory(file).value_or(std::vector<ZipEntry>()));
}

}  // namespace twinkle::archive
