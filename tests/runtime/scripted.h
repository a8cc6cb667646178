#pragma once
// Models of the tests: TorchScript modules made in C++, kernels made of Python text.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/source/layer_compiler.h"
#include "runtime/source/package_values.h"
#include "twinkle/error.h"
#include "twinkle/mapping.h"

#include <ftw.h>
#include <torch/script.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "base/sha256.h"

namespace twinkle::tests {

// A module of class `name` with a weight of ones and epsilon 1e-6, and these methods.
inline torch::jit::Module module_of(const std::string& name, const std::string& methods,
                                    std::shared_ptr<torch::jit::CompilationUnit> unit = nullptr) {
    if (!unit) {
        unit = std::make_shared<torch::jit::CompilationUnit>();
    }
    torch::jit::Module module(c10::QualifiedName("__torch__.tests." + name), unit,
                              /*shouldMangle=*/true);
    module.register_parameter("weight", torch::ones({4}), false);
    module.register_attribute("eps", c10::FloatType::get(), 1e-6);
    module.define(methods);
    return module;
}

// A folder that goes away with the test.
class Folder {
public:
    Folder() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "twinkle-test-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~Folder() {
        // Not std::filesystem::remove_all: the libtorch.so of CUDA wheels exports one that crashes.
        ::nftw(
            path_.c_str(),
            [](const char* path, const struct stat*, int, struct FTW*) {
                return std::remove(path);
            },
            16, FTW_DEPTH | FTW_PHYS);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::filesystem::path& path() const { return path_; }

    std::filesystem::path write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name, std::ios::binary) << text;
        return path_ / name;
    }

private:
    std::filesystem::path path_;
};

// A plain Python package as a kernel, with one layer bound to one class.
inline Mapping mapping_to_package(const Folder& folder, const std::string& layers_py,
                                  const std::string& layer, const std::string& class_name) {
    MappedKernel kernel;
    kernel.name = "package";
    kernel.device = "any";
    kernel.path = folder.path();
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"__init__.py", ""}, {"layers.py", layers_py}}) {
        folder.write(name, text);
        kernel.files.push_back({name, text.size(), base::sha256_hex(text)});
    }
    MappedLayer bound;
    bound.kernel_name = layer;
    bound.classes = {class_name};
    bound.candidates.push_back({"package", layer, "any", std::nullopt, "fallback", true, true});
    Mapping mapping;
    mapping.kernels.push_back(kernel);
    mapping.layers.push_back(bound);
    return mapping;
}

}  // namespace twinkle::tests
