#include "runtime/exported/archive.h"

#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "runtime/model/little_endian.h"
#include "twinkle/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace twinkle::runtime::exported {

namespace {

constexpr std::size_t most_records = 1u << 20;
constexpr std::uint64_t header_size = 30;
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

MappedFile::MappedFile(const std::filesystem::path& file) {
    const base::UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts{};
    if (!opened || ::fstat(opened.get(), &facts) != 0) {
        cannot_read(file, errno);
    }
    size_ = static_cast<std::size_t>(facts.st_size);
    if (size_ == 0) {
        return;
    }
    void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                          opened.get(), 0);
    if (mapped == MAP_FAILED) {
        cannot_read(file, errno);
    }
    data_ = static_cast<char*>(mapped);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) {
        ::munmap(data_, size_);
    }
}

std::string_view Archive::bytes_of(const ZipEntry& entry) const {
    const std::string_view all(mapping_->data(), mapping_->size());
    const auto damaged = [&]() {
        refuse_archive(file_,
                       "its record " + base::printable(entry.name) + " is damaged or cut short",
                       "copy or download it again");
    };
    if (!entry.stored) {
        refuse_archive(file_, "its record " + base::printable(entry.name) + " is compressed",
                       "torch.export.save compresses nothing: " + save_again);
    }
    if (entry.header > all.size() || all.size() - entry.header < header_size) {
        damaged();
    }
    const std::string_view header = all.substr(entry.header);
    const std::uint64_t begin = header_size + little_endian<std::uint16_t>(header, 26) +
                                little_endian<std::uint16_t>(header, 28);
    if (!header.starts_with("PK\x03\x04") || begin > header.size() ||
        entry.size > header.size() - begin) {
        damaged();
    }
    return header.substr(begin, entry.size);
}

Archive::Archive(const std::filesystem::path& file) : file_(file) {
    const auto entries = zip_directory(file);
    mapping_ = std::make_shared<const MappedFile>(file);
    if (!entries || entries->empty()) {
        refuse_archive(file, "its zip archive is damaged or cut short",
                       "copy or download it again");
    }
    if (entries->size() > most_records) {
        refuse_archive(file, "it has too many records", "");
    }
    if (const auto problem = invalid_sizes(*entries, mapping_->size())) {
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
        if (!records_.emplace(name, bytes_of(entry)).second) {
            refuse_archive(file, "it has the record " + base::printable(name) + " twice",
                           save_again);
        }
    }
    if (const auto order = records_.find("byteorder");
        order != records_.end() && order->second != "little") {
        refuse_archive(file, "its numbers are not little-endian",
                       "export it on this kind of machine");
    }
}

std::string_view Archive::record(const std::string& name) const {
    const auto found = records_.find(name);
    if (found == records_.end()) {
        refuse_archive(file_, "it has no record " + base::printable(name), save_again);
    }
    return found->second;
}

std::vector<std::string> Archive::models() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : records_) {
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

}  // namespace twinkle::runtime::exported
