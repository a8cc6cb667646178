#include "runtime/kernels/own_place.h"

#include <dlfcn.h>

namespace twinkle::runtime {

namespace fs = std::filesystem;

namespace {

fs::path prefix() {
    return own_folder().parent_path().parent_path().parent_path();
}

}  // namespace

fs::path own_folder() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0) {
        return {};
    }
    std::error_code ignored;
    return fs::canonical(info.dli_fname, ignored).parent_path();
}

fs::path bundled_kernels() {
    return prefix() / "lib" / "twinkle" / "kernels";
}

fs::path presets_folder() {
    return prefix() / "share" / "twinkle" / "presets";
}

}  // namespace twinkle::runtime
