#include "runtime/exported/parameters.h"

#include "archive/json_reader.h"
#include "runtime/exported/checks.h"
#include "runtime/exported/objects.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace twinkle::runtime::exported {

using namespace archive;
namespace jit = torch::jit;

namespace {

constexpr std::size_t longest_path = 2000;
constexpr std::size_t most_name_bytes = 64u << 20;  // of all inputs

bool is_identifier(const std::string& name) {
    return !name.empty() && name.size() <= longest_path &&
           std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

c10::TypePtr leaf_type(const InputSpec& spec) {
    switch (spec.value.kind) {
        case Argument::Kind::tensor: return c10::TensorType::get();
        case Argument::Kind::integer:
        case Argument::Kind::sym_int: return c10::IntType::get();
        case Argument::Kind::number:
        case Argument::Kind::sym_float: return c10::FloatType::get();
        case Argument::Kind::boolean:
        case Argument::Kind::sym_bool: return c10::BoolType::get();
        case Argument::Kind::string: return c10::StringType::get();
        case Argument::Kind::none: return c10::OptionalType::ofTensor();
        case Argument::Kind::object: return class_of(spec);
        default: throw InvalidJson("an input is of a kind that TorchScript does not have");
    }
}

c10::IValue constant_of(const Argument& value) {
    switch (value.kind) {
        case Argument::Kind::integer: return value.integer;
        case Argument::Kind::number: return value.number;
        case Argument::Kind::boolean: return value.integer != 0;
        case Argument::Kind::string: return value.text;
        default: return {};
    }
}

std::string text_of_constant(const Argument& value) {
    switch (value.kind) {
        case Argument::Kind::integer: return std::to_string(value.integer);
        case Argument::Kind::number: return std::to_string(value.number);
        case Argument::Kind::boolean: return value.integer != 0 ? "True" : "False";
        case Argument::Kind::string: return "'" + value.text + "'";
        default: return "None";
    }
}

bool all_equal(const std::vector<c10::TypePtr>& types) {
    return !types.empty() && std::all_of(types.begin(), types.end(),
                                         [&](const auto& type) { return *type == *types.front(); });
}

jit::Value* insert(jit::Graph& graph, c10::Symbol op, const std::vector<jit::Value*>& inputs,
                   const c10::TypePtr& type) {
    return graph.insertNode(graph.create(op, inputs))->output()->setType(type);
}

}  // namespace

Parameters::Parameters(const Program& program) : program_(program) {
    for (const InputSpec& input : program.inputs) {
        if (input.kind == InputSpec::Kind::user || input.kind == InputSpec::Kind::constant) {
            leaf_type(input);
            leaves_.push_back({&input, "", "", nullptr});
        }
    }
    name_all(program);
}

// Positional arguments, then those by keyword; constants of these last, as they have defaults.
void Parameters::name_all(const Program& program) {
    const Tree tree = read_tree(program.in_spec, program.namedtuple_fields);
    if (tree.children.size() != 2 || tree.children[1].kind == Tree::Kind::leaf ||
        tree.leaves() != leaves_.size()) {
        throw InvalidJson("the nesting of its inputs does not fit to its inputs");
    }
    const Tree& positional = tree.children[0];
    const Tree& keyword = tree.children[1];
    std::set<std::string> names{"self"};
    std::size_t leaf = 0;
    const auto add = [&](const Tree& one, std::string name, bool by_keyword) {
        if (!is_identifier(name) || !names.insert(name).second) {
            throw InvalidJson("an input has a name that is none, or another's");
        }
        named_.push_back({std::move(name), one, leaf, by_keyword});
        leaf += one.leaves();
    };
    for (std::size_t i = 0; i < positional.children.size(); ++i) {
        add(positional.children[i],
            i < program.argument_names.size() ? program.argument_names[i]
                                              : "args_" + std::to_string(i),
            false);
    }
    for (std::size_t i = 0; i < keyword.children.size(); ++i) {
        add(keyword.children[i], i < keyword.keys.size() ? keyword.keys[i] : "", true);
    }
    std::vector<Leaf> unnamed;
    unnamed.swap(leaves_);
    for (const Named& one : named_) {
        name_leaves(one.tree, "['" + one.name + "']", one.name);
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
        leaves_[i].spec = unnamed[i].spec;
    }
    std::stable_partition(named_.begin(), named_.end(),
                          [&](const Named& one) { return !one.by_keyword || !is_constant(one); });
}

void Parameters::name_leaves(const Tree& tree, const std::string& source, const std::string& name) {
    if (source.size() > longest_path) {
        throw InvalidJson("an input lies under keys that are longer than any sane ones");
    }
    if (tree.kind == Tree::Kind::leaf) {
        name_bytes_ += source.size() + name.size();
        if (name_bytes_ > most_name_bytes) {
            throw InvalidJson("the keys of its inputs are longer than any sane ones");
        }
        leaves_.push_back({nullptr, source, name, nullptr});
        return;
    }
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
        const std::string key =
            i < tree.keys.size() ? "['" + tree.keys[i] + "']" : "[" + std::to_string(i) + "]";
        name_leaves(tree.children[i], source + key, name + key);
    }
}

bool Parameters::is_constant(const Named& one) const {
    return one.tree.kind == Tree::Kind::leaf &&
           leaves_[one.first_leaf].spec->kind == InputSpec::Kind::constant;
}

c10::TypePtr Parameters::type_of(const Tree& tree, std::size_t& leaf) const {
    if (tree.kind == Tree::Kind::leaf) {
        return leaf_type(*leaves_[leaf++].spec);
    }
    std::vector<c10::TypePtr> types;
    for (const Tree& child : tree.children) {
        types.push_back(type_of(child, leaf));
    }
    if (tree.kind == Tree::Kind::list && all_equal(types)) {
        return c10::ListType::create(types.front());
    }
    if (tree.kind == Tree::Kind::dict && all_equal(types)) {
        return c10::DictType::create(c10::StringType::get(), types.front());
    }
    return c10::TupleType::create(types);
}

void Parameters::write(jit::Graph& graph) {
    std::vector<jit::Value*> values;
    for (const Named& one : named_) {
        std::size_t leaf = one.first_leaf;
        values.push_back(graph.addInput(one.name)->setType(type_of(one.tree, leaf)));
        parameters_.push_back({one.name, std::nullopt});
    }
    for (std::size_t left = named_.size(); left > 0 && is_constant(named_[left - 1]); --left) {
        parameters_[left - 1].default_value =
            constant_of(leaves_[named_[left - 1].first_leaf].spec->value);
    }
    for (std::size_t i = 0; i < named_.size(); ++i) {
        std::size_t leaf = named_[i].first_leaf;
        take_apart(graph, named_[i].tree, values[i], leaf, named_[i].name);
    }
}

void Parameters::take_apart(jit::Graph& graph, const Tree& tree, jit::Value* value,
                            std::size_t& leaf, const std::string& name) {
    if (tree.kind == Tree::Kind::leaf) {
        Leaf& one = leaves_[leaf++];
        one.value = value;
        if (one.spec->kind == InputSpec::Kind::constant) {
            check_constant(graph, one);
        }
        return;
    }
    std::vector<jit::Value*> parts;
    const auto count = static_cast<std::int64_t>(tree.children.size());
    if (const auto tuple = value->type()->cast<c10::TupleType>()) {
        const auto outputs = graph.insertNode(graph.createTupleUnpack(value))->outputs();
        parts.assign(outputs.begin(), outputs.end());
    } else {
        jit::Value* length = insert(graph, c10::aten::len, {value}, c10::IntType::get());
        write_check(graph,
                    insert(graph, c10::aten::eq, {length, graph.insertConstant(count)},
                           c10::BoolType::get()),
                    plain(name) + " must hold " + std::to_string(count) +
                        " values, as when the model was exported, but holds {}",
                    {length});
        if (const auto list = value->type()->cast<c10::ListType>()) {
            const auto outputs =
                graph.insertNode(graph.createListUnpack(value, tree.children.size()))->outputs();
            parts.assign(outputs.begin(), outputs.end());
        } else {
            const auto type = value->type()->expect<c10::DictType>()->getValueType();
            for (const std::string& key : tree.keys) {
                parts.push_back(insert(graph, c10::aten::__getitem__,
                                       {value, graph.insertConstant(key)}, type));
            }
        }
    }
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
        take_apart(graph, tree.children[i], parts[i], leaf, name);
    }
}

void Parameters::check_constant(jit::Graph& graph, const Leaf& leaf) {
    const Argument& value = leaf.spec->value;
    jit::Value* same = nullptr;
    if (value.kind == Argument::Kind::none) {
        same = insert(graph, c10::aten::__is__,
                      {leaf.value, graph.insertNode(graph.createNone())->output()},
                      c10::BoolType::get());
    } else {
        same = insert(graph, c10::aten::eq, {leaf.value, graph.insertConstant(constant_of(value))},
                      c10::BoolType::get());
    }
    write_check(graph, same,
                "the input " + plain(leaf.name) + " must be " + plain(text_of_constant(value)) +
                    ": the model was exported for this value");
}

}  // namespace twinkle::runtime::exported
