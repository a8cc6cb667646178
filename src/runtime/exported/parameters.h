#pragma once
// The parameters of forward as the author calls it: nested, by name; and what the flat inputs of
// the program are of them.

#include "runtime/exported/program.h"
#include "runtime/exported/pytree.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

// An input of the program, in the graph that is written.
struct Leaf {
    const InputSpec* spec = nullptr;
    std::string source;  // as guards name it: "['x']['key'][0]"
    std::string name;    // for people: "x['key'][0]"
    torch::jit::Value* value = nullptr;
};

// One of forward's.
struct Parameter {
    std::string name;
    std::optional<c10::IValue> default_value;
};

class Parameters {
public:
    // Throws InvalidJson (json_reader.h) where the archive's nesting and its inputs do not fit.
    explicit Parameters(const Program& program);

    // Adds the inputs to the graph, checks what was a constant when the model was exported, and
    // takes them apart.
    void write(torch::jit::Graph& graph);

    const std::vector<Parameter>& parameters() const { return parameters_; }
    const std::vector<Leaf>& leaves() const { return leaves_; }

private:
    struct Named {
        std::string name;
        Tree tree;
        std::size_t first_leaf = 0;
        bool by_keyword = false;
    };

    void name_all(const Program& program);
    void name_leaves(const Tree& tree, const std::string& source, const std::string& name);
    bool is_constant(const Named& one) const;
    c10::TypePtr type_of(const Tree& tree, std::size_t& leaf) const;
    void take_apart(torch::jit::Graph& graph, const Tree& tree, torch::jit::Value* value,
                    std::size_t& leaf, const std::string& name);
    static void check_constant(torch::jit::Graph& graph, const Leaf& leaf);

    const Program& program_;
    std::vector<Named> named_;
    std::vector<Parameter> parameters_;
    std::vector<Leaf> leaves_;
    std::size_t name_bytes_ = 0;
};

}  // namespace twinkle::runtime::exported
