#include "worker/mapping_of.h"

namespace twinkle::worker {

Mapping mapping_of(const protocol::Request& request) {
    // Paths in a request are absolute.
    return Mapping::parse(request.map.value_or(""), "/", "mapping");
}

}  // namespace twinkle::worker
