#include "worker/mapping_of.h"

#include "twinkle/error.h"

namespace twinkle::worker {

Mapping mapping_of(const protocol::Request& request) {
    // Paths in a request are absolute.
    return Mapping::parse(request.map.value_or(""), "/", "mapping");
}

const std::filesystem::path& kernel_of(const protocol::Request& request) {
    if (!request.kernel) {
        throw Error(ErrorCode::malformed,
                    {.what = "the request names no kernel",
                     .where = "",
                     .why = "",
                     .hint = "install twinkle and its runtime in one version"});
    }
    return *request.kernel;
}

}  // namespace twinkle::worker
