#include "runtime/convert/dtype_rewriting.h"

#include "runtime/graph/dtype_rules.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/past_runs.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

double largest(at::ScalarType dtype) {
    switch (dtype) {
        case at::kHalf: return 65504.0;
        case at::kBFloat16: return 0x1.FEp127;
        case at::kFloat: return 0x1.FFFFFEp127;
        default: return std::numeric_limits<double>::max();
    }
}

// Every tensor once, and those that share their memory share it afterwards.
class Converted {
public:
    explicit Converted(at::ScalarType to) : to_(to) {}

    at::Tensor of(const at::Tensor& tensor) {
        const auto key =
            std::make_tuple(tensor.const_data_ptr(), tensor.sizes().vec(), tensor.strides().vec());
        const auto [entry, first] = done_.try_emplace(key);
        if (first) {
            entry->second = tensor.detach().to(to_);
        }
        return entry->second;
    }

private:
    at::ScalarType to_;
    std::map<std::tuple<const void*, std::vector<std::int64_t>, std::vector<std::int64_t>>,
             at::Tensor>
        done_;
};

class Rewriting {
public:
    Rewriting(jit::Module& model, const DtypeSettings& settings, const DtypeFlow& flow)
        : model_(model),
          settings_(settings),
          flow_(flow),
          names_(method_names(model)),
          converted_(settings.to) {}

    ConstantReport run() {
        for (const auto& graph : graphs_of(model_)) {
            for_each_node(graph->block(), [&](const jit::Node* node) { look(node); });
        }
        weights();
        constants();
        for (const auto& [place, instead] : flow_.read_instead) {
            changed(place.first)->replaceInput(place.second, const_cast<jit::Value*>(instead));
        }
        for (const jit::Value* value : flow_.rounded) {
            round(const_cast<jit::Value*>(value));
        }
        discard_past_runs(model_);
        return std::move(report_);
    }

private:
    // The graphs are those of the model, which is ours to change.
    static jit::Node* changed(const jit::Node* node) { return const_cast<jit::Node*>(node); }

    void count(const jit::Node* node) {
        const auto name = names_.find(node->owningGraph());
        ++report_.methods[name == names_.end() ? "a function" : name->second];
        ++report_.rewritten;
    }

    // Whether a value is only made into float32 wherever it is read.
    bool only_as_float(const jit::Value* value) const {
        return std::all_of(value->uses().begin(), value->uses().end(), [&](const jit::Use& use) {
            const jit::Node* user = use.user;
            if (user->kind() == c10::aten::to) {
                const auto index = argument_index(user, "dtype");
                const auto known =
                    index ? flow_.constants.find({user, *index}) : flow_.constants.end();
                return known != flow_.constants.end() && known->second == DtypeMeaning::literal &&
                       dtype_constant(user, *index) == at::kFloat && use.offset == 0;
            }
            if (user->kind() == c10::prim::device) {
                return true;
            }
            return user->kind().is_aten() && use.offset == 0 &&
                   passes_on(user->kind().toUnqualString()) && user->outputs().size() == 1 &&
                   only_as_float(user->output());
        });
    }

    void look(const jit::Node* node) {
        if (node->kind() == c10::prim::GetAttr &&
            node->output()->type()->kind() == c10::TypeKind::TensorType &&
            !only_as_float(node->output())) {
            const auto type = node->input(0)->type()->cast<c10::ClassType>();
            read_.emplace(type.get(), node->s(c10::attr::name));
        } else if (is_weight_constant(node)) {
            weight_constants_.push_back(changed(node));
        }
    }

    bool keeps_dtype(const at::Tensor& tensor) const {
        return !is_floating(tensor.scalar_type()) || tensor.scalar_type() == settings_.to;
    }

    void weights() {
        const torch::NoGradGuard no_grad;
        std::vector<at::Tensor> tensors;
        for (const auto& [path, module] : named_modules()) {
            const auto type = module.type();
            for (std::size_t i = 0; i < type->numAttributes(); ++i) {
                const c10::IValue value = module._ivalue()->getSlot(i);
                if (!(type->is_parameter(i) || type->is_buffer(i)) || !value.isTensor() ||
                    !value.toTensor().defined() || keeps_dtype(value.toTensor())) {
                    continue;
                }
                const std::string& name = type->getAttributeName(i);
                if (settings_.ambiguous() && type->is_buffer(i) &&
                    value.toTensor().scalar_type() == at::kFloat &&
                    !read_.contains({type.get(), name})) {
                    report_.kept.push_back(path.empty() ? name : path + "." + name);
                } else {
                    tensors.push_back(value.toTensor());
                }
            }
        }
        for (at::Tensor& tensor : tensors) {
            tensor.set_data(converted_.of(tensor));
        }
        report_.converted = tensors.size();
        for (jit::Node* node : weight_constants_) {
            if (!keeps_dtype(node->t(c10::attr::value)) && !only_as_float(node->output())) {
                node->t_(c10::attr::value, converted_.of(node->t(c10::attr::value)));
                ++report_.converted;
            }
        }
    }

    std::vector<std::pair<std::string, jit::Module>> named_modules() const {
        std::vector<std::pair<std::string, jit::Module>> modules;
        for (const auto& one : model_.named_modules()) {
            modules.emplace_back(one.name, one.value);
        }
        return modules;
    }

    void constants() {
        for (const auto& [place, meaning] : flow_.constants) {
            jit::Node* node = changed(place.first);
            if (meaning != DtypeMeaning::weights ||
                dtype_constant(node, place.second) == settings_.to) {
                continue;
            }
            const jit::WithInsertPoint before(node);
            node->replaceInput(place.second, node->owningGraph()->insertConstant(
                                                 static_cast<std::int64_t>(settings_.to)));
            count(node);
        }
        for (const jit::Node* node : flow_.computed_in_new) {
            for (std::size_t i = 0; i < node->inputs().size(); ++i) {
                limit(changed(node), i);
            }
        }
    }

    // What masks is the lowest number that the dtype had: in another dtype it is no number.
    void limit(jit::Node* node, std::size_t input) {
        const auto constant = jit::toIValue(node->input(input));
        if (!constant) {
            return;
        }
        const bool tensor = constant->isTensor() && constant->toTensor().defined() &&
                            constant->toTensor().dim() == 0 &&
                            constant->toTensor().is_floating_point();
        if (!constant->isDouble() && !tensor) {
            return;
        }
        const double value = tensor ? constant->toTensor().item<double>() : constant->toDouble();
        if (!std::isfinite(value) || std::abs(value) <= largest(settings_.to)) {
            return;
        }
        const double limited = std::copysign(largest(settings_.to), value);
        const jit::WithInsertPoint before(node);
        node->replaceInput(input, tensor ? node->owningGraph()->insertConstant(at::scalar_tensor(
                                               limited, constant->toTensor().options()))
                                         : node->owningGraph()->insertConstant(limited));
        count(node);
    }

    void round(jit::Value* value) {
        jit::Node* after = value->node();
        jit::Graph& graph = *after->owningGraph();
        const jit::WithInsertPoint here(after->next());
        const auto uses = value->uses();
        jit::Value* no = graph.insertConstant(false);
        jit::Node* cast = graph.insertNode(graph.create(
            c10::aten::to, {value, graph.insertConstant(static_cast<std::int64_t>(settings_.to)),
                            no, no, graph.insertConstant(c10::IValue())}));
        cast->output()->setType(c10::TensorType::get());
        for (const jit::Use& use : uses) {
            if (use.user != cast && hands_on(use.user)) {
                use.user->replaceInput(use.offset, cast->output());
            }
        }
        count(cast);
        ++report_.inserted;
    }

    jit::Module& model_;
    const DtypeSettings& settings_;
    const DtypeFlow& flow_;
    const std::map<const jit::Graph*, std::string> names_;
    Converted converted_;
    ConstantReport report_;
    // Attributes that are read as what they are somewhere.
    std::set<std::pair<const c10::ClassType*, std::string>> read_;
    std::vector<jit::Node*> weight_constants_;
};

}  // namespace

bool is_weight_constant(const jit::Node* node) {
    return is_tensor_constant(node) && node->t(c10::attr::value).defined() &&
           node->t(c10::attr::value).dim() > 0 &&
           is_floating(node->t(c10::attr::value).scalar_type());
}

ConstantReport rewrite_dtypes(jit::Module& model, const DtypeSettings& settings,
                              const DtypeFlow& flow) {
    return Rewriting(model, settings, flow).run();
}

}  // namespace twinkle::runtime
