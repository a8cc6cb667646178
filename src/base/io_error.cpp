#include "base/io_error.h"

#include <cerrno>
#include <system_error>

#include "base/file.h"
#include "twinkle/error.h"

namespace twinkle::base {

std::string io_reason(int error_number) {
    switch (error_number) {
        case ENOSPC: return "the disk is full";
        case EDQUOT: return "the disk quota is used up";
        case EROFS: return "the file system is read-only";
        case EACCES:
        case EPERM: return "permission denied";
        case ENOENT: return "no such file or folder";
        case ENOTDIR: return "a part of the path is not a folder";
        case EISDIR: return "it is a folder";
        case ELOOP: return "symbolic links lead in a circle, or one is where none may be";
        case EFBIG: return "the file would be larger than allowed here";
        default: return std::generic_category().message(error_number);
    }
}

void throw_read_error(std::string_view what, const std::filesystem::path& path, int error_number) {
    const bool missing = error_number == ENOENT || error_number == ENOTDIR;
    throw Error(missing ? ErrorCode::not_found : ErrorCode::failed,
                {.what = "cannot read the " + std::string(what),
                 .where = display_path(path),
                 .why = io_reason(error_number),
                 .hint = ""});
}

void throw_write_error(const std::filesystem::path& path, int error_number) {
    std::string hint;
    const auto folder = display_path(path.has_parent_path() ? path.parent_path() : ".");
    switch (error_number) {
        case ENOSPC:
        case EDQUOT: hint = "free some space, or write to another disk"; break;
        case ENOENT: hint = "create the folder first: mkdir -p " + folder; break;
        case EACCES:
        case EPERM:
        case EROFS: hint = "choose a folder that you may write to"; break;
        default: break;
    }
    throw Error(ErrorCode::failed, {.what = "cannot write the file",
                                    .where = display_path(path),
                                    .why = io_reason(error_number),
                                    .hint = hint});
}

}  // namespace twinkle::base
