#include "worker/mapping_of.h"

namespace twinkle::worker {

Mapping mapping_of(const protocol::Request& request) {
    return Mapping::parse(request.map.value_or(""), request.model.parent_path(), "mapping");
}

}  // namespace twinkle::worker
