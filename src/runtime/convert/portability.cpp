#include "runtime/convert/portability.h"

#include "runtime/convert/device_constants.h"
#include "runtime/convert/dtype_conversion.h"
#include "runtime/selection/context.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

namespace {

// As LibTorch calls it; none: it has no such device.
std::optional<torch::Device> torch_device(const std::string& kind, const std::string& written) {
    const auto colon = written.find(':');
    const std::string index = colon == std::string::npos ? "" : written.substr(colon);
    try {
        return torch::Device((kind == "rocm" ? "cuda" : kind) + index);
    } catch (const c10::Error&) {
        return std::nullopt;
    }
}

}  // namespace

void make_portable(torch::jit::Module& model, const KernelizeOptions& options, Report& report) {
    report.device_constants = device_constants(model);
    if (options.device) {
        const std::string kind = device_for(model, options.device, report.warnings);
        if (const auto device = torch_device(kind, *options.device)) {
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
