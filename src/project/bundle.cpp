#include "project/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "base/file.h"
#include "base/io_error.h"
#include "base/sha256.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "kernel/build.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

constexpr const char* map_name = "twinkle.map.json";
constexpr const char* kernels_name = "kernels";

// Removed at the end, unless it was taken.
class TemporaryFolder {
public:
    explicit TemporaryFolder(const fs::path& beside) {
        std::string name =
            (beside.parent_path() / ("." + beside.filename().string() + ".XXXXXX")).string();
        if (::mkdtemp(name.data()) == nullptr) {
            base::throw_write_error(beside, errno);
        }
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

std::string as_folder_name(const std::string& name) {
    std::string result;
    for (const char c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') ||
                           std::string_view("._@-").find(c) != std::string_view::npos;
        result += c == '/' ? "--" : std::string(1, plain ? c : '_');
    }
    return result.empty() || result.front() == '.' ? "_" + result : result;
}

void make_folders(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        base::throw_write_error(folder, error.value());
    }
}

void write_contents(int fd, std::string_view bytes, const fs::path& path) {
    if (const int error = base::write_all(fd, bytes); error != 0) {
        base::throw_write_error(path, error);
    }
}

// The bytes that are hashed are those that are written.
void copy_checked(const fs::path& from, const fs::path& to, const MappedFile& file,
                  const std::atomic<bool>* stop) {
    make_folders(to.parent_path());
    const base::UniqueFd fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) {
        base::throw_write_error(to, errno);
    }
    base::Sha256 hash;
    const std::uint64_t size = base::stream_file(from, "file of a kernel", [&](std::string_view b) {
        if (stop != nullptr && *stop) {
            throw Error(
                ErrorCode::interrupted,
                {.what = "interrupted", .where = "", .why = "", .hint = "no bundle was written"});
        }
        hash.update(b);
        write_contents(fd.get(), b, to);
    });
    if (size != file.size || hash.finish_hex() != file.sha256) {
        throw Error(ErrorCode::verification, {.what = "a file of a kernel has changed",
                                              .where = base::display_path(from),
                                              .why = "it is not what was just resolved",
                                              .hint = "resolve again"});
    }
}

class BundleWriter {
public:
    BundleWriter(Mapping mapping, fs::path folder, const std::atomic<bool>* stop)
        : mapping_(std::move(mapping)), folder_(std::move(folder)), stop_(stop) {}

    void write() {
        for (MappedKernel& kernel : mapping_.kernels) {
            add(kernel);
        }
        base::write_file_atomically(folder_ / map_name, mapping_.to_json());
    }

private:
    void add(MappedKernel& kernel) {
        // Packages that are kernels by themselves may share a folder.
        const auto [place, fresh] = places_.try_emplace(
            kernel::is_package_file(kernel) ? kernel.path / kernel.files.front().path
                                            : kernel.path);
        if (fresh) {
            place->second = choose_place(kernel);
            for (const MappedFile& file : kernel.files) {
                copy_checked(kernel.path / file.path, folder_ / place->second / file.path, file,
                             stop_);
            }
        }
        kernel.path = place->second;
    }

    // Chooses as in a repository, so that the folder of the kernel can be searched for builds.
    fs::path choose_place(const MappedKernel& kernel) {
        const fs::path name = as_folder_name(kernel.name);
        const bool alone = kernel.variant.empty() || kernel::is_package_file(kernel);
        fs::path place =
            alone ? fs::path(kernels_name) / name
                  : fs::path(kernels_name) / name / "build" / as_folder_name(kernel.variant);
        const std::string plain = place.string();
        for (int i = 2; !taken_.insert(place.string()).second; ++i) {
            place = plain + "_" + std::to_string(i);
        }
        return place;
    }

    Mapping mapping_;
    fs::path folder_;
    const std::atomic<bool>* stop_;
    std::map<fs::path, fs::path> places_;
    std::set<std::string> taken_;
};

// Checks it as a machine that gets the bundle would see it.
void check_bundle(const fs::path& folder) {
    for (const MappedKernel& kernel : Mapping::load(folder / map_name).kernels) {
        const kernel::Build build = kernel::read_mapped_build(kernel);
        const bool same =
            std::equal(build.files.begin(), build.files.end(), kernel.files.begin(),
                       kernel.files.end(), [](const MappedFile& a, const MappedFile& b) {
                           return a.path == b.path && a.size == b.size && a.sha256 == b.sha256;
                       });
        if (!same) {
            throw Error(ErrorCode::verification,
                        {.what = "the copy of " + kernel.name + " is not what it should be",
                         .where = base::display_path(kernel.path),
                         .why = "the disk gives other bytes than were written",
                         .hint = ""});
        }
    }
}

bool is_bundle_or_empty(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(folder, error))) {
        return false;
    }
    bool has_map = false;
    bool has_other = false;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        has_map = has_map || name == map_name;
        has_other = has_other || (name != map_name && name != kernels_name);
    }
    return !error && !has_other && (has_map || fs::is_empty(folder, error));
}

void refuse_other_folders(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder, error)) && !is_bundle_or_empty(folder)) {
        throw Error(ErrorCode::refused, {.what = "the bundle is not written over this folder",
                                         .where = base::display_path(folder),
                                         .why = "it is there, and no bundle",
                                         .hint = "name a new folder"});
    }
}

// Both exist: they change places in one step, where the file system can.
void put_in_place(const fs::path& made, const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder, error)) {
        fs::rename(made, folder, error);
    } else if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) !=
               0) {
        const fs::path old = made.string() + ".old";
        fs::rename(folder, old, error);
        if (!error) {
            fs::rename(made, folder, error);
            std::error_code ignored;
            error ? fs::rename(old, folder, ignored) : (void)fs::remove_all(old, ignored);
        }
    }
    if (error) {
        base::throw_write_error(folder, error.value());
    }
}

}  // namespace

void write_bundle(const Mapping& mapping, const fs::path& folder, const std::atomic<bool>* stop) {
    fs::path target = base::absolute_path(folder);
    if (target.filename().empty()) {
        target = target.parent_path();
    }
    refuse_other_folders(target);
    make_folders(target.parent_path());
    const TemporaryFolder temporary(target);
    const fs::path made = temporary.path() / "bundle";
    make_folders(made);
    BundleWriter(mapping, made, stop).write();
    check_bundle(made);
    put_in_place(made, target);
}

}  // namespace twinkle::project
