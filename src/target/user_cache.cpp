#include "target/user_cache.h"

namespace fs = std::filesystem;

namespace twinkle::target {

fs::path user_cache(const Machine& machine) {
    const auto cache = machine.environment("XDG_CACHE_HOME").value_or("");
    const fs::path folder = cache.empty()
                                ? fs::path(machine.environment("HOME").value_or("/")) / ".cache"
                                : fs::path(cache);
    return folder / "twinkle";
}

}  // namespace twinkle::target
