#include "runtime/tuning/pack_operation.h"

#include "runtime/kernels/own_place.h"
#include "runtime/kernels/verified_files.h"
#include "twinkle/error.h"
#include "twinkle/kernel.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <array>

namespace twinkle::runtime {

namespace {

tuning::Declaration declaration_of(const MappedKernel& build) {
    const auto text = read_verified_file(build, tuning::declaration_name);
    return text ? tuning::read_declaration(*text, tuning::declaration_name) : tuning::Declaration();
}

BundledPack load_pack() {
    try {
        const Kernel pack = get_local_kernel(bundled_kernels() / "twinkle-pack");
        return {pack.build().op_namespace, pack.build().build_id(), declaration_of(pack.build())};
    } catch (const Error&) {
        return {};  // LibTorch computes
    }
}

bool is_served(const AbstractInput& input) {
    constexpr std::array<std::string_view, 4> dtypes{"float32", "bfloat16", "float16", "float64"};
    return input.layout.empty() ||
           (input.layout != "other" &&
            std::find(dtypes.begin(), dtypes.end(), input.dtype) != dtypes.end());
}

}  // namespace

const BundledPack& bundled_pack() {
    static const BundledPack pack = load_pack();
    return pack;
}

bool pack_serves(const std::string& op, const Invocation& invocation) {
    const BundledPack& pack = bundled_pack();
    if (pack.op_namespace.empty() ||
        !std::all_of(invocation.inputs.begin(), invocation.inputs.end(), is_served)) {
        return false;
    }
    const auto known = c10::Dispatcher::singleton().findSchema({pack.op_namespace + "::" + op, ""});
    return known &&
           known->hasKernelForDispatchKey(invocation.device == "cpu" ? c10::DispatchKey::CPU
                                                                     : c10::DispatchKey::CUDA);
}

std::vector<PackCfg> pack_configurations(const std::string& op, const Invocation& invocation) {
    std::vector<PackCfg> all;
    if (pack_serves(op, invocation)) {
        all.push_back({});
        const auto* declared = bundled_pack().tuning.find(op);
        if (declared != nullptr && declared->forward) {
            const auto properties = declared->properties_of(invocation, at::get_num_threads());
            for (const base::Json& cfg : declared->forward->configurations(properties)) {
                const PackCfg one{"twinkle-pack", cfg.value("grain", std::int64_t{0}),
                                  cfg.value("reading", std::int64_t{0})};
                if (one.grain != 0 || one.reading != 0) {
                    all.push_back(one);
                }
            }
        }
    }
    all.push_back({"libtorch"});
    return all;
}

std::string pack_build() {
    return bundled_pack().build_id + " LibTorch " TORCH_VERSION;
}

}  // namespace twinkle::runtime
