#include "kernel/finding.h"

#include <array>
#include <stdexcept>

namespace twinkle::kernel {
namespace {

constexpr std::array all_rules{
    Rule{"variant/name", "A build stands in a folder whose name is a variant",
         "name the folder as kernel-builder does: torch213-cxx11-cu130-x86_64-linux, …"},
    Rule{"metadata/missing", "Every build has a metadata.json", "build it with kernel-builder"},
    Rule{"metadata/invalid", "metadata.json has its keys in their form",
         "write it with kernel-builder of the version that you use"},
    Rule{"metadata/backend", "The backend of the metadata is that of the variant",
         "put the build into a folder of its own backend"},
    Rule{"metadata/digest", "The metadata has a digest over every file",
         "build it again with a newer kernel-builder"},
    Rule{"metadata/dirty", "A build for others comes from a tree without changes",
         "commit, and build again"},
    Rule{"digest/mismatch", "Every file is as the digest says, and no other file is there",
         "build it again; do not edit a build in place"},
    Rule{"namespace/id", "Operators are registered in the namespace that the metadata names",
         "register with TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, …)"},
    Rule{"archs/declared", "backend.archs are the architectures of the embedded GPU code",
         "state cuda-capabilities or rocm-archs in build.toml, and build again"},
    Rule{"abi/manylinux", "Versioned symbols are those of manylinux_2_28 or older",
         "build against glibc 2.28 and GCC's libraries of its time, as kernel-builder does"},
    Rule{"abi/python", "Symbols of Python are those of the limited API of Python 3.9",
         "define Py_LIMITED_API as 0x03090000 and use nothing else"},
    Rule{"abi/torch", "A build for the stable ABI uses only torch::stable and the C functions",
         "use the headers of torch/csrc/stable"},
    Rule{"abi/needed", "Libraries that are needed come with torch or with every system",
         "link it statically, or do without it"},
    Rule{"abi/rpath", "Libraries are not looked for in folders of the machine that built it",
         "link without an absolute -rpath"},
    Rule{"abi/machine", "A library is for the CPU of its variant",
         "put it into the folder of the CPU that it is for"},
    Rule{"abi/library", "A file that ends in .so is a shared library",
         "leave it out, or build it again"},
    Rule{"package/missing", "A build has a Python package", "add an __init__.py"},
    Rule{"package/syntax", "Python sources can be read", "correct the source"},
    Rule{"package/relative-import", "A package imports from itself by relative imports",
         "write: from .module import name"},
    Rule{"dependency/undeclared", "Imports are of Python, torch, or declared dependencies",
         "declare it in python-depends, or do without it"},
    Rule{"dependency/unknown", "python-depends names dependencies that the Hub allows",
         "the Hub allows einops, helion, tvm-ffi, nvidia-cutlass-dsl (cuda), nki (neuron), onednn "
         "(xpu)"},
    Rule{"layer/rules",
         "A layer subclasses nn.Module and has nothing but forward, prepare, precision and its two "
         "flags",
         "move state to the class that is replaced, and helpers to functions"},
    Rule{"layer/python", "A layer can be used without Python",
         "write what is named in a way that TorchScript has"},
    Rule{"layer/model", "A layer fits the classes that it is bound to",
         "take the same parameters, and read attributes that the class has"},
    Rule{"function/model", "A function fits the calls of what it is bound to",
         "take the same parameters in the same order, and return the same"},
    Rule{"tuning/toml", "tuning.toml has its tables in their form",
         "see docs/tuning.md for what it may say"},
    Rule{"tuning/operator", "tuning.toml is about operators of the build",
         "name operators as their schemas do, without namespace"},
    Rule{"project/build-toml", "build.toml has its keys in their form",
         "`kernel-builder update-build` brings an older file up to date"},
    Rule{"project/files", "The files that build.toml names are there", "correct its list"},
    Rule{"project/differs", "A build is what build.toml describes", "build it again"}};

}  // namespace

std::string_view severity_name(Severity severity) {
    switch (severity) {
        case Severity::note: return "note";
        case Severity::warning: return "warning";
        case Severity::error: return "error";
    }
    return "";
}

std::span<const Rule> rules() {
    return all_rules;
}

const Rule& rule(std::string_view id) {
    for (const Rule& one : all_rules) {
        if (one.id == id) {
            return one;
        }
    }
    throw std::logic_error("there is no rule " + std::string(id));
}

}  // namespace twinkle::kernel
