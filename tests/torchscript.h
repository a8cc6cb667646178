#pragma once
// TorchScript modules made in C++, and folders for what a test writes. LibTorch only.

#include <ftw.h>
#include <torch/script.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

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

}  // namespace twinkle::tests
