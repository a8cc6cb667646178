#include "target/user_cache.h"

namespace fs = std::filesystem;

namespace twinkle::target {

fs::path user_cache(const Machine& machine) {
    // A relative one counts as unset: the rule of the XDG base directory specification.
    const fs::path cache = machine.environment("XDG_CACHE_HOME").value_or("");
    const fs::path folder = cache.is_absolute() ? cache : machine.home() / ".cache";
    return folder / "twinkle";
}

}  // namespace twinkle::target
