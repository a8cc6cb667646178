#include "runtime/plan/job.h"

#include <cstdlib>
#include <string_view>

namespace twinkle::runtime {

bool mapping_disabled() {
    const char* value = std::getenv("DISABLE_KERNEL_MAPPING");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace twinkle::runtime
