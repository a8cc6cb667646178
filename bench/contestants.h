#pragma once
// What is measured against what: one operation as the pack does it and as TorchScript does it.

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Case {
    std::string op;  // rms_norm, silu_mul
    int64_t tokens;
    int64_t width;
    at::ScalarType dtype;
};

struct Contestant {
    std::string name;
    // Runs on one set of inputs; they change from call to call.
    std::function<at::Tensor(const std::vector<at::Tensor>&)> run;
};

// Bytes that must be read and written.
double bytes_moved(const Case& c);

// How many sets of inputs take turns.
int input_sets(const Case& c);

// The inputs of one call.
std::vector<at::Tensor> make_inputs(const Case& c);

// pack: the layer calling the pack's operator, as a kernelized model does; torchscript, frozen: the
// original's code; copy: as many bytes moved by PyTorch's own multi-threaded copy, into fresh
// memory as the others' results; warm kernel, warm copy: the computing code and the copy into
// memory that is there already: no page faults.
std::vector<Contestant> contestants(const Case& c, const std::string& op_namespace);

}  // namespace bench
