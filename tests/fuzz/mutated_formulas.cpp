#include "fuzz/mutated_formulas.h"

#include "fuzz/source_mutator.h"
#include "runtime/patterns/pattern_calls.h"
#include "runtime/patterns/pattern_sites.h"
#include "runtime/scripted.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <array>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>

namespace twinkle::fuzz {

namespace {

// A sample of everything that the presets' formulas occur in.
constexpr const char* model_code = R"(
def norm(self, x):
    h = x.float()
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-06)
    return self.weight * h.type_as(x)
def rotate(self, x, cos, sin):
    half = x.size(-1) // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin
def attend(self, q, k, v):
    scores = torch.matmul(q, k.transpose(2, 3)) * 0.5
    return torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2)
def forward(self, x):
    h = self.norm(x)
    q = h.view(2, 4, 2, 4).transpose(1, 2)
    q = self.rotate(q, torch.cos(q), torch.sin(q))
    k = self.rotate(q, torch.cos(q) + 1, torch.sin(q))
    total = x + self.attend(q, k, q).reshape(2, 4, 8)
    h = self.norm(total)
    for i in range(2):
        total = total + torch.silu(h) * h
        if bool(total.sum() > 0):
            total = torch.gelu(total) * h * torch.sigmoid(total * 1.702)
    parts = [total, h]
    parts.append(x * x)
    parts[0] = h + 1
    a, b = torch.cat(parts, -1).chunk(2, -1)
    y = torch.silu(a) * b
    y = 0.5 * y * (1.0 + torch.tanh(0.7978845608028654 * (y + 0.044715 * torch.pow(y, 3.0))))
    y.add_(1.0)
    return y + torch.layer_norm(y, [12]), (x + x, x)
)";

constexpr const char* more_formulas = R"(
import torch
from torch import Tensor

def two(x, y):
    return x.sigmoid() * y, x + y

def both(x):
    h = x * x
    return h, torch.cat([h, x], -1)

def turned(a, b, c, d):
    return (a + b) * (c + d) + (a * c + b * d)

def of_list(parts: list[Tensor]):
    return torch.cat(parts, -1) * 2.0

def nested(x, n: int):
    a, (b, c) = x.size(0), (x.chunk(2, -1)[0], n)
    return b * a * c

def anything(x):
    return x + x

def cast(x, y):
    return x.to(torch.float32), y.type_as(x) + 1

def itself(x):
    return itself(x) + 1
)";

std::string text_of(const std::string& file) {
    std::ifstream in(std::string(TWINKLE_SOURCE_DIR) + "/kernels/presets/" + file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

const std::array<std::string, 4>& seeds() {
    static const auto& all = *new std::array<std::string, 4>{
        text_of("formulas.py"), more_formulas, text_of("rotary.py"), text_of("attention.py")};
    return all;
}

// Some of the functions that existed before.
std::vector<std::string> some_names(const std::string& source, Random& random) {
    std::vector<std::string> all;
    for (std::size_t at = source.find("\ndef "); at != std::string::npos;
         at = source.find("\ndef ", at + 1)) {
        all.push_back(source.substr(at + 5, source.find('(', at) - at - 5));
    }
    std::vector<std::string> some;
    for (int i = 0; i < 4 && !all.empty(); ++i) {
        some.push_back(all[below(random, all.size())]);
    }
    return some;
}

torch::jit::Module fresh_model() {
    torch::jit::Module module("__torch__.tests.Mixed");
    module.register_parameter("weight", torch::linspace(0.5, 1.5, 8), false);
    module.register_attribute("training", c10::BoolType::get(), false);
    module.define(model_code);
    return module;
}

at::Tensor output(torch::jit::Module& model) {
    const torch::NoGradGuard no_grad;
    const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    const auto both = model.forward({torch::linspace(-2, 2, 64).view({2, 4, 8})}).toTuple();
    const auto pair = both->elements()[1].toTuple();
    return torch::cat({both->elements()[0].toTensor().flatten(),
                       pair->elements()[0].toTensor().flatten(),
                       pair->elements()[1].toTensor().flatten()});
}

std::string problem_with(const std::string& reason) {
    for (const char* raw : {"frame #", "INTERNAL ASSERT", "c10::", "Exception raised from"}) {
        if (reason.find(raw) != std::string::npos) {
            return "a raw text: " + reason;
        }
    }
    return reason.empty() ? "a refusal without a reason" : "";
}

void outline(const Mapping& mapping, const std::vector<runtime::PatternRule>& rules,
             FormulaResult& result) {
    auto model = fresh_model();
    static const at::Tensor expected = output(model);
    const auto search = runtime::find_patterns(model, mapping, rules, /*may_train=*/false);
    std::vector<std::string> sites;
    for (const auto& site : search.sites) {
        if (site.match.problem.empty()) {
            sites.push_back(site.site);
        }
    }
    result.found += search.sites.size();
    if (std::set<std::string>(sites.begin(), sites.end()).size() != sites.size()) {
        result.problem = "two places have one name";
    }
    runtime::outline_patterns(model, mapping, rules, /*may_train=*/false, sites);
    for (torch::jit::Function* method : model.type()->methods()) {
        torch::jit::toGraphFunction(*method).graph()->lint();
    }
    if (!sites.empty() && !torch::allclose(output(model), expected, 1e-5, 1e-6, true)) {
        result.problem = "the model computes something else";
    }
}

}  // namespace

FormulaResult try_mutated_formulas(std::uint32_t number) {
    Random random(number);
    FormulaResult result;
    result.source = seeds()[number % seeds().size()];
    const auto names = some_names(result.source, random);
    for (std::size_t changes = 1 + below(random, 4); changes > 0 && !result.source.empty();
         --changes) {
        change(result.source, random);
    }
    Mapping mapping;
    mapping.patterns.push_back({"mutated", result.source, "formulas.py", names, {}, false});
    const auto start = std::chrono::steady_clock::now();
    try {
        const auto rules = runtime::compile_patterns(mapping);
        result.compiled = rules[0].formulas.size();
        result.refused = rules[0].problems.size();
        for (const std::string& reason : rules[0].problems) {
            if (auto problem = problem_with(reason); !problem.empty()) {
                result.problem = std::move(problem);
            }
        }
        if (!rules[0].formulas.empty()) {
            outline(mapping, rules, result);
        }
    } catch (const std::exception& error) {
        result.problem = std::string("an exception: ") + error.what();
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace twinkle::fuzz
