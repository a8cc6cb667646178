// twinkle.lock as text. One file a line; every kernel stands for itself, so that git merges changes
// of different kernels, and its checksum tells a merge that mixed two states of one.

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/toml.h"
#include "project/lock.h"
#include "project/lock_text.h"

namespace twinkle::project {
namespace {

using base::toml_string;

std::string pin_text(const Pin& pin) {
    return pin.version              ? fmt::format("version = {}", *pin.version)
           : !pin.specifier.empty() ? "version = " + toml_string(pin.specifier)
                                    : "revision = " + toml_string(pin.revision);
}

std::string file_text(const LockedFile& file) {
    std::string line = fmt::format("{{ path = {}, size = {}", toml_string(file.path), file.size);
    if (!file.git_sha1.empty()) {
        line += ", git = " + toml_string(file.git_sha1);
    }
    if (!file.sha256.empty()) {
        line += ", sha256 = " + toml_string(file.sha256);
    }
    return line + " }";
}

void add_variant(const LockedVariant& variant, std::string& text) {
    text += "\n[[kernel.variant]]\nname = " + toml_string(variant.name) + "\n";
    if (!variant.metadata_sha256.empty()) {
        text += "metadata = " + toml_string(variant.metadata_sha256) + "\n";
    }
    if (!variant.archs.empty()) {
        text += "archs = [";
        for (std::size_t i = 0; i < variant.archs.size(); ++i) {
            text += (i == 0 ? "" : ", ") + toml_string(variant.archs[i]);
        }
        text += "]\n";
    }
    if (!variant.dependencies.empty()) {
        text += "dependencies = [\n";
        for (const LockedDependency& needed : variant.dependencies) {
            text += fmt::format("    {{ repo_id = {}, {} }},\n", toml_string(needed.repo_id),
                                pin_text(needed.pin));
        }
        text += "]\n";
    }
    text += "files = [\n";
    for (const LockedFile& file : variant.files) {
        text += "    " + file_text(file) + ",\n";
    }
    text += "]\n";
}

std::string kernel_text(const LockedKernel& kernel, std::string_view checksum) {
    std::string text = "[[kernel]]\nname = " + toml_string(kernel.name) + "\n";
    if (kernel.is_local()) {
        text += "path = " + toml_string(kernel.path) + "\n";
    } else {
        text += pin_text(kernel.pin) + "\n";
        text += "ref = " + toml_string(kernel.ref) + "\n";
        if (!kernel.moved_to.empty()) {
            text += "moved_to = " + toml_string(kernel.moved_to) + "\n";
        }
        text += "commit = " + toml_string(kernel.commit) + "\n";
    }
    if (!checksum.empty()) {
        text += "checksum = " + toml_string(checksum) + "\n";
    }
    for (const LockedVariant& variant : kernel.variants) {
        add_variant(variant, text);
    }
    return text;
}

}  // namespace

std::string checksum_of(const LockedKernel& kernel) {
    return base::sha256_hex(kernel_text(kernel, "")).substr(0, checksum_digits);
}

std::string lock_toml(const Lock& lock) {
    std::string text =
        "# Written by `twinkle lock`: which commits and files the project's kernels are. Commit "
        "it;\n"
        "# change the manifest instead of this file.\n"
        "version = 1\n";
    for (const LockedKernel& kernel : lock.kernels) {
        text += "\n" + kernel_text(kernel, checksum_of(kernel));
    }
    return text;
}

}  // namespace twinkle::project
