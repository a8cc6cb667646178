#pragma once
// check --model: tries the layers and functions of a kernel on the classes and functions of a model
// that they are bound to, by the manifest, by a preset or by their name. The worker compiles them
// as kernelize would; nothing of the kernel runs.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/console.h"

namespace twinkle::cli {

// One layer and one class of the model, or one function and the model's function. A layer to which
// no class is bound has one entry without a class; a class whose sites differ has one for each
// reason.
struct LayerFit {
    bool is_function = false;  // and so is what it stands for, called at `sites`
    std::string layer;
    std::string model_class;
    bool by_name = false;  // no binding has the class: it only has the layer's name
    std::size_t sites = 0;
    std::size_t fits = 0;
    std::string because;            // why the others do not; empty: all fit
    bool as_asked = false;          // … as a condition of the binding says, which is no failure
    std::string where;              // "layers.py:12", in the kernel's package
    std::string example;            // one of the sites that do not
    std::vector<std::string> lost;  // attributes that the layer reads and the model has lost
};

// `allow_io`: as --allow-io. `kernel`: a build, a repository (its build for this machine, else its
// first) or a package.
std::vector<LayerFit> check_model(const std::filesystem::path& kernel,
                                  const std::filesystem::path& model, bool allow_io,
                                  Console& console);

}  // namespace twinkle::cli
