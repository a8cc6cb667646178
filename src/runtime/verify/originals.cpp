#include "runtime/verify/originals.h"

#include "runtime/convert/device_constants.h"
#include "runtime/convert/dtype_conversion.h"
#include "runtime/convert/frozen_model.h"
#include "runtime/convert/moved_model.h"
#include "runtime/exported/opened_file.h"
#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"
#include "runtime/trace/inlined_code.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/double_reference.h"
#include "runtime/verify/rounded_results.h"
#include "runtime/verify/served_numbers.h"
#include "runtime/verify/site_module.h"

#include <set>

namespace twinkle::runtime {

namespace {

// Releases the devices that the code names, as in the model that is compared.
torch::jit::Module open(const VerificationContext& context) {
    // allow_io: this model was opened, and allowed, before it was kernelized. Weights stay in the
    // file but for measuring on a CPU: a server's lie in memory of larger pages.
    torch::jit::Module model = open_model_file(
        context.original, context.original_name,
        {.device = context.device.value_or(at::kCPU),
         .allow_io = true,
         .map_weights = context.device.has_value() || !context.sampling.has_value()});
    if (context.device) {
        release_devices(model, *context.device);
    }
    return model;
}

torch::jit::Module with_calls(torch::jit::Module model, const VerificationContext& context,
                              const std::vector<std::string>& sites) {
    if (context.prepare && !sites.empty()) {
        context.prepare(model, sites);
    }
    return model;
}

}  // namespace

InlinedSites inlined_sites(const torch::jit::Module& kernelized, const torch::jit::Module& original,
                           const std::vector<std::string>& sites) {
    InlinedSites inlined;
    InlinedOriginals originals(original);
    const std::set<std::string> wanted(sites.begin(), sites.end());
    for (const FunctionCall& call : function_calls(kernelized)) {
        if (!call.inlined || !wanted.contains(call.site)) {
            continue;
        }
        if (auto region = originals.region_of(call)) {
            inlined.emplace(call.site,
                            std::pair(instance_at(original, call.path), *std::move(region)));
        }
    }
    return inlined;
}

torch::jit::Module site_of(const torch::jit::Module& model, const InlinedSites& inlined,
                           const std::string& site) {
    const auto region = inlined.find(site);
    return region != inlined.end() ? module_of(graph_of(region->second.second))
                                   : module_at(model, site).value_or(model);
}

torch::jit::Module in_double(const torch::jit::Module& module) {
    torch::jit::Module copy = module.deepcopy();
    hold_in_double(copy);
    return copy;
}

torch::jit::Module open_original(const VerificationContext& context,
                                 const std::vector<std::string>& sites) {
    torch::jit::Module model = open(context);
    if (context.dtype) {
        convert_dtype(model, *context.dtype);
    }
    model = with_calls(std::move(model), context, sites);
    take_numbers_as_served(model);
    return model;
}

torch::jit::Module open_reference(const VerificationContext& context,
                                  const std::vector<std::string>& sites) {
    torch::jit::Module model = open(context);
    if (context.dtype) {
        round_weights(model, *context.dtype);
    }
    return with_calls(std::move(model), context, sites);
}

torch::jit::Module open_exact(const VerificationContext& context) {
    torch::jit::Module model = open_reference(context, {});
    compute_in_double(model);
    hold_in_double(model);
    return model;
}

torch::jit::Module open_rounded(const VerificationContext& context) {
    torch::jit::Module model = open(context);
    round_model(model, *context.dtype);
    take_numbers_as_served(model);
    return model;
}

torch::jit::Module frozen_for(const torch::jit::Module& model, const VerificationContext& context) {
    return frozen_model(model, context.device.value_or(at::kCPU));
}

torch::jit::Module in_place(const torch::jit::Module& model, const VerificationContext& context) {
    torch::jit::Module here = context.device ? moved_to(model, *context.device) : model;
    take_numbers_as_served(here);
    return here;
}

VerificationContext in_place(const VerificationContext& context) {
    VerificationContext here = context;
    if (context.device) {
        move_to(here.inputs, *context.device);
        for (SizeVariant& size : here.sizes) {
            if (size.own != nullptr) {
                Inputs own = deep_copy(*size.own);
                move_to(own, *context.device);
                size.own = std::make_shared<const Inputs>(std::move(own));
            }
        }
        if (here.sampling) {
            here.sampling->wait = [device = *context.device] { wait_for(device); };
        }
    }
    return here;
}

}  // namespace twinkle::runtime
