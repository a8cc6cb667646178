#include "runtime/kernels/verified_files.h"

#include "archive/archive.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "kernel/build.h"
#include "runtime/kernels/own_target.h"
#include "target/compiled_code.h"
#include "twinkle/error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace twinkle::runtime {

namespace {

constexpr std::uint64_t largest_library = 2ull << 30;

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

[[noreturn]] void fail_to_copy(const MappedKernel& kernel, const MappedFile& file, int error) {
    throw Error(ErrorCode::failed, {.what = "no private copy of the kernel's library can be made",
                                    .where = (kernel.path / file.path).string(),
                                    .why = std::strerror(error),
                                    .hint = "free some memory, or try again"});
}

base::UniqueFd new_memory(const MappedKernel& kernel, const MappedFile& file) {
    base::UniqueFd memory(::memfd_create(file.path.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) {
        fail_to_copy(kernel, file, errno);
    }
    return memory;
}

void write(const MappedKernel& kernel, const MappedFile& file, const base::UniqueFd& memory,
           std::string_view bytes) {
    if (const int error = base::write_all(memory.get(), bytes); error != 0) {
        fail_to_copy(kernel, file, error);
    }
}

// The kernel answers EBUSY while something else holds a page of it, as compaction does for a
// moment.
void close_for_writing(const MappedKernel& kernel, const MappedFile& file,
                       const base::UniqueFd& memory) {
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    constexpr std::chrono::milliseconds patience(10000), pause(10);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (::fcntl(memory.get(), F_ADD_SEALS, seals) != 0) {
        const int error = errno;
        if (error != EBUSY || std::chrono::steady_clock::now() > until) {
            fail_to_copy(kernel, file, error);
        }
        std::this_thread::sleep_for(pause);
    }
}

SealedLibrary seal(const MappedKernel& kernel, const MappedFile& file) {
    base::UniqueFd memory = new_memory(kernel, file);
    compare(kernel, file, stream(kernel, file, [&](std::string_view part) {
                write(kernel, file, memory, part);
            }));
    close_for_writing(kernel, file, memory);
    return {file.path, std::move(memory)};
}

// Read from the checked copy: what it says, and then its library, which gets a copy of its own.
std::optional<SealedPackage> seal_package(const MappedKernel& kernel, const MappedFile& file) {
    const SealedLibrary checked = seal(kernel, file);
    const std::filesystem::path copy = "/proc/self/fd/" + std::to_string(checked.descriptor.get());
    auto facts = kernel::read_operator_package(copy, (kernel.path / file.path).string());
    if (!facts) {
        return std::nullopt;
    }
    const archive::Archive archive(copy);
    base::UniqueFd memory = new_memory(kernel, file);
    write(kernel, file, memory, archive.text(facts->library(), largest_library));
    close_for_writing(kernel, file, memory);
    return SealedPackage{*std::move(facts), {file.path, std::move(memory)}};
}

std::string source_of(const MappedKernel& kernel, const MappedFile& file) {
    std::string text;
    compare(kernel, file, stream(kernel, file, [&](std::string_view part) { text.append(part); }));
    return text;
}

// A GPU of a newer kind, or more features of the CPU.
bool is_more_particular(const SealedPackage& a, const SealedPackage& b) {
    const target::CompiledFor& one = a.facts.model.made_for;
    const target::CompiledFor& other = b.facts.model.made_for;
    return std::pair(target::capability_number(one).value_or(0), one.isa.size()) >
           std::pair(target::capability_number(other).value_or(0), other.isa.size());
}

// Keeps the packages that run here: opening others could end the process.
void keep_own_packages(const MappedKernel& kernel, std::vector<SealedPackage>& packages) {
    std::vector<std::string> reasons;
    std::erase_if(packages, [&](const SealedPackage& package) {
        const auto against = target::reasons_against(package.facts.model.made_for, own_target(),
                                                     target::this_machine().cpu().features);
        if (!against.empty()) {
            reasons.push_back(package.library.path + ": " + base::join(against, ", "));
        }
        return !against.empty();
    });
    if (packages.empty() && !reasons.empty()) {
        throw Error(ErrorCode::refused,
                    {.what = "no package of the kernel " + kernel.name + " runs on this machine",
                     .where = kernel.path.string(),
                     .why = base::join(reasons, "; "),
                     .hint = "compile the function on a machine like this one"});
    }
    std::stable_sort(packages.begin(), packages.end(), is_more_particular);
}

void add_package(const MappedKernel& kernel, const MappedFile& file, VerifiedFiles& files) {
    auto package = seal_package(kernel, file);
    if (!package) {
        return;
    }
    if (kernel::is_package_file(kernel)) {
        files.sources = kernel::package_file_sources(package->facts.op, kernel.op_namespace);
    }
    files.code.packages.push_back(*std::move(package));
}

bool is_source(const MappedFile& file) {
    return file.path.ends_with(".py");
}

}  // namespace

VerifiedFiles read_verified(const MappedKernel& kernel) {
    VerifiedFiles files;
    for (const MappedFile& file : kernel.files) {
        if (file.path.ends_with(".so")) {
            files.code.libraries.push_back(seal(kernel, file));
        } else if (kernel::is_package(file.path) && !kernel.op_namespace.empty()) {
            add_package(kernel, file, files);
        } else if (is_source(file)) {
            files.sources.emplace(file.path, source_of(kernel, file));
        } else {
            compare(kernel, file, stream(kernel, file, [](std::string_view) {}));
        }
    }
    keep_own_packages(kernel, files.code.packages);
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
    if (kernel::is_package_file(kernel)) {
        VerifiedFiles files;
        add_package(kernel, kernel.files.front(), files);
        return files.sources;
    }
    std::map<std::string, std::string> sources;
    for (const MappedFile& file : kernel.files) {
        if (is_source(file)) {
            sources.emplace(file.path, source_of(kernel, file));
        }
    }
    return sources;
}

}  // namespace twinkle::runtime
