#include "runtime/kernels/own_place.h"

#include <dlfcn.h>

namespace twinkle::runtime {

namespace fs = std::filesystem;

namespace {

fs::path prefix() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&prefix), &info) == 0) {
        return {};
    }
    std::error_code ignored;
    const fs::path own = fs::canonical(info.dli_fname, ignored).parent_path();
    return own.parent_path().parent_path().parent_path();
}

}  // namespace

fs::path bundled_kernels() {
    return prefix() / "lib" / "twinkle" / "kernels";
}

fs::path presets_folder() {
    return prefix() / "share" / "twinkle" / "presets";
}

}  // namespace twinkle::runtime
