#include "runtime/kernels/verified_files.h"

#include "base/sha256.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "twinkle/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace twinkle::runtime {

namespace {

[[noreturn]] void fail(ErrorCode code, const MappedKernel& kernel, const MappedFile& file,
                       const std::string& what, const std::string& why) {
    throw Error(code,
                {.what = what,
                 .where = (kernel.path / file.path).string(),
                 .why = why,
                 .hint = "run `twinkle resolve` again, if the kernel was changed on purpose"});
}

// Streams the file through the hash into `sink`; the caller compares.
template <typename Sink>
base::FileHash stream(const MappedKernel& kernel, const MappedFile& file, Sink&& sink) {
    const std::filesystem::path path = kernel.path / file.path;
    const base::UniqueFd input(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status{};
    if (!input) {
        fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::failed, kernel, file,
             "a file of the kernel " + kernel.name + " cannot be opened", std::strerror(errno));
    }
    if (::fstat(input.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        fail(ErrorCode::verification, kernel, file,
             "a file of the kernel " + kernel.name + " is not a regular file", "");
    }
    base::Sha256 hash;
    base::FileHash result;
    std::string buffer(1 << 20, '\0');
    while (true) {
        const ssize_t size = ::read(input.get(), buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            fail(ErrorCode::failed, kernel, file, "a file of the kernel cannot be read",
                 std::strerror(errno));
        }
        if (size == 0) {
            break;
        }
        const std::string_view part(buffer.data(), static_cast<std::size_t>(size));
        result.size += part.size();
        if (result.size > file.size) {
            break;  // longer than it should be: no need to read the rest
        }
        hash.update(part);
        sink(part);
    }
    result.sha256 = hash.finish_hex();
    return result;
}

void compare(const MappedKernel& kernel, const MappedFile& file, const base::FileHash& found) {
    if (found.size != file.size || found.sha256 != file.sha256) {
        const std::string why =
            found.size != file.size
                ? "its size is not the " + std::to_string(file.size) + " bytes that were resolved"
                : "its SHA-256 is " + found.sha256 + ", resolved was " + file.sha256;
        fail(ErrorCode::verification, kernel, file,
             "a file of the kernel " + kernel.name + " is not what the mapping says", why);
    }
}

SealedLibrary seal(const MappedKernel& kernel, const MappedFile& file) {
    base::UniqueFd memory(::memfd_create(file.path.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) {
        fail(ErrorCode::failed, kernel, file, "no private copy of the kernel's library can be made",
             std::strerror(errno));
    }
    compare(kernel, file, stream(kernel, file, [&](std::string_view part) {
                if (const int error = base::write_all(memory.get(), part); error != 0) {
                    fail(ErrorCode::failed, kernel, file,
                         "no private copy of the kernel's library can be made",
                         std::strerror(error));
                }
            }));
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return {file.path, std::move(memory)};
}

std::string source_of(const MappedKernel& kernel, const MappedFile& file) {
    std::string text;
    compare(kernel, file, stream(kernel, file, [&](std::string_view part) { text.append(part); }));
    return text;
}

bool is_source(const MappedFile& file) {
    return file.path.ends_with(".py");
}

}  // namespace

VerifiedFiles read_verified(const MappedKernel& kernel) {
    VerifiedFiles files;
    for (const MappedFile& file : kernel.files) {
        if (file.path.ends_with(".so")) {
            files.libraries.push_back(seal(kernel, file));
        } else if (is_source(file)) {
            files.sources.emplace(file.path, source_of(kernel, file));
        } else {
            compare(kernel, file, stream(kernel, file, [](std::string_view) {}));
        }
    }
    return files;
}

std::optional<std::string> read_verified_file(const MappedKernel& kernel, const std::string& path) {
    for (const MappedFile& file : kernel.files) {
        if (file.path == path) {
            return source_of(kernel, file);
        }
    }
    return std::nullopt;
}

std::map<std::string, std::string> read_verified_sources(const MappedKernel& kernel) {
    std::map<std::string, std::string> sources;
    for (const MappedFile& file : kernel.files) {
        if (is_source(file)) {
            sources.emplace(file.path, source_of(kernel, file));
        }
    }
    return sources;
}

}  // namespace twinkle::runtime
