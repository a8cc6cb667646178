#pragma once
// Kernels for the tests of the public interface: plain Python packages, and builds in a Hub cache.

#include "torchscript.h"
#include "twinkle/twinkle.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::tests {

namespace fs = std::filesystem;

inline void write_file(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
}

// A package whose layers are given as text.
inline fs::path package(const fs::path& folder, const std::string& layers,
                        const std::string& init = "") {
    write_file(folder / "__init__.py", init);
    write_file(folder / "layers.py", layers);
    return folder;
}

// A layer that adds a number, so that the result shows which one was taken.
inline std::string adds(const std::string& name, const std::string& number,
                        const std::string& flags = "") {
    return "import torch\nimport torch.nn as nn\nclass " + name + "(nn.Module):\n" + flags +
           "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return x + " + number +
           "\n";
}

// One build for every machine, as a download leaves it.
inline void cached_kernel(const fs::path& cache, const std::string& org, const std::string& name,
                          const std::string& ref, char commit_digit, const std::string& layers,
                          const std::string& init = "") {
    const fs::path repository = cache / ("kernels--" + org + "--" + name);
    const std::string commit(40, commit_digit);
    write_file(repository / "refs" / ref, commit);
    const fs::path build = repository / "snapshots" / commit / "build" / "torch-universal";
    package(build, layers, init);
    write_file(build / "metadata.json",
               R"({"id": "_)" + name + "_" + std::string(1, commit_digit) + R"(", "name": ")" +
                   name +
                   R"(", "version": 1, "license": "Apache-2.0", "python-depends": [],)"
                   R"( "backend": {"type": "cpu"}})");
}

// Sets an environment variable during its lifetime.
class Variable {
public:
    Variable(std::string name, const std::string& value) : name_(std::move(name)) {
        if (const char* old = std::getenv(name_.c_str())) {
            old_ = old;
        }
        ::setenv(name_.c_str(), value.c_str(), 1);
    }
    ~Variable() {
        if (old_) {
            ::setenv(name_.c_str(), old_->c_str(), 1);
        } else {
            ::unsetenv(name_.c_str());
        }
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    std::string name_;
    std::optional<std::string> old_;
};

// One layer that returns its input, called by the root.
inline torch::jit::Module model_of(const std::string& class_name = "Plus") {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    auto layer = module_of(class_name, "def forward(self, x):\n    return x\n", unit);
    torch::jit::Module root(c10::QualifiedName("__torch__.tests.Root"), unit, true);
    root.register_attribute("training", c10::BoolType::get(), false);
    root.register_module("layer", layer);
    root.define("def forward(self, x):\n    return self.layer.forward(x)\n");
    root.eval();
    return root;
}

// The output for x = 0.
inline double output(torch::jit::Module& model) {
    return model.forward({torch::zeros({4})}).toTensor()[0].item<double>();
}

inline const SiteReport& only_site(const Report& report) {
    if (report.sites.size() != 1) {
        throw std::runtime_error("not one site: " + report.to_json());
    }
    return report.sites.front();
}

}  // namespace twinkle::tests
