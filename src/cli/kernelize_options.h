#pragma once
// Options that commands on models share.

#include "cli/command.h"
#include "protocol/request.h"

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
Option model_kernels_option();  // of a model that names its kernels
Option graphs_option();
Option freeze_option();

// Adds the form of the written model: marked for graphs, or frozen. Throws Error(malformed) for
// both.
void add_form(protocol::Request& request, const Arguments& arguments);

}  // namespace twinkle::cli
