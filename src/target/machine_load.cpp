#include "target/machine_load.h"

#include <cstdlib>

#include "target/machine.h"

namespace twinkle::target {

double load_of_others() {
    double mean = 0;
    return ::getloadavg(&mean, 1) == 1 ? mean : 0;
}

bool is_busy(double load) {
    return load > this_machine().cpu().cores;
}

}  // namespace twinkle::target
