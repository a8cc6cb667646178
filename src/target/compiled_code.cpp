#include "target/compiled_code.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"

namespace twinkle::target {
namespace {

// The features that code for an instruction set needs, by inductor's names. Vectors of AVX2 use FMA
// and half-precision conversions, those of AVX512 these four parts of it.
const std::map<std::string, std::vector<std::string>>& features_of_isa() {
    static const std::map<std::string, std::vector<std::string>> features = {
        {"AVX2", {"avx2", "fma", "f16c"}},
        {"AVX512", {"avx512f", "avx512dq", "avx512vl", "avx512bw", "fma", "f16c"}},
        {"AVX512_VNNI", {"avx512_vnni"}},
        {"AMX_TILE", {"amx_tile"}},
        {"ASIMD", {"asimd"}},
        {"SVE256", {"sve"}},
        {"INVALID_VEC_ISA", {}},
    };
    return features;
}

void add_missing_features(const CompiledFor& code, const std::vector<std::string>& here,
                          std::vector<std::string>& reasons) {
    for (const std::string& isa : code.isa) {
        const auto needed = features_of_isa().find(isa);
        if (needed == features_of_isa().end()) {
            reasons.push_back("it is compiled for the instruction set " + base::printable(isa) +
                              ", which this twinkle does not know");
            continue;
        }
        std::vector<std::string> missing;
        std::copy_if(needed->second.begin(), needed->second.end(), std::back_inserter(missing),
                     [&](const std::string& feature) {
                         return std::find(here.begin(), here.end(), feature) == here.end();
                     });
        if (!missing.empty()) {
            reasons.push_back("it is compiled for " + isa + ", and the CPU has no " +
                              base::join(missing, ", "));
        }
    }
}

// 90 of "90", "9.0" or "sm_90".
std::optional<int> capability_of(const std::string& text) {
    std::string digits;
    std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
                 [](unsigned char c) { return std::isdigit(c) != 0; });
    return digits.empty() || digits.size() > 4 ? std::nullopt : std::optional(std::stoi(digits));
}

std::string text_of(int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// Kernels are cubins, which run on GPUs of the same major number that are not older.
void add_wrong_gpu(const CompiledFor& code, const Target& target,
                   std::vector<std::string>& reasons) {
    const auto wanted = capability_of(code.capability);
    const auto there = target.capability();
    if (!wanted || !there || *there == *wanted) {
        return;
    }
    if (*there / 10 != *wanted / 10 || *there < *wanted) {
        reasons.push_back("its GPU code is for compute capability " + text_of(*wanted) +
                          ", and the GPU has " + text_of(*there));
    }
}

}  // namespace

std::optional<int> capability_number(const CompiledFor& code) {
    return capability_of(code.capability);
}

std::optional<std::string> capability_text(const CompiledFor& code) {
    const auto capability = capability_number(code);
    return capability ? std::optional(text_of(*capability)) : std::nullopt;
}

std::vector<std::string> reasons_against(
    const CompiledFor& code, const Target& target,
    const std::optional<std::vector<std::string>>& cpu_features) {
    std::vector<std::string> reasons;
    if (!code.os.empty() && code.os != target.os) {
        reasons.push_back("it is compiled for " + base::printable(code.os) + ", not " + target.os);
    }
    if (!code.cpu.empty() && code.cpu != target.cpu) {
        reasons.push_back("it is compiled for " + base::printable(code.cpu) + ", not " +
                          target.cpu);
    } else if (cpu_features) {
        add_missing_features(code, *cpu_features, reasons);
    }
    const auto devices = target.devices();
    if (!code.device.empty() &&
        std::find(devices.begin(), devices.end(), code.device) == devices.end()) {
        reasons.push_back("it is compiled for " + base::printable(code.device) +
                          ", which the LibTorch there has not: it has " +
                          base::join(devices, ", "));
    } else if (code.device == "cuda") {
        add_wrong_gpu(code, target, reasons);
    }
    return reasons;
}

}  // namespace twinkle::target
