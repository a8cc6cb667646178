#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>

#include "base/file.h"
#include "base/io_error.h"
#include "base/temporary_files.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace fs = std::filesystem;

namespace twinkle::base {
namespace {

void write_contents(int fd, std::string_view contents, const fs::path& destination) {
    if (const int error = write_all(fd, contents); error != 0) {
        throw_write_error(destination, error);
    }
}

std::string random_suffix() {
    static constexpr char digits[] = "0123456789abcdef";
    std::random_device device;
    std::string suffix = ".";
    for (int i = 0; i < 12; ++i) {
        suffix += digits[device() % 16];
    }
    return suffix + ".tmp";
}

bool is_special(const fs::path& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// The file that is really written: a link is kept, its target replaced.
fs::path follow(const fs::path& destination) {
    std::error_code error;
    if (fs::is_symlink(destination, error)) {
        fs::path target = fs::weakly_canonical(destination, error);
        return error ? destination : target;
    }
    return destination;
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& destination) : destination_(follow(destination)) {
    struct stat info{};
    const bool exists = ::stat(destination_.c_str(), &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        throw_write_error(destination_, EISDIR);
    }
    const bool special = exists && !S_ISREG(info.st_mode);
    std::error_code error;
    const fs::path folder =
        special ? fs::temp_directory_path(error) : fs::path(destination_).remove_filename();
    // A read-only file is not replaced, although its folder would allow it.
    if (exists && ::access(destination_.c_str(), W_OK) != 0) {
        throw_write_error(destination_, errno);
    }
    // Uses at most half of the name, so that a destination of 255 bytes still works.
    const std::string stem = "." + destination_.filename().string().substr(0, 100);
    for (int attempt = 0;; ++attempt) {
        temporary_ = folder / (stem + random_suffix());
        remember_temporary(temporary_);
        const UniqueFd fd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                 exists && !special ? info.st_mode & 0777 : 0666));
        if (fd) {
            if (exists && !special) {
                ::fchmod(fd.get(), info.st_mode & 07777);
            }
            return;
        }
        const int reason = errno;
        forget_temporary(temporary_);
        if (reason != EEXIST || attempt == 100) {
            temporary_.clear();
            throw_write_error(destination_, reason);
        }
    }
}

AtomicFile::~AtomicFile() {
    if (!temporary_.empty()) {
        ::unlink(temporary_.c_str());
        forget_temporary(temporary_);
    }
}

void AtomicFile::commit() {
    if (is_special(destination_)) {
        const UniqueFd out(::open(destination_.c_str(), O_WRONLY | O_CLOEXEC));
        if (!out) {
            throw_write_error(destination_, errno);
        }
        stream_file(temporary_, "temporary file", [&](std::string_view bytes) {
            write_contents(out.get(), bytes, destination_);
        });
        return;
    }
    const UniqueFd fd(::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC));
    // The data reaches the disk before the name does. After a power cut right after the rename
    // either of the two files may be left, and both are complete.
    if (!fd || ::fdatasync(fd.get()) != 0 ||
        ::rename(temporary_.c_str(), destination_.c_str()) != 0) {
        throw_write_error(destination_, errno);
    }
    forget_temporary(temporary_);
    temporary_.clear();
}

void AtomicFile::write(std::string_view contents) {
    const UniqueFd fd(::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) {
        throw_write_error(destination_, errno);
    }
    write_contents(fd.get(), contents, destination_);
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
    AtomicFile file(path);
    file.write(contents);
    file.commit();
}

}  // namespace twinkle::base
