#include "project/new_manifest.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/toml.h"

namespace twinkle::project {
namespace {

constexpr const char* head =
    R"(# What the models of this project get from kernels. `twinkle lock` pins it, `twinkle fetch` downloads it,
# `twinkle kernelize MODEL` puts it into a model.

# Bindings that come with twinkle: classes of Hugging Face transformers to the bundled kernels, by full name, and formulas:
# what the bundled kernels compute and no name is left for in a trace, such as an addition and the norm behind it.
# `twinkle kernelize MODEL --dry-run` lists what is found.
presets = ["transformers", "linear", "convolutions", "patterns"]
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

constexpr const char* functions_text =
    R"(
# What stands for which functions that a model calls; `twinkle inspect MODEL` lists them.
# [functions.gelu]
# target_module = "my_package.activations"      # whose function gelu is
# repo_id = "kernels-community/activation"      # or func_impl = "fast.py:gelu", "op:aten::gelu"
)";

constexpr const char* patterns =
    R"(
# What stands for a formula, wherever a model computes it and whatever that is called.
# [patterns.gate]
# pattern = "formulas.py:gate"                  # a Python function in a file of this project
# func_impl = "op:twinkle_pack::silu_mul"       # or as of a function
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
std::string times(std::size_t count, const char* what = "instance") {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string bound_by_preset(const std::vector<ClassFound>& classes,
                            const std::vector<FunctionFound>& functions) {
    std::string text;
    for (const ClassFound& found : classes) {
        if (found.in_preset) {
            text += "#   " + base::printable(found.class_name) + " (" + times(found.instances) +
                    "): " + (found.kernel.empty() ? "a kernel for " + found.layer : found.kernel) +
                    "\n";
        }
    }
    for (const FunctionFound& found : functions) {
        if (found.bound) {
            text += "#   " + base::printable(found.name) + " (" + times(found.calls, "call") +
                    "): " + found.kernel + "\n";
        }
    }
    return text.empty() ? "" : "# In this model it binds:\n" + text;
}

// "org/name@1" → its keys; nothing of a kernel that a name alone does not find.
std::string source_lines(const std::string& kernel, const std::string& function) {
    const auto at = kernel.rfind('@');
    if (kernel.find('/') == std::string::npos || at == std::string::npos) {
        return "func_name = " + base::toml_string(function) + "\n";
    }
    const std::string pin = kernel.substr(at + 1);
    const bool version = !pin.empty() && pin.find_first_not_of("0123456789") == std::string::npos;
    return "repo_id = " + base::toml_string(kernel.substr(0, at)) + "\n" +
           (version ? "version = " + pin : "revision = " + base::toml_string(pin)) + "\n";
}

// Proposes them as comments, too.
std::string proposed_functions(const std::vector<FunctionFound>& functions) {
    std::vector<FunctionFound> proposed;
    std::copy_if(functions.begin(), functions.end(), std::back_inserter(proposed),
                 [](const FunctionFound& found) { return !found.bound; });
    if (proposed.empty()) {
        return "";
    }
    std::string text =
        "\n# Functions that this model calls and a kernel has by that name. If they compute the "
        "same, take the # away;\n# --verify compares the values of these, too.\n";
    for (const std::string& line : base::split(function_tables(proposed), '\n')) {
        text += line.empty() ? "" : "# " + line + "\n";
    }
    return text;
}

// Proposes them as comments: a name does not say what a class computes.
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
        text += "# [layers." + base::toml_key(layer) + "]   # " + times(instances) +
                "\n# classes = [" + base::join(names, ", ") + "]\n";
    }
    return text;
}

}  // namespace

std::string function_tables(const std::vector<FunctionFound>& functions) {
    const auto own_name = [](const FunctionFound& found) {
        return found.name.substr(found.name.rfind('.') + 1);
    };
    std::string text;
    for (const FunctionFound& found : functions) {
        const std::string name = own_name(found);
        const bool several =
            std::count_if(functions.begin(), functions.end(),
                          [&](const FunctionFound& other) { return own_name(other) == name; }) > 1;
        const auto module_end = found.name.size() - std::min(found.name.size(), name.size() + 1);
        text += (several ? "[[functions." : "[functions.") + base::toml_key(name) +
                (several ? "]]" : "]") + "   # " + times(found.calls, "call") +
                "\ntarget_module = " + base::toml_string(found.name.substr(0, module_end)) + "\n" +
                source_lines(found.kernel.substr(0, found.kernel.rfind(": ")), name);
    }
    return text;
}

std::string new_manifest(const std::string& model, const std::vector<ClassFound>& classes,
                         const std::vector<FunctionFound>& functions) {
    std::string text = head;
    text += bound_by_preset(classes, functions);
    text += kernels;
    text += layers;
    if (!model.empty()) {
        text += proposed(classes);
    }
    text += functions_text;
    text += proposed_functions(functions);
    text += patterns;
    return text + targets;
}

}  // namespace twinkle::project
