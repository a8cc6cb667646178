#include "contestants.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <map>
#include <memory>
#include <stdexcept>

namespace bench {
namespace {

using torch::jit::Module;

// Below this size malloc reuses freed memory.
constexpr double large_bytes = 4e6;

// Resolves `torch` as usual; `pack` and `community_…` are namespaces of operators.
struct OperatorResolver : torch::jit::Resolver {
    explicit OperatorResolver(std::string pack_namespace) : pack(std::move(pack_namespace)) {}
    std::shared_ptr<torch::jit::SugaredValue> resolveValue(
        const std::string& name, torch::jit::GraphFunction& function,
        const torch::jit::SourceRange& at) override {
        if (name == "pack") return std::make_shared<torch::jit::BuiltinModule>(pack);
        if (name.starts_with("community_"))
            return std::make_shared<torch::jit::BuiltinModule>(name);
        return torch::jit::nativeResolver()->resolveValue(name, function, at);
    }
    std::string pack;
};

// Random numbers from one buffer; new ones for every large tensor would take longer than measuring.
at::Tensor random(int64_t elements, at::ScalarType dtype) {
    static const at::Tensor some = at::randn({1 << 20});
    const int64_t times = (elements + some.numel() - 1) / some.numel();
    return some.to(dtype).repeat({times}).narrow(0, 0, elements).clone();
}

Module module_of(const std::string& source, const Case& c, const at::Tensor& weight,
                 const at::Tensor& bias, const torch::jit::ResolverPtr& resolver) {
    Module module("bench.Layer");
    module.register_parameter("weight", weight, false);
    module.register_parameter("bias", bias, false);
    module.register_attribute("width", c10::IntType::get(), c.width);
    module.register_attribute("eps", c10::FloatType::get(), 1e-5);
    module.define(source, resolver);
    module.eval();
    return module;
}

Contestant contestant(const std::string& name, Module module) {
    return {name, false, [module](const Values& inputs) mutable { return module.forward(inputs); }};
}

// Autograd's backward of a layer; the forward has run before.
Contestant backward_contestant(const std::string& name, Module module, bool with_parameters) {
    struct Graph {
        torch::autograd::variable_list results, leaves;
    };
    const auto graphs = std::make_shared<std::map<const Values*, Graph>>();
    return {name, false, [=](const Values& inputs) mutable {
                Graph& graph = (*graphs)[&inputs];
                if (graph.results.empty()) {
                    const at::AutoGradMode record(true);
                    Values arguments;
                    for (size_t i = 1; i < inputs.size(); ++i) {
                        graph.leaves.push_back(inputs[i].toTensor().detach().requires_grad_());
                        arguments.emplace_back(graph.leaves.back());
                    }
                    if (with_parameters)
                        for (const at::Tensor& parameter : module.parameters())
                            graph.leaves.push_back(parameter.requires_grad_());
                    graph.results = {module.forward(arguments).toTensor()};
                }
                const auto gradients = torch::autograd::grad(
                    graph.results, graph.leaves, {inputs[0].toTensor()}, /*retain_graph=*/true,
                    /*create_graph=*/false, /*allow_unused=*/true);
                if (gradients.size() == 1) return c10::IValue(gradients[0]);
                Values values(gradients.begin(), gradients.end());
                return c10::IValue(c10::ivalue::Tuple::create(std::move(values)));
            }};
}

// PyTorch's own copy of the same number of bytes, half of them read.
Contestant copy(const Case& c) {
    const int64_t elements = static_cast<int64_t>(bytes_moved(c)) / 2 / c10::elementSize(c.dtype);
    const auto sources = std::make_shared<std::vector<at::Tensor>>();
    for (int i = 0; i < 2; ++i) sources->push_back(random(elements, c.dtype));
    const auto turn = std::make_shared<size_t>(0);
    return {"copy", false, [=](const Values&) {
                return c10::IValue((*sources)[(*turn)++ % sources->size()].clone());
            }};
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    std::vector<at::Tensor> tensors;
    for (const auto& element : value.toTupleRef().elements()) tensors.push_back(element.toTensor());
    return tensors;
}

// Measuring wrong results would be useless. (Half precisions are rounded in different places.)
void check_same(const Case& c, const std::string& name, const c10::IValue& result,
                const c10::IValue& original) {
    const double most = c.dtype == at::kFloat ? 1e-5 : c.dtype == at::kHalf ? 4e-3 : 3e-2;
    const auto ours = tensors_of(result), theirs = tensors_of(original);
    for (size_t i = 0; i < theirs.size(); ++i) {
        if (!theirs[i].defined()) continue;
        const at::Tensor expected = theirs[i].to(at::kDouble);
        const double error = (ours[i].to(at::kDouble) - expected).abs().max().item<double>() /
                             expected.abs().max().item<double>();
        if (ours[i].scalar_type() != theirs[i].scalar_type() || !(error <= most))
            throw std::runtime_error(c.operation->name + ": " + name + " is off by " +
                                     std::to_string(error));
    }
}

// Not every kernel supports every dtype.
bool runs(const Contestant& contestant, const Values& inputs) {
    try {
        contestant.run(inputs);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

std::vector<Contestant> layers(const Case& c, const std::string& pack_namespace, bool community) {
    const auto resolver = std::make_shared<OperatorResolver>(pack_namespace);
    const at::Tensor weight = at::rand({c.width}).to(c.dtype),
                     bias = at::rand({c.width}).to(c.dtype);
    const auto make = [&](const std::string& source) {
        return module_of(source, c, weight, bias, resolver);
    };
    if (c.operation->backward)
        return {contestant("pack", make(c.operation->pack)),
                backward_contestant("torchscript", make(c.operation->original),
                                    c.operation->name.find("_norm") != std::string::npos)};
    std::vector<Contestant> all = {
        contestant("pack", make(c.operation->pack)),
        contestant("torchscript", make(c.operation->original)),
        contestant("frozen", torch::jit::freeze(make(c.operation->original)))};
    if (community && !c.operation->community.empty())
        all.push_back(contestant("community", make(c.operation->community)));
    return all;
}

}  // namespace

double bytes_moved(const Case& c) {
    return static_cast<double>(c.tokens * c.width) *
           static_cast<double>(c10::elementSize(c.dtype)) * c.operation->tensors;
}

std::vector<Values> make_inputs(const Case& c) {
    const auto one = [&](int64_t width) {
        return random(c.tokens * width, c.dtype).view({c.tokens, width});
    };
    std::vector<Values> sets(bytes_moved(c) > 1e8 ? 2 : 4);
    for (Values& set : sets) {
        switch (c.operation->inputs) {
            case Inputs::one: set = {one(c.width)}; break;
            case Inputs::two: set = {one(c.width), one(c.width)}; break;
            case Inputs::halves: set = {one(2 * c.width)}; break;
            case Inputs::rotary:
                for (int i = 0; i < 2; ++i)
                    set.emplace_back(
                        one(c.width).view({1, c.tokens, c.width / 128, 128}).transpose(1, 2));
                const at::Tensor angles = one(c.operation->rotary_size / 2).unsqueeze(0);
                const at::Tensor both = c.operation->name.ends_with("(pairs)")
                                            ? angles.repeat_interleave(2, -1)
                                            : at::cat({angles, angles}, -1);
                set.emplace_back(both.cos());
                set.emplace_back(both.sin());
        }
        if (c.operation->backward) set.insert(set.begin(), one(c.width));
    }
    return sets;
}

std::vector<Contestant> contestants(const Case& c, const std::string& pack_namespace,
                                    bool community) {
    Case small = c;
    small.tokens = std::min<int64_t>(c.tokens, 16);
    const Values inputs = make_inputs(small).front();
    const auto tried = layers(small, pack_namespace, community);
    // Fresh ones: TorchScript would keep what it has optimized for the small inputs of the trial.
    std::vector<Contestant> all = layers(c, pack_namespace, community);
    if (tried.back().name == "community" && !runs(tried.back(), inputs)) all.pop_back();
    const c10::IValue original = tried[1].run(inputs);
    for (size_t i = 0; i < all.size(); ++i)
        check_same(c, tried[i].name, tried[i].run(inputs), original);
    all.push_back(copy(c));

    if (bytes_moved(c) < large_bytes) return all;
    const size_t count = all.size();
    for (size_t i = 0; i < count; ++i) {
        all.push_back(all[i]);
        all.back().warm = true;
    }
    return all;
}

}  // namespace bench
