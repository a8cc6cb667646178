#include "cache/cache_error.h"

#include <cerrno>

#include "base/file.h"
#include "base/io_error.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {

void throw_cache_error(const Cache& cache, const fs::path& path, int reason) {
    const auto link = reason == ELOOP ? cache.folder().find_link(path) : std::nullopt;
    if (link) {
        const std::string name = base::display_path(*link);
        throw Error(ErrorCode::refused,
                    {.what = "refused to follow a symbolic link in the cache",
                     .where = name,
                     .why = "it could lead anywhere; only the folder of the cache itself, " +
                            base::display_path(cache.root()) + ", may be a link",
                     .hint = "remove the link, and fetch again"});
    }
    throw Error(ErrorCode::failed, {.what = "cannot write to the cache",
                                    .where = base::display_path(path),
                                    .why = base::io_reason(reason),
                                    .hint = "the cache is " + base::display_path(cache.root()) +
                                            "; KERNELS_CACHE=FOLDER names another one"});
}

}  // namespace twinkle::cache
