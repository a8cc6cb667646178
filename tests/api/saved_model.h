#pragma once
// A model that is kernelized with one preset, and saved.

#include "api/package.h"

#include <filesystem>
#include <string>

namespace twinkle::tests {

class SavedModel {
public:
    SavedModel(torch::jit::Module root, const std::string& preset) {
        folder_.write("twinkle.toml", "presets = [\"" + preset + "\"]\n");
        Registry registry;
        registry.register_kernels(Config::load(folder_.path() / "twinkle.toml"));
        report = kernelize_model(root, {.registry = &registry});
        root.save(file().string());
    }

    std::filesystem::path file() const { return folder_.path() / "model.pt"; }
    torch::jit::Module load(bool prepack) const {
        return twinkle::load(file(), {.prepack = prepack});
    }

    Report report;

private:
    Folder folder_;
};

}  // namespace twinkle::tests
