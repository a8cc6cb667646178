#pragma once
// The modules of an exported model, with their classes' names and attributes, before they have
// methods.

#include "runtime/exported/call_tree.h"
#include "runtime/exported/program.h"
#include "runtime/exported/weights.h"

#include <torch/script.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

class ModuleTree final : public Attributes {
public:
    // Throws Error(malformed) for attributes that are missing or have impossible names.
    ModuleTree(const Program& program, Weights weights, std::map<std::string, c10::IValue> objects);

    bool is_attribute(const std::string& value) const override;
    bool reaches(const std::string& path, const std::string& value) const override;

    // Makes the modules; classes are named as the calls say.
    void build(const Call& root);

    torch::jit::Module root() const { return *at("").module; }
    torch::jit::Module module_at(const std::string& path) const { return *at(path).module; }
    const std::shared_ptr<torch::jit::CompilationUnit>& unit() const { return unit_; }

    // The attribute that a value is, from a module: names of modules, then its own. None: it is a
    // constant.
    std::optional<std::vector<std::string>> way_to(const std::string& path,
                                                   const std::string& value) const;
    // The tensor of a constant.
    const at::Tensor& tensor_of(const std::string& value) const;
    // The value that is an attribute, by its path.
    std::optional<std::string> value_of_target(const std::string& target) const;

private:
    struct Place {
        std::vector<std::string> children;  // their names
        std::vector<std::string> tensors;   // their names
        std::vector<std::string> objects;   // their names
        std::set<std::string> names;        // of all
        std::string class_name;
        bool trains = false;
        std::optional<torch::jit::Module> module;
    };

    Place& add(const std::string& path);
    // Adds a tensor or object to the list of its module.
    void add_attribute(const std::string& path, std::vector<std::string> Place::* list);
    void add_object(const std::string& path);
    const Place& at(const std::string& path) const { return places_.at(path); }
    void name_classes(const Call& call);
    void build(const std::string& path);

    Weights weights_;
    std::map<std::string, c10::IValue> objects_;  // by path
    std::map<std::string, Place> places_;
    std::map<std::string, std::string> targets_;  // of values
    std::map<std::string, std::string> values_;   // the first one of a target
    std::map<std::string, bool> is_constant_;     // of values
    std::shared_ptr<torch::jit::CompilationUnit> unit_;
};

// "transformers.models.llama.modeling_llama.LlamaMLP" as TorchScript names classes, whatever the
// archive says.
c10::QualifiedName class_name_for(const std::string& python_name);

}  // namespace twinkle::runtime::exported
