#include "project/new_manifest.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "base/toml.h"

namespace twinkle::project {
namespace {

constexpr const char* head =
    R"(# What the models of this project get from kernels. `twinkle lock` pins it, `twinkle fetch` downloads it,
# `twinkle kernelize MODEL` puts it into a model.

# Bindings that come with twinkle: classes of Hugging Face transformers to the bundled kernels, by full name.
presets = ["transformers"]
)";

constexpr const char* kernels =
    R"(
# Kernels of the Hub, or of folders. `twinkle add kernels-community/activation` writes such a line.
[kernels]
# "kernels-community/activation" = 1            # a version
# my_kernels = { path = "kernels/my_kernels" }  # a folder
)";

constexpr const char* layers =
    R"(
# Which layer of a kernel stands for which classes of a model; `twinkle inspect MODEL` lists the classes.
# [layers.SiluAndMul]
# repo_id = "kernels-community/activation"      # left out: the bundled kernels
# classes = ["my_package.layers.SiluAndMul"]    # full names, or globs
# device = "cuda"                               # left out: every device with a build
# mode = "inference"                            # left out: every mode that the layer allows
)";

constexpr const char* targets =
    R"(
# Other machines: twinkle resolve --target prod
# [targets.prod]
# torch = "2.11"
# backend = "cu130"
# arch = "9.0"
)";

// Bare where it can be.
std::string key_text(const std::string& key) {
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-';
    });
    return bare ? key : base::toml_string(key);
}

std::string times(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " instance" : " instances");
}

std::string bound_by_preset(const std::vector<ClassFound>& classes) {
    std::string text;
    for (const ClassFound& found : classes) {
        if (found.in_preset) {
            text += "#   " + base::printable(found.class_name) + " (" + times(found.instances) +
                    "): " + (found.kernel.empty() ? "a kernel for " + found.layer : found.kernel) +
                    "\n";
        }
    }
    return text.empty() ? "" : "# In this model it binds:\n" + text;
}

// As comments: a name does not say what a class computes.
std::string proposed(const std::vector<ClassFound>& classes) {
    std::map<std::string, std::vector<const ClassFound*>> by_layer;
    for (const ClassFound& found : classes) {
        if (!found.in_preset) {
            by_layer[found.layer].push_back(&found);
        }
    }
    if (by_layer.empty()) {
        return "";
    }
    std::string text =
        "\n# Classes of this model whose names and attributes fit a layer. If they compute the "
        "same, take the # away;\n"
        "# `twinkle kernelize MODEL --inputs FILE --verify` compares the values, and puts back "
        "what differs.\n";
    for (const auto& [layer, found] : by_layer) {
        std::vector<std::string> names;
        std::size_t instances = 0;
        for (const ClassFound* one : found) {
            names.push_back(base::toml_string(one->class_name));
            instances += one->instances;
        }
        text += "# [layers." + key_text(layer) + "]   # " + times(instances) + "\n# classes = [" +
                base::join(names, ", ") + "]\n";
    }
    return text;
}

}  // namespace

std::string new_manifest(const std::string& model, const std::vector<ClassFound>& classes) {
    std::string text = head;
    text += bound_by_preset(classes);
    text += kernels;
    text += layers;
    if (!model.empty()) {
        text += proposed(classes);
    }
    return text + targets;
}

}  // namespace twinkle::project
