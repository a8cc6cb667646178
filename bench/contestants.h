#pragma once
// The contestants for one operation on one size of input.

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

#include "operations.h"

namespace bench {

struct Case {
    const Operation* operation;
    int64_t tokens, width;
    at::ScalarType dtype;
};

using Values = std::vector<c10::IValue>;

struct Contestant {
    std::string name;
    bool warm;  // memory for results is there already
    // Runs on one set of inputs; they change from call to call.
    std::function<c10::IValue(const Values&)> run;
};

// Bytes that must be read and written.
double bytes_moved(const Case& c);

// The inputs of the calls, used in turn.
std::vector<Values> make_inputs(const Case& c);

// pack: the layer calling the pack's operator, as a kernelized model does; torchscript, frozen: the
// original's code; community: the layer of kernels-community, if its library is loaded and supports
// the dtype; copy: as many bytes moved by PyTorch's own multi-threaded copy. If results are large,
// each once more with memory that exists already. Throws if one of them computes something else
// than the original.
std::vector<Contestant> contestants(const Case& c, const std::string& pack_namespace,
                                    bool community);

}  // namespace bench
