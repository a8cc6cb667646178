#include "twinkle/load.h"

#include "runtime/kernels/kernel_finder.h"
#include "runtime/kernels/loaded_kernels.h"
#include "runtime/model/model_file.h"
#include "runtime/rewrite/marker.h"
#include "twinkle/error.h"

namespace twinkle {

namespace {

constexpr std::string_view marker_literal = "\"twinkle.kernel/1 ";

// The serialized source holds a marker as a string literal, without quotes or backslashes inside.
void collect_markers(const std::string& code, std::vector<RequiredKernel>& found) {
    for (auto at = code.find(marker_literal); at != std::string::npos;
         at = code.find(marker_literal, at)) {
        const auto begin = at + 1;
        const auto end = code.find('"', begin);
        if (end == std::string::npos) {
            return;
        }
        at = end;
        const auto kernel =
            runtime::parse_marker(std::string_view(code).substr(begin, end - begin));
        const bool known = kernel && std::any_of(found.begin(), found.end(), [&](const auto& one) {
                               return one.build_id == kernel->build_id;
                           });
        if (kernel && !known) {
            found.push_back(*kernel);
        }
    }
}

std::vector<RequiredKernel> markers_in(const std::vector<std::string>& texts) {
    std::vector<RequiredKernel> found;
    for (const std::string& code : texts) {
        collect_markers(code, found);
    }
    return found;
}

void find_and_load(const std::vector<RequiredKernel>& required, const std::filesystem::path& model,
                   const LoadOptions& options) {
    if (required.empty()) {
        return;
    }
    const runtime::KernelFinder finder(options.kernel_dirs);
    for (const RequiredKernel& kernel : required) {
        runtime::load_kernel(finder.find(kernel, model));
    }
}

}  // namespace

std::vector<RequiredKernel> required_kernels(const std::filesystem::path& model) {
    return markers_in(runtime::code_of(model));
}

void load_required_kernels(const std::filesystem::path& model, const LoadOptions& options) {
    find_and_load(required_kernels(model), model, options);
}

void load_required_kernels(const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& model,
                           const LoadOptions& options) {
    find_and_load(markers_in(runtime::code_of(model)), "a model from a stream", options);
}

torch::jit::Module load(const std::filesystem::path& model, const LoadOptions& options) {
    load_required_kernels(model, options);
    return runtime::open_model(model, options.device);
}

}  // namespace twinkle
