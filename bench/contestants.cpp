#include "contestants.h"

#include <ATen/Parallel.h>

#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include "operators.h"

namespace bench {
namespace {

using torch::jit::Module;

// transformers' LlamaRMSNorm.forward, and the part of LlamaMLP.forward between the projections. As
// in a saved model, 6 is torch.float32.
constexpr const char* original_norm = R"(
def forward(self, hidden_states):
    input_dtype = hidden_states.dtype
    hidden_states = hidden_states.to(6)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
    return self.weight * hidden_states.to(input_dtype)
)";
constexpr const char* original_gate = R"(
def forward(self, gate, up):
    return torch.silu(gate) * up
)";

// `torch` as ever, and `pack`: the operators of the pack.
struct PackResolver : torch::jit::Resolver {
    explicit PackResolver(std::string op_namespace) : pack(std::move(op_namespace)) {}
    std::shared_ptr<torch::jit::SugaredValue> resolveValue(
        const std::string& name, torch::jit::GraphFunction& function,
        const torch::jit::SourceRange& at) override {
        if (name == "pack") return std::make_shared<torch::jit::BuiltinModule>(pack);
        return torch::jit::nativeResolver()->resolveValue(name, function, at);
    }
    std::string pack;
};

Module norm_module(const std::string& source, const Case& c,
                   const torch::jit::ResolverPtr& resolver) {
    Module module("bench.RMSNorm");
    module.register_parameter("weight", at::rand({c.width}).to(c.dtype), false);
    module.register_attribute("variance_epsilon", c10::FloatType::get(), 1e-5);
    module.define(source, resolver);
    module.eval();
    return module;
}

Module gate_module(const std::string& source, const torch::jit::ResolverPtr& resolver) {
    Module module("bench.Gate");
    module.define(source, resolver);
    module.eval();
    return module;
}

Contestant contestant(const std::string& name, Module module) {
    return {name, [module](const std::vector<at::Tensor>& inputs) mutable {
                return module.forward({inputs.begin(), inputs.end()}).toTensor();
            }};
}

twinkle_pack::View view_of(const at::Tensor& tensor) {
    return {tensor.const_data_ptr(), static_cast<int>(tensor.scalar_type()), tensor.dim(),
            tensor.sizes().data(), tensor.strides().data()};
}

void parallel(int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    at::parallel_for(0, end, grain, [&](int64_t from, int64_t to) { body(from, to, context); });
}

// The computing code alone, into memory that is there already.
Contestant warm_kernel(const Case& c) {
    const at::Tensor result = at::zeros({c.tokens, c.width}, c.dtype);
    const at::Tensor weight = at::rand({c.width}).to(c.dtype);
    const bool norm = c.op == "rms_norm";
    return {"warm kernel", [=](const std::vector<at::Tensor>& inputs) {
                void* const out = result.mutable_data_ptr();
                if (norm)
                    twinkle_pack::rms_norm(view_of(inputs[0]), view_of(weight), 1e-5, out,
                                           parallel);
                else
                    twinkle_pack::silu_mul(view_of(inputs[0]), view_of(inputs[1]), out, parallel);
                return result;
            }};
}

// PyTorch's own copy of as many bytes as must be moved, half of them read.
Contestant copy(const Case& c, bool warm) {
    const int64_t elements = static_cast<int64_t>(bytes_moved(c)) / 2 / c10::elementSize(c.dtype);
    const auto sources = std::make_shared<std::vector<at::Tensor>>();
    for (int i = 0; i < input_sets(c); ++i) sources->push_back(at::randn({elements}).to(c.dtype));
    const at::Tensor target = at::zeros({elements}, c.dtype);
    const auto turn = std::make_shared<size_t>(0);
    return {warm ? "warm copy" : "copy", [=](const std::vector<at::Tensor>&) {
                const at::Tensor& source = (*sources)[(*turn)++ % sources->size()];
                return warm ? target.copy_(source) : source.clone();
            }};
}

}  // namespace

double bytes_moved(const Case& c) {
    const double tensor = static_cast<double>(c.tokens * c.width) * c10::elementSize(c.dtype);
    return tensor * (c.op == "silu_mul" ? 3 : 2);
}

int input_sets(const Case& c) {
    return bytes_moved(c) > 1e8 ? 2 : 4;
}

std::vector<at::Tensor> make_inputs(const Case& c) {
    std::vector<at::Tensor> inputs{at::randn({c.tokens, c.width}).to(c.dtype)};
    if (c.op == "silu_mul") inputs.push_back(at::randn({c.tokens, c.width}).to(c.dtype));
    return inputs;
}

std::vector<Contestant> contestants(const Case& c, const std::string& op_namespace) {
    const bool norm = c.op == "rms_norm";
    const auto resolver = std::make_shared<PackResolver>(op_namespace);
    const std::string kernel =
        norm ? "def forward(self, hidden_states):\n"
               "    return pack.rms_norm(hidden_states, self.weight, self.variance_epsilon)\n"
             : "def forward(self, gate, up):\n    return pack.silu_mul(gate, up)\n";
    const auto make = [&](const std::string& source) {
        return norm ? norm_module(source, c, resolver) : gate_module(source, resolver);
    };
    const std::string original = norm ? original_norm : original_gate;
    return {contestant("pack", make(kernel)),
            contestant("torchscript", make(original)),
            contestant("frozen", torch::jit::freeze(make(original))),
            copy(c, false),
            warm_kernel(c),
            copy(c, true)};
}

}  // namespace bench
