#pragma once
// The unions of the schema: arguments of nodes, sizes, devices.

#include "base/json.h"
#include "runtime/exported/program.h"

namespace twinkle::runtime::exported {

// These throw InvalidJson (json_reader.h).
Argument read_argument(const base::Json& value);
TensorMeta read_tensor_meta(const base::Json& value);
Graph read_graph(const base::Json& value);

}  // namespace twinkle::runtime::exported
