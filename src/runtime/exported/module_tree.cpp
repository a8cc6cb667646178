#include "runtime/exported/module_tree.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <algorithm>
#include <cctype>

namespace twinkle::runtime::exported {

namespace {

[[noreturn]] void impossible(const std::string& what, const std::string& path) {
    throw Error(ErrorCode::malformed,
                {.what = "the exported program cannot be read",
                 .where = base::printable(path.substr(0, 200)),
                 .why = what,
                 .hint = "copy the archive again, or export the model again"});
}

std::string parent_of(const std::string& path) {
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_of(const std::string& path) {
    return path.substr(path.rfind('.') + 1);
}

// TorchScript quotes names that are no identifiers.
bool can_be_a_name(const std::string& name) {
    return !name.empty() && name != "training" && !name.starts_with("__") &&
           !name.starts_with("forward") &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '_' || c == '-';
           });
}

void check_path(const std::string& path) {
    const auto parts = base::split(path, '.');
    if (path.size() > longest_name || parts.size() > deepest_path ||
        !std::all_of(parts.begin(), parts.end(), can_be_a_name)) {
        impossible("it is no path of a module or attribute", path);
    }
}

bool all_digits(const std::string& name) {
    return std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Layers that only training has, as exported.
bool says_training(const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [](const NamedArgument& input) {
        return (input.name == "train" || input.name == "training") &&
               input.value.kind == Argument::Kind::boolean && input.value.integer != 0;
    });
}

}  // namespace

c10::QualifiedName class_name_for(const std::string& python_name) {
    std::vector<std::string> atoms{"__torch__"};
    for (const std::string& part : base::split(python_name.substr(0, longest_name), '.')) {
        std::string atom = part;
        std::replace_if(
            atom.begin(), atom.end(),
            [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; }, '_');
        if (atom.empty() || std::isdigit(static_cast<unsigned char>(atom.front())) != 0) {
            atom.insert(0, "_");
        }
        atoms.push_back(atom);
    }
    return c10::QualifiedName(atoms);
}

ModuleTree::ModuleTree(const Program& program, Weights weights,
                       std::map<std::string, c10::IValue> objects)
    : weights_(std::move(weights)),
      objects_(std::move(objects)),
      unit_(std::make_shared<torch::jit::CompilationUnit>()) {
    std::set<const void*> added;  // lists of tied paths
    add("");
    for (const std::string& path : program.modules) {
        check_path(path);
        add(path);
    }
    for (const InputSpec& input : program.inputs) {
        const bool constant = input.kind == InputSpec::Kind::tensor_constant;
        if (input.kind == InputSpec::Kind::user || input.kind == InputSpec::Kind::constant) {
            continue;
        }
        if (input.kind == InputSpec::Kind::object) {
            targets_[input.value.text] = input.target;
            is_constant_[input.value.text] = false;
            add_object(input.target);
            continue;
        }
        if (!weights_.tensors.contains(input.target)) {
            impossible("the archive has no data of it", input.target);
        }
        targets_[input.value.text] = input.target;
        values_.emplace(input.target, input.value.text);
        is_constant_[input.value.text] = constant;
        const auto& tied = weights_.ties.at(input.target);
        if (!constant && added.insert(tied.get()).second) {
            for (const std::string& path : *tied) {
                add_attribute(path, &Place::tensors);
            }
        }
    }
}

ModuleTree::Place& ModuleTree::add(const std::string& path) {
    const auto [place, first] = places_.try_emplace(path);
    if (first && !path.empty()) {
        Place& parent = add(parent_of(path));
        if (!parent.names.insert(last_of(path)).second) {
            impossible("a module and a tensor have this path", path);
        }
        parent.children.push_back(last_of(path));
    }
    return place->second;
}

void ModuleTree::add_object(const std::string& path) {
    if (weights_.ties.contains(path)) {
        impossible("the program has two inputs of this path", path);
    }
    weights_.ties[path] = std::make_shared<const std::vector<std::string>>(1, path);
    add_attribute(path, &Place::objects);
}

void ModuleTree::add_attribute(const std::string& path, std::vector<std::string> Place::* list) {
    check_path(path);
    Place& parent = add(parent_of(path));
    if (!parent.names.insert(last_of(path)).second) {
        impossible("a module and a tensor have this path, or two tensors", path);
    }
    (parent.*list).push_back(last_of(path));
}

bool ModuleTree::is_attribute(const std::string& value) const {
    return targets_.contains(value);
}

bool ModuleTree::reaches(const std::string& path, const std::string& value) const {
    return is_constant_.at(value) || way_to(path, value).has_value();
}

std::optional<std::vector<std::string>> ModuleTree::way_to(const std::string& path,
                                                           const std::string& value) const {
    if (is_constant_.at(value)) {
        return std::nullopt;
    }
    const std::string& target = targets_.at(value);
    const std::string above = path.empty() ? "" : path + ".";
    std::optional<std::string> nearest;
    for (const std::string& one : *weights_.ties.at(target)) {
        if (one.starts_with(above) && (!nearest || one == target || one.size() < nearest->size())) {
            nearest = one;
            if (one == target || parent_of(one) == path) {
                break;
            }
        }
    }
    return nearest ? std::optional(base::split(nearest->substr(above.size()), '.')) : std::nullopt;
}

const at::Tensor& ModuleTree::tensor_of(const std::string& value) const {
    return weights_.tensors.at(targets_.at(value));
}

std::optional<std::string> ModuleTree::value_of_target(const std::string& target) const {
    const auto found = values_.find(target);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
}

void ModuleTree::name_classes(const Call& call) {
    if (!call.path.empty()) {
        check_path(call.path);
    }
    Place& place = add(call.path);
    if (place.class_name.empty()) {
        place.class_name = call.class_name;
    }
    for (const auto& step : call.steps) {
        if (const auto* node = std::get_if<Node*>(&step)) {
            place.trains = place.trains || says_training(**node);
        } else {
            name_classes(*std::get<std::unique_ptr<Call>>(step));
        }
    }
}

void ModuleTree::build(const Call& root) {
    name_classes(root);
    build("");
}

void ModuleTree::build(const std::string& path) {
    Place& place = places_.at(path);
    if (place.class_name.empty()) {
        const bool is_list = !place.children.empty() &&
                             std::all_of(place.children.begin(), place.children.end(), all_digits);
        place.class_name =
            is_list ? "torch.nn.modules.container.ModuleList" : "torch.nn.modules.module.Module";
    }
    torch::jit::Module module(class_name_for(place.class_name), unit_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), place.trains);
    const std::string above = path.empty() ? "" : path + ".";
    for (const std::string& name : place.tensors) {
        const at::Tensor& tensor = weights_.tensors.at(above + name);
        if (weights_.is_parameter.at(above + name)) {
            module.register_parameter(name, tensor, false);
        } else {
            module.register_buffer(name, tensor);
        }
    }
    for (const std::string& name : place.objects) {
        const c10::IValue& object = objects_.at(above + name);
        module.register_attribute(name, object.type(), object);
    }
    for (const std::string& name : place.children) {
        build(above + name);
        module.register_module(name, *at(above + name).module);
    }
    place.module = module;
}

}  // namespace twinkle::runtime::exported
