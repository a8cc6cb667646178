#include "kernel/check_abi.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "binary/demangle.h"
#include "binary/limited_api.h"

namespace twinkle::kernel {
namespace {

constexpr std::size_t most_named = 5;

// Whole names up to ".so", or, with a star, their beginnings.
constexpr std::array<std::string_view, 52> allowed{
    // the C and C++ runtime
    "libc", "libm", "libdl", "libpthread", "librt", "libutil", "libmvec", "libatomic", "libgcc_s",
    "libstdc++", "libgomp", "ld-linux*", "linux-vdso", "libc++", "libc++abi",
    // torch
    "libtorch*", "libc10*", "libshm", "libtvm_ffi*",
    // CUDA
    "libcuda", "libcudart", "libcublas*", "libcudnn*", "libcufft*", "libcufile*", "libcurand",
    "libcusolver*", "libcusparse*", "libcupti", "libnccl", "libnvrtc*", "libnvToolsExt",
    "libnvJitLink", "libnvshmem*",
    // ROCm
    "libamdhip64", "libhiprtc*", "libhipblas*", "librocblas", "libhipfft", "librocfft",
    "libhiprand", "librocrand", "libhipsolver", "librocsolver", "libhipsparse*", "librocsparse",
    "libMIOpen", "librccl", "libroctx64", "librocm_smi64",
    // XPU
    "libsycl", "libOpenCL"};

std::string shortened(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    const std::size_t count = names.size();
    names.resize(std::min(count, most_named));
    std::string text = base::join(names, ", ");
    if (count > most_named) {
        text += " and " + std::to_string(count - most_named) + " more";
    }
    return text;
}

bool is_within(const SymbolLimits& limits, const binary::SymbolVersion& version) {
    const auto limit = limits.find(version.kind);
    return limit == limits.end() || !binary::is_newer(version.number, limit->second);
}

// One finding for each version that is too new, with the symbols that ask for it.
void check_versions(const binary::Library& library, const std::string& shown, const AbiRules& rules,
                    Findings& findings) {
    std::map<std::string, std::vector<std::string>> too_new;
    const auto judge = [&](const std::string& text) -> std::vector<std::string>* {
        const auto version = binary::parse_symbol_version(text);
        return version && !is_within(manylinux_limits(), *version) ? &too_new[text] : nullptr;
    };
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        if (symbol.defined || symbol.version.empty()) {
            continue;
        }
        if (auto* names = judge(std::string(symbol.version))) {
            names->push_back(binary::demangle(symbol.name));
        }
    }
    for (const binary::VersionNeed& need : library.symbols.needs) {
        for (const std::string& version : need.versions) {
            judge(version);  // asked for, though by no symbol
        }
    }
    for (auto& [version, names] : too_new) {
        const bool here =
            rules.machine && is_within(*rules.machine, *binary::parse_symbol_version(version));
        std::string text = "needs " + base::printable(version);
        if (!names.empty()) {
            text += " (" + base::printable(shortened(std::move(names))) + ")";
        }
        text += here ? ", which this machine has and manylinux_2_28 does not"
                     : ", which is newer than manylinux_2_28";
        findings.push_back(
            {"abi/manylinux", here ? Severity::note : Severity::error, std::move(text), shown});
    }
}

void check_python(const binary::Library& library, const std::string& shown, Findings& findings) {
    std::vector<std::string> beyond;
    for (const std::string& symbol : library.python_symbols) {
        if (!binary::in_limited_api(symbol)) {
            beyond.push_back(base::printable(symbol));
        }
    }
    if (!beyond.empty()) {
        findings.push_back({"abi/python", Severity::error,
                            "needs " + shortened(std::move(beyond)) +
                                ", which the limited API of Python 3.9 does not have",
                            shown});
    }
}

void check_stable_abi(const binary::Library& library, const std::string& shown,
                      Findings& findings) {
    std::vector<std::string> beyond;
    for (const binary::Symbol& symbol : library.symbols.symbols) {
        const auto space = binary::outer_namespace(symbol.name);
        if (symbol.defined || (space != "c10" && space != "at" && space != "torch")) {
            continue;
        }
        const std::string name = binary::demangle(symbol.name);
        if (name.find("torch::stable::") == std::string::npos) {
            beyond.push_back(base::printable(name));
        }
    }
    if (!beyond.empty()) {
        findings.push_back({"abi/torch", Severity::error,
                            "needs " + shortened(std::move(beyond)) +
                                ", which may differ in every version of torch",
                            shown});
    }
}

void check_needed(const binary::Library& library, const std::string& shown, Findings& findings) {
    for (const std::string& name : library.needed) {
        if (!is_allowed_library(name)) {
            findings.push_back({"abi/needed", Severity::error,
                                "needs " + base::printable(name) + ", which no torch brings along",
                                shown});
        }
    }
    std::set<std::string> folders(library.rpath.begin(), library.rpath.end());
    folders.insert(library.runpath.begin(), library.runpath.end());
    for (const std::string& folder : folders) {
        if (!folder.starts_with("$ORIGIN") && !folder.starts_with("${ORIGIN}")) {
            findings.push_back({"abi/rpath", Severity::warning,
                                "looks for libraries in " + base::printable(folder), shown});
        }
    }
}

}  // namespace

const SymbolLimits& manylinux_limits() {
    static const auto& limits = *new SymbolLimits{
        {"GLIBC", "2.28"}, {"GLIBCXX", "3.4.24"}, {"CXXABI", "1.3.11"}, {"GCC", "7.0.0"}};
    return limits;
}

bool is_allowed_library(std::string_view name) {
    const std::string_view stem = name.substr(0, name.find(".so"));
    return std::any_of(allowed.begin(), allowed.end(),
                       [&](std::string_view pattern) { return base::glob_match(pattern, stem); });
}

void check_abi(const BuildLibrary& library, const std::string& shown, const AbiRules& rules,
               Findings& findings) {
    const binary::Library& facts = library.library;
    if (rules.variant && !rules.variant->cpu.empty() && facts.machine != rules.variant->cpu) {
        findings.push_back({"abi/machine", Severity::error,
                            "is for " + facts.machine + ", its variant for " + rules.variant->cpu,
                            shown});
    }
    if (!facts.shared) {
        findings.push_back(
            {"abi/library", Severity::error, "is an ELF file, but no shared library", shown});
    }
    check_versions(facts, shown, rules, findings);
    check_python(facts, shown, findings);
    if (rules.variant && rules.variant->framework == Framework::stable_abi) {
        check_stable_abi(facts, shown, findings);
    }
    check_needed(facts, shown, findings);
}

}  // namespace twinkle::kernel
