#include "runtime/proof/binding.h"

#include "runtime/graph/graph_values.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t most_scalars = 16;
constexpr std::size_t most_unusual = 4;
using Kind = ParameterSource::Kind;

bool is_tensor(const c10::TypePtr& type) {
    return type->kind() == c10::TypeKind::TensorType;
}

// Whether the value's name may come from this parameter: "q.1" in a loaded graph, "q0.1" in a
// frozen one.
bool is_named(const jit::Value* value, const std::string& parameter) {
    std::string name = value->debugName();
    name = name.substr(0, name.find('.'));
    return name == parameter ||
           (name.starts_with(parameter) &&
            name.find_first_not_of("0123456789", parameter.size()) == std::string::npos);
}

bool takes(const c10::TypePtr& parameter, const c10::TypePtr& type) {
    if (parameter == nullptr || type->isSubtypeOf(*parameter)) {
        return true;
    }
    const bool number =
        type->kind() == c10::TypeKind::IntType || type->kind() == c10::TypeKind::FloatType;
    const auto wanted = parameter->kind() == c10::TypeKind::OptionalType
                            ? parameter->expectRef<c10::OptionalType>().getElementType()
                            : parameter;
    return number && wanted->kind() == c10::TypeKind::NumberType;
}

struct Option {
    ParameterSource source;
    bool unusual = false;
};

class Finder {
public:
    Finder(const Region& region, const Substitute& substitute, std::size_t skipped,
           std::size_t limit)
        : region_(region),
          parameters_(substitute.parameters.begin() + static_cast<std::ptrdiff_t>(skipped),
                      substitute.parameters.end()),
          scalars_(scalars_of(region)),
          limit_(limit),
          uses_(region.inputs.size()) {
        for (const SubstituteParameter& parameter : parameters_) {
            options_.push_back(options_for(parameter));
        }
        tensors_left_ = static_cast<std::size_t>(
            std::count_if(region.inputs.begin(), region.inputs.end(),
                          [](const jit::Value* one) { return is_tensor(one->type()); }));
    }

    std::vector<CallBinding> find() {
        for (std::size_t unusual = 0; unusual <= most_unusual; ++unusual) {
            chosen_.clear();
            choose(unusual, unusual);
        }
        return std::move(found_);
    }

private:
    std::vector<Option> options_for(const SubstituteParameter& parameter) const {
        std::vector<Option> options;
        const bool known =
            std::any_of(region_.inputs.begin(), region_.inputs.end(),
                        [&](const jit::Value* one) { return is_named(one, parameter.name); });
        const auto add_inputs = [&](bool of_that_name) {
            for (std::size_t i = 0; i < region_.inputs.size(); ++i) {
                const jit::Value* input = region_.inputs[i];
                const bool named = is_named(input, parameter.name);
                if (named == of_that_name && takes(parameter.type, input->type())) {
                    const bool likely =
                        named || (!parameter.has_default && is_tensor(input->type()));
                    options.push_back({{Kind::input, i}, !likely});
                }
            }
        };
        add_inputs(true);
        if (parameter.has_default) {
            options.push_back({{Kind::omitted, 0}, known});
        }
        add_inputs(false);
        for (std::size_t i = 0; i < scalars_.size(); ++i) {
            if (takes(parameter.type, scalars_[i].type())) {
                options.push_back({{Kind::scalar, i}, true});
            }
        }
        return options;
    }

    // Tries bindings with exactly `unusual` unusual choices among the remaining parameters.
    void choose(std::size_t left, std::size_t unusual) {
        const std::size_t next = chosen_.size();
        if (found_.size() >= limit_ || tensors_left_ > parameters_.size() - next) {
            return;
        }
        if (next == parameters_.size()) {
            if (left == 0) {
                found_.push_back({0, chosen_, std::nullopt, unusual, {}});
            }
            return;
        }
        for (const Option& option : options_[next]) {
            const bool input = option.source.kind == Kind::input;
            const bool again = input && uses_[option.source.index] > 0;
            const std::size_t cost = (option.unusual ? 1 : 0) + (again ? 1 : 0);
            if (cost > left) {
                continue;
            }
            const bool fresh = input && !again && is_tensor(type_of(option.source.index));
            tensors_left_ -= fresh ? 1 : 0;
            uses_[option.source.index] += input ? 1 : 0;
            chosen_.push_back(option.source);
            choose(left - cost, unusual);
            chosen_.pop_back();
            uses_[option.source.index] -= input ? 1 : 0;
            tensors_left_ += fresh ? 1 : 0;
        }
    }

    c10::TypePtr type_of(std::size_t input) const { return region_.inputs[input]->type(); }

    const Region& region_;
    std::vector<SubstituteParameter> parameters_;
    std::vector<c10::IValue> scalars_;
    std::size_t limit_;
    std::vector<std::size_t> uses_;
    std::vector<std::vector<Option>> options_;
    std::size_t tensors_left_ = 0;
    std::vector<ParameterSource> chosen_;
    std::vector<CallBinding> found_;
};

}  // namespace

bool is_list_of_tensors(const c10::TypePtr& type) {
    const auto* list = type->castRaw<c10::ListType>();
    return list != nullptr && list->getElementType()->kind() == c10::TypeKind::TensorType;
}

bool gives_list(const Region& region) {
    return region.results.size() == 1 && is_list_of_tensors(region.results[0]->type());
}

std::vector<c10::IValue> scalars_of(const Region& region) {
    std::vector<c10::IValue> scalars;
    const auto add = [&](const c10::IValue& value) {
        const bool known = std::any_of(scalars.begin(), scalars.end(), [&](const auto& one) {
            return one.tagKind() == value.tagKind() && one == value;
        });
        if (!known && scalars.size() < most_scalars) {
            scalars.push_back(value);
        }
    };
    for (const jit::Node* node : region.nodes) {
        for (const jit::Value* input : node->inputs()) {
            const auto value = input->node()->kind() == c10::prim::Constant
                                   ? constant_value(input)
                                   : std::optional<c10::IValue>();
            if (value && (value->isInt() || value->isDouble() || value->isString())) {
                add(*value);
            }
        }
    }
    for (const c10::IValue& value : {c10::IValue(true), c10::IValue(false), c10::IValue()}) {
        scalars.push_back(value);
    }
    return scalars;
}

std::vector<CallBinding> bindings_of(const Region& region, const Substitute& substitute,
                                     std::size_t skipped, std::size_t limit) {
    return Finder(region, substitute, skipped, limit).find();
}

}  // namespace twinkle::runtime
