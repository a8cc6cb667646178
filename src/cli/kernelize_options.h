#pragma once
// Options that commands on models share.

#include "cli/command.h"

namespace twinkle::cli {

Option map_option();
Option mode_option();
Option device_option();
Option dtype_option();
Option inputs_option();
Option several_inputs_option();  // … of several sizes
Option only_option();
Option exclude_option();
Option allow_io_option();
Option model_name_option();

}  // namespace twinkle::cli
