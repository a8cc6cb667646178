#include "runtime/convert/portability.h"

#include "runtime/convert/device_constants.h"
#include "runtime/convert/dtype_conversion.h"
#include "runtime/selection/context.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

std::optional<torch::Device> torch_device(const std::string& named) {
    const std::string rocm = "rocm";
    try {
        return torch::Device(named.starts_with(rocm) ? "cuda" + named.substr(rocm.size()) : named);
    } catch (const c10::Error&) {
        return std::nullopt;
    }
}

void make_portable(torch::jit::Module& model, const KernelizeOptions& options, Report& report) {
    report.device_constants = device_constants(model);
    if (options.device) {
        device_for(model, options.device, report.warnings);  // throws where there is no such one
        if (const auto device = torch_device(*options.device)) {
            report.device_constants.rewritten = release_devices(model, *device).rewritten;
        }
    }
    if (options.dtype) {
        report.dtype_constants = convert_dtype(model, floating_dtype(*options.dtype));
        report.dtype_constants.found = report.dtype_constants.rewritten;
        report.dtype = options.dtype;
    } else {
        try {
            report.dtype_constants = dtype_constants(model);
        } catch (const Error&) {  // too large to be followed: nothing is known of it
            report.dtype_constants = {};
        }
    }
}

}  // namespace twinkle::runtime
