#pragma once
// What the user asks for: twinkle.toml, or the tables of pyproject.toml, with what they include.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "kernel/signature.h"
#include "project/pin.h"
#include "target/target.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

// An entry of [kernels].
struct KernelRequest {
    std::string key;             // "org/name", or any name of a local kernel
    Pin pin;                     // of a Hub kernel
    std::filesystem::path path;  // of a local one; absolute
    std::string where;           // file:line:column
};

// Where the kernel of a layer or function is.
struct RepositoryKeys {
    std::string repo_id;  // of the Hub …
    Pin pin;
    std::filesystem::path repo_path;  // … or a local one; neither: the bundled pack
    std::string package_name;
    std::filesystem::path package_file;  // "package:norm.pt2": absolute, instead of these two …
    std::string package_text;            // … and "norm.pt2"
};

// An entry of [layers].
struct LayerBinding : RepositoryKeys {
    std::string kernel_name;
    std::string layer_name;
    std::string device;  // empty: every one with a build
    std::string mode;    // fallback where nothing is given
    std::optional<std::pair<int, int>> capability;
    std::vector<std::string> classes;  // empty: those of the preset
    std::vector<std::string> modules;
    std::map<std::string, AttributeValue> when;
    std::map<std::string, std::vector<std::string>> when_submodule;
    std::map<std::string, AttributeValue> attributes;
    std::string where;
    bool preset = false;
};

// An entry of [functions].
struct FunctionBinding : RepositoryKeys {
    std::string name;
    std::string target_module;
    std::string func_impl;              // as written; empty: of a kernel
    std::filesystem::path source_file;  // "fast.py:add": absolute …
    std::string source_function;        // … and "add"
    std::string op;                     // "op:namespace::name": "namespace::name"
    std::string func_name;              // in the kernel's package, or a layer of it
    std::string device;                 // empty: every one
    std::string mode;                   // fallback where nothing is given
    std::string where;
};

// An entry of [patterns].
struct PatternBinding {
    std::filesystem::path formula_file;  // "norms.py:llama": absolute …
    std::vector<std::string> formulas;   // … and "llama", "gemma", …
    FunctionBinding replacement;         // under the name of the pattern; of no module
    bool preset = false;
};

struct Manifest {
    std::filesystem::path file;  // empty: none, the bundled pack with its preset
    std::vector<std::string> trust;
    std::optional<kernel::SignaturePolicy> signature;  // of Hub kernels; none: not said
    std::filesystem::path trusted_root;                // empty: the one that is built in
    std::vector<KernelRequest> kernels;
    std::vector<LayerBinding> layers;  // the manifest's own, then those of includes and presets
    std::vector<FunctionBinding> functions;
    std::vector<PatternBinding> patterns;  // in the order in which they are tried
    std::map<std::string, target::TargetSpec> targets;
};

// Throws Error(malformed) with file, line and column, Error(not_found) for an include or preset.
Manifest load_manifest(const std::filesystem::path& file, const std::filesystem::path& presets);

// What holds without a manifest: presets = ["transformers", "linear", "convolutions", "patterns"].
Manifest default_manifest(const std::filesystem::path& presets);

// Every binding of every preset that is installed: where a layer without classes finds its own.
std::vector<LayerBinding> all_preset_layers(const std::filesystem::path& presets);

}  // namespace twinkle::project
