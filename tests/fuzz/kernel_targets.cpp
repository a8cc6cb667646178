#include "kernel_targets.h"

#include <algorithm>
#include <cstdlib>

#include "archive/json_reader.h"
#include "base/toml.h"
#include "binary/demangle.h"
#include "binary/library.h"
#include "kernel/build.h"
#include "kernel/build_toml.h"
#include "kernel/check_package.h"
#include "kernel/dispatch_keys.h"
#include "kernel/operators.h"
#include "kernel/schema.h"
#include "twinkle/error.h"

namespace twinkle::fuzz {
namespace {

std::size_t depth_of(const base::Node& node) {
    std::size_t depth = 0;
    for (const base::Node& item : node.items) {
        depth = std::max(depth, 1 + depth_of(item));
    }
    for (const base::Member& member : node.members) {
        depth = std::max(depth, 1 + depth_of(member.value));
    }
    return depth;
}

}  // namespace

void fuzz_elf(std::string_view input) {
    const binary::MemorySource source(input);
    const auto layout = binary::ElfLayout::read(source);
    const auto library = binary::read_library(source);
    if (layout.has_value() != library.has_value()) {
        std::abort();
    }
    if (!library) {
        return;
    }
    kernel::find_operators(*layout, "twinkle");
    kernel::find_dispatch_keys(*layout, *library);
    kernel::PythonNeeds needs;
    kernel::add_python_needs(needs, "fuzz.so", *library);
    kernel::Findings findings;
    kernel::AbiRules rules{kernel::parse_variant("torch-stable-abi210-cpu-x86_64-linux"), {}};
    kernel::check_abi({"fuzz.so", *library, {}, {}}, "fuzz.so", rules, findings);
    for (std::size_t i = 0; i < library->symbols.symbols.size() && i < 64; ++i) {
        binary::demangle(library->symbols.symbols[i].name);
    }
}

void fuzz_fatbin(std::string_view input) {
    if (input.empty()) {
        return;
    }
    const bool hip = (input.front() & 1) != 0;
    const binary::MemorySource source(input.substr(1));
    const auto list = hip ? binary::read_hip_bundles(source, 0, source.size())
                          : binary::read_fatbins(source, 0, source.size(), false);
    binary::runnable_archs(list.entries);
    for (const auto& code : list.entries) {
        if (code.size > source.size()) {
            std::abort();  // code that is not there
        }
    }
}

void fuzz_package(std::string_view input) {
    try {
        const auto op = kernel::parse_compiled_operator(input);
        kernel::compiled_for_text(op);
        const auto layers = kernel::read_layers(kernel::package_file_sources(op, "pt2_0"));
        if (op.parameters.empty() || op.results == 0 || layers.layers.size() > 1) {
            std::abort();
        }
    } catch (const archive::InvalidJson&) {
        return;  // what most inputs are
    }
}

void fuzz_metadata(std::string_view input) {
    try {
        const auto metadata = kernel::parse_metadata(input, "metadata.json");
        if (metadata.id.empty() || metadata.name.empty()) {
            std::abort();
        }
    } catch (const Error& error) {
        if (error.code() != ErrorCode::malformed) {
            std::abort();
        }
    }
    kernel::parse_schema(input);
}

void fuzz_python(std::string_view input) {
    const std::string text(input);
    const kernel::PackageSources package{{"__init__.py", "from .layers import *\n"},
                                         {"layers.py", text}};
    kernel::read_layers(package);
    kernel::read_functions(package);
    kernel::Findings findings;
    kernel::check_package(package, {"fuzz", {}, ""}, findings);
}

void fuzz_toml(std::string_view input) {
    try {
        // An array of tables counts once, but is two levels of the tree.
        if (depth_of(base::parse_toml_document(input, "input")) > 2 * 64 + 1) {
            std::abort();
        }
    } catch (const Error& error) {
        if (error.code() != ErrorCode::malformed) {
            std::abort();
        }
    }
}

}  // namespace twinkle::fuzz
