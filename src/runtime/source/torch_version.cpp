#include "runtime/source/torch_version.h"

#include "base/text.h"
#include "runtime/kernels/own_target.h"

#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/cuda.h>

namespace twinkle::runtime {

namespace {

namespace jit = torch::jit;

std::optional<std::string> cuda_version(const target::Backend& backend) {
    return backend.kind == target::BackendKind::cuda && backend.version
               ? std::optional(backend.version->text())
               : std::nullopt;
}

// Asked each time a model runs: it may run on another machine than it was made on.
const jit::RegisterOperators registration(
    {jit::Operator(
         "twinkle::cuda_device_count() -> int",
         [](jit::Stack& stack) {
             jit::push(stack, static_cast<std::int64_t>(torch::cuda::device_count()));
         },
         c10::AliasAnalysisKind::CONSERVATIVE),
     jit::Operator(
         "twinkle::cuda_is_available() -> bool",
         [](jit::Stack& stack) { jit::push(stack, torch::cuda::device_count() > 0); },
         c10::AliasAnalysisKind::CONSERVATIVE)});

}  // namespace

std::optional<std::string> torch_cuda_version(const std::string& variant) {
    for (const std::string& part : base::split(variant, '-')) {
        const auto backend = target::parse_backend(part);
        if (backend && (backend->version || backend->kind != target::BackendKind::cuda)) {
            return cuda_version(*backend);
        }
    }
    return cuda_version(own_target().backend);
}

}  // namespace twinkle::runtime
